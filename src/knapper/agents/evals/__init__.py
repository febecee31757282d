"""Evals."""
