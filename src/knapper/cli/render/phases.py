"""Say in words how far the phases of indexing are."""

import time

import click

from knapper.index.refresh import RefreshPhase

_EVERY_S = 5.0
NAMES: dict[RefreshPhase, str] = {"scan": "looked at", "read": "read", "embed": "embedded"}
UNITS: dict[RefreshPhase, str] = {"scan": "files", "read": "files", "embed": "chunks"}


class Lines:
    """Print a line now and then."""

    def __init__(self, *, every_s: float = _EVERY_S) -> None:
        """Start the clock; a line is due *every_s* seconds."""
        self._every_s = every_s
        self._last = time.monotonic()

    def __call__(self, phase: RefreshPhase, done: int, total: int) -> None:
        """Print how far the work is, unless that was just said."""
        if time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            of = f" of {total}" if total else ""
            click.echo(f"{NAMES[phase]} {done}{of} {UNITS[phase]}", err=True)
