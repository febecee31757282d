"""Run the command line as ``python -m knapper.cli``."""

from knapper.cli.start import main

if __name__ == "__main__":
    main()
