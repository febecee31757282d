"""Suites of tasks that measure how well a model works with the vault's tools."""
