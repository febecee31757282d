"""Serve the page: its files, who is let in to it, and what lets its calls through."""
