"""Remember from the journal what links said before a move, for when that move is made backwards.

A link that had to be lengthened when a note went away says again what it said before, once the note is back: the
journal knows, and no look at the link itself could tell.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from knapper.changes.disk.journal import Journal
from knapper.errors import NotFound
from knapper.vault import paths
from knapper.vault.paths import NotePath

_LAST = """SELECT c.seq FROM steps s JOIN changes c ON c.id = s.change
    WHERE s.kind = 'move' AND s.source = ? AND s.target = ? AND c.phase IN ('applied', 'done') AND NOT c.undone
    ORDER BY c.seq DESC LIMIT 1"""
_NEXT = """SELECT c.seq, s.target FROM steps s JOIN changes c ON c.id = s.change
    WHERE s.kind = 'move' AND s.source = ? AND c.seq > ? AND c.phase IN ('applied', 'done') AND NOT c.undone
    ORDER BY c.seq LIMIT 1"""
_REPLACED = """SELECT s.target, s.before, s.after FROM steps s JOIN changes c ON c.id = s.change
    WHERE c.seq = ? AND s.kind = 'replace' ORDER BY s.number"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Hold what an earlier change made of one file, by hashes."""

    journal: Journal
    before: str
    after: str

    def read(self) -> tuple[bytes, bytes] | None:
        """Give what the file held before and after; None where the journal has forgotten."""
        try:
            return self.journal.content(self.before), self.journal.content(self.after)
        except NotFound:
            return None  # contents are kept for a while only


class Pasts:
    """Look up what earlier moves rewrote."""

    def __init__(self, journal: Journal) -> None:
        """Ask *journal*."""
        self._journal: Journal = journal

    def of(self, moves: Iterable[tuple[NotePath, NotePath]]) -> Mapping[NotePath, list[Past]]:
        """Give what was rewritten when files went the other way, the oldest first.

        Args:
            moves: Old and new path of each file or folder that moves now.

        Returns:
            By the path that each rewritten file has now.
        """
        found: dict[NotePath, list[Past]] = {}
        with self._journal.reading() as database:
            departures = {number for old, new in moves for number in _departure(database, old, new)}
            for number in sorted(departures):
                for target, before, after in database.execute(_REPLACED, (number,)).fetchall():
                    past = Past(journal=self._journal, before=before, after=after)
                    found.setdefault(_now(database, target, number), []).append(past)
        return found


def _departure(database: sqlite3.Connection, old: NotePath, new: NotePath) -> Iterator[int]:
    """Find the last change that moved a file, or a folder around it, from where it is going to where it is."""
    for above in _around(new):
        rest = new[len(above) :]
        if not old.endswith(rest):
            return
        row = database.execute(_LAST, (above, old.removesuffix(rest))).fetchone()
        if row is not None:
            yield int(row[0])
            return


def _now(database: sqlite3.Connection, path: str, since: int) -> NotePath:
    """Follow a file through the moves that came after a change."""
    while True:
        found = [(row, above) for above in _around(path) if (row := database.execute(_NEXT, (above, since)).fetchone())]
        if not found:
            return NotePath(path)
        (since, target), above = min(found, key=lambda one: int(one[0][0]))
        path = target + path[len(above) :]


def _around(path: str) -> Iterator[str]:
    yield path
    yield from reversed(paths.parent_folders(path))
