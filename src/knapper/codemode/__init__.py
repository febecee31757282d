"""Code Mode: scripts over the tools, their sandbox and its bridge to the vaults, and retrieval by scripts."""
