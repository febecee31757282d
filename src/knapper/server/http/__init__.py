"""The HTTP API: routes that call tools, chats, tasks and runs, and the web page."""
