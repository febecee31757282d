"""Count the notes of each tag."""

import json
import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LAST = "\U0010ffff"
"""Comes after every other character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """Say how many notes have a tag; tags that only differ in case are one."""

    name: str
    """In the spelling that most notes use."""
    notes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCounts:
    """Hold a stretch of the tags, the most used first, and how many there are."""

    tags: tuple[TagCount, ...]
    total: int


def count(
    connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None, prefix: str, limit: int, offset: int
) -> TagCounts:
    """Count notes by tag; the most used first, then by name.

    Args:
        connection: To the index.
        allowed: By file id: whether it counts; None counts all.
        prefix: What the tag begins with, folded.
        limit: How many tags at most.
        offset: How many are left out at the beginning.
    """
    only = "" if allowed is None else " AND +t.file_id IN (SELECT value FROM json_each(?))"
    parameters = () if allowed is None else (json.dumps(np.flatnonzero(allowed).tolist()),)
    rows = connection.execute(
        f"SELECT t.key, COUNT(DISTINCT t.file_id) FROM tags t WHERE t.key >= ? AND t.key < ?{only}"
        " GROUP BY t.key ORDER BY 2 DESC, t.key",
        (prefix, prefix + _LAST, *parameters),
    ).fetchall()
    page = rows[offset : offset + limit]
    spelled = connection.execute(
        f"SELECT t.key, t.name FROM tags t WHERE t.key IN (SELECT value FROM json_each(?)){only}"
        " GROUP BY t.key, t.name ORDER BY COUNT(DISTINCT t.file_id), t.name DESC",
        (json.dumps([key for key, _ in page], ensure_ascii=False), *parameters),
    )
    names = {str(key): str(name) for key, name in spelled}  # the last one of a key stays: it is used most
    return TagCounts(
        tags=tuple(TagCount(name=names[str(key)], notes=int(notes)) for key, notes in page), total=len(rows)
    )
