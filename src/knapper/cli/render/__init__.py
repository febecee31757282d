"""Turn results into text for a terminal."""
