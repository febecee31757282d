"""Typed tool functions over a vault, and the table from which every surface derives what it offers."""
