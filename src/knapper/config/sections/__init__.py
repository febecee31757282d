"""The sections of the configuration file that are large or checked as a whole, by what they are about."""
