"""Search the web where the vault's notes don't answer a task."""
