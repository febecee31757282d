"""Gather the notes that a model is given, say why each is there, and write them as one text within a limit."""
