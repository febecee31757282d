"""Offer typed functions over a vault to every surface."""
