"""Show how far a long piece of work has come: a bar for a person at a terminal, lines elsewhere."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import click

from knapper.cli import output
from knapper.cli.options import Options
from knapper.index.refresh import Phase, Progress

_EVERY_S = 5.0
NAMES: dict[Phase, str] = {"scan": "looked at", "read": "read", "embed": "embedded"}
UNITS: dict[Phase, str] = {"scan": "files", "read": "files", "embed": "chunks"}


@contextmanager
def shown(options: Options) -> Generator[Progress | None]:
    """Show progress on the error stream, as far as the options let it."""
    if options.quiet or options.as_json:
        yield None
    elif output.is_terminal():
        from knapper.cli.render.bar import Bar  # noqa: PLC0415  # brings rich, 70 ms that only a bar should cost

        with Bar(colour=output.wants_colour(options)) as bar:
            yield bar
    else:
        yield Lines()


class Lines:
    """Print a line now and then."""

    def __init__(self, *, every_s: float = _EVERY_S) -> None:
        """Start the clock; a line is due *every_s* seconds."""
        self._every_s = every_s
        self._last = time.monotonic()

    def __call__(self, phase: Phase, done: int, total: int) -> None:
        """Print how far the work is, unless that was just said."""
        if time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            of = f" of {total}" if total else ""
            click.echo(f"{NAMES[phase]} {done}{of} {UNITS[phase]}", err=True)
