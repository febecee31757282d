"""Offer the tools to a person at a terminal."""
