"""The MCP server: the table of tools over standard input and output, and over HTTP."""
