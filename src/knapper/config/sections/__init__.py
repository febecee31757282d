"""One module for each section of the configuration file that has a shape of its own: settings, shape, reader."""
