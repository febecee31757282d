"""Outgoing requests: the guard for untrusted URLs, clients of configured servers, web search and transcription."""
