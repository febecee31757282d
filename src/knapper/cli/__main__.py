"""Run the command line as ``python -m knapper.cli``."""

from knapper.cli.main import main

if __name__ == "__main__":
    main()
