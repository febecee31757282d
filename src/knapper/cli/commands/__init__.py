"""Hold the commands, one a file, each as ``command``; ``knapper.cli.main`` lists them."""
