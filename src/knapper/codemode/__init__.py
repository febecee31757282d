"""Run scripts over the tools: the sandbox, its bridge to the vaults, and the interface that scripts see."""
