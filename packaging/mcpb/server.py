"""Start Knapper's MCP server with the arguments of the bundle's manifest."""

from knapper.cli.start import main

if __name__ == "__main__":
    main()
