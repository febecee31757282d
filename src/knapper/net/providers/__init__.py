"""Search the web, a module for each provider."""
