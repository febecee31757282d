"""Chat turns of one model with the vault's tools, and the conversations that they belong to."""
