"""Serve the table of tools over the Model Context Protocol."""
