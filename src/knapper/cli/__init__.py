"""The command line: one command per file, with rendering apart."""
