"""Explore a vault for the notes that a task needs."""
