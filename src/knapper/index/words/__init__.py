"""Rank chunks and names by the words of a query."""
