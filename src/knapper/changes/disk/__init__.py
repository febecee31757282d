"""Durable changes on disk, made completely or not at all: effects, the journal, recovery and undo."""
