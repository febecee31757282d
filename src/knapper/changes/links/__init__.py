"""Links that follow a move or a rename: only those that would lead elsewhere are rewritten."""
