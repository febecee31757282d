"""Start Knapper's MCP server with the arguments of the bundle's manifest."""

from knapper.cli.__main__ import main

if __name__ == "__main__":
    main()
