"""Keep what waits for a person, show it, and accept or reject it."""
