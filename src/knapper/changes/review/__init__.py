"""Keep what waits for a person's word, and show it."""
