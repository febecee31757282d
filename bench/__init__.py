"""Benchmarks: one command each, `python -m bench NAME`."""
