"""Open the runs of a vault, and hold those of a server's clients."""
