"""The kinds of embedder, a module each."""
