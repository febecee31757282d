"""Ask the person at the terminal."""

import sys

import click


def is_possible() -> bool:
    """Tell whether somebody could answer: the input and the messages are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Ask for a yes; anything else is a no. Ctrl-C ends the command.

    Raises:
        Abort: The person ended the command.
    """
    return click.confirm(question, default=False, err=True)
