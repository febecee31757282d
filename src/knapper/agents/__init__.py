"""Let a language model work with a vault's tools: on pydantic-ai, with everything it needs given as an argument."""
