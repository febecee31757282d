"""Agents that work with a vault's tools through pydantic-ai; every dependency is passed in as an argument."""
