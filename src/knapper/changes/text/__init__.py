"""Pure functions that change a note's text: they take bytes, and return bytes or splices, or raise a typed error."""
