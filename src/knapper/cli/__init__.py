"""Offer the program on the command line: one command a file, rendering apart."""
