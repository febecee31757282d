"""Read what a person types, line by line, and remember it for the next time."""

import contextlib
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import click

try:
    import readline
except ImportError:  # Windows has its own line editing
    readline = None

_KEPT: Final = 1_000


def is_terminal() -> bool:
    """Tell whether a person types."""
    return sys.stdin.isatty()


def read(prompt: str) -> str | None:
    """Read a line; Ctrl-C leaves it, and an end of the input gives None."""
    while True:
        try:
            if is_terminal():
                return input(prompt)
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            click.echo("\nCtrl-D ends the chat", err=True)
            continue
        except EOFError:
            click.echo(err=True)
            return None
        return line.rstrip("\r\n") if line else None


@contextlib.contextmanager
def history(file: Path) -> Generator[None]:
    """Let the person call up lines of earlier times; only they can read the file."""
    if readline is None or not is_terminal():
        yield
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_history_length(_KEPT)
        with contextlib.suppress(OSError):
            file.touch(mode=0o600)
            readline.write_history_file(file)
