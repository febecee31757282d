"""The search index of a vault: derived from its files, disposable, and stored outside the vault."""
