"""Language models: their names and keys, their servers, what they reply, and what they cost."""
