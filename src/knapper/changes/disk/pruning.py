"""Keep the journal as small and young as its owner wants it, and remember what had to go."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from knapper.changes.disk import blobs, journal_rows

_REMEMBER: Final = """INSERT OR IGNORE INTO pruned
    SELECT id, at, run, proposal, undone = 0 AND id NOT IN (SELECT change FROM undoes) FROM changes WHERE id = ?"""
"""What was undone, and undos, are no loss: `held` tells the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Name a change that the journal had to drop."""

    id: str
    at: str
    """When it was made, as the journal writes times."""


def by_age(database: sqlite3.Connection, oldest: str) -> int:
    """Drop the finished changes that were made before a time; tell how many."""
    rows = database.execute("SELECT id FROM changes WHERE phase = 'done' AND at < ?", (oldest,)).fetchall()
    for row in rows:
        _drop(database, row["id"])
    return len(rows)


def by_size(database: sqlite3.Connection, max_bytes: int) -> int:
    """Drop finished changes, the oldest first, until contents take no more bytes; tell how many.

    The newest stays whatever its size, so that it can be taken back.
    """
    size = blobs.size(database)
    if size <= max_bytes:
        return 0
    rows = database.execute("SELECT id FROM changes WHERE phase = 'done' ORDER BY seq").fetchall()
    dropped = 0
    for row in rows[:-1]:
        if size <= max_bytes:
            break
        size -= _drop(database, row["id"])
        dropped += 1
    return dropped


def find(database: sqlite3.Connection, where: str, values: Mapping[str, object]) -> list[Pruned]:
    """List dropped changes, newest first, that a condition of constant SQL over the table fits."""
    rows = database.execute(f"SELECT id, at FROM pruned WHERE {where} ORDER BY at DESC", values)  # noqa: S608
    return [Pruned(id=row["id"], at=row["at"]) for row in rows.fetchall()]


def _drop(database: sqlite3.Connection, change_id: str) -> int:
    database.execute(_REMEMBER, (change_id,))
    return journal_rows.drop(database, change_id)
