"""Hold the one way in which anything is written."""
