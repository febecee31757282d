"""The HTTP and MCP servers: authentication, limits, worker threads and lifecycle."""
