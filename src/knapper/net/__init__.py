"""Guard every outgoing request."""
