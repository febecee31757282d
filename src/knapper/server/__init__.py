"""Serve vaults over HTTP: who may ask, how much, and how it starts and stops."""
