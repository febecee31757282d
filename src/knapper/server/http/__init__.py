"""Answer HTTP requests: a noun a module, each route a face of a tool."""
