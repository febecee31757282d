"""Start the command line; Ctrl-C ends it quietly even while it is still being imported."""

from typing import NoReturn

from knapper.cli import interrupts


def main() -> NoReturn:
    """Run the program with this process's arguments, and exit with its code."""
    with interrupts.exiting_at_once():
        from knapper.cli import main as program  # noqa: PLC0415 - an interrupt of its imports is handled here

    program.main()
