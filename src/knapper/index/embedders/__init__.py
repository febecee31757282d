"""The kinds of embedders, one module each."""
