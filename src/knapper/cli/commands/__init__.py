"""The commands, one per file, each as ``command``; ``knapper.cli.main`` lists them."""
