"""Rewrite the links that would lead elsewhere after a move or a rename, and only those."""
