"""Count the notes of each tag."""

import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LAST = "\U0010ffff"
"""Comes after every other character."""
_SPELLINGS = (
    "SELECT key, name, COUNT(*), group_concat(file_id, ' ') FROM tags WHERE key >= ? AND key < ?"
    " GROUP BY key, name ORDER BY key, name"
)


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
    rows = connection.execute(_SPELLINGS, (prefix, prefix + _LAST)).fetchall()
    numbers: dict[str, int] = {}
    tags = np.array([numbers.setdefault(str(key), len(numbers)) for key, *_ in rows], np.int64)
    files = np.fromstring(" ".join(row[3] for row in rows), np.int64, sep=" ")
    spellings = np.repeat(np.arange(len(rows)), [int(row[2]) for row in rows])
    if allowed is not None:
        files, spellings = files[allowed[files]], spellings[allowed[files]]
    uses = _distinct(spellings, files, len(rows))
    notes = _distinct(tags[spellings], files, len(numbers))
    used = np.argsort(-notes, kind="stable")[: np.count_nonzero(notes)].tolist()
    page = np.array(used[offset : offset + limit], np.int64)
    ends = zip(np.searchsorted(tags, page).tolist(), np.searchsorted(tags, page, "right").tolist(), strict=True)
    names = [rows[first + int(np.argmax(uses[first:end]))][1] for first, end in ends]
    counted = zip(names, notes[page].tolist(), strict=True)
    return TagCounts(tags=tuple(TagCount(name=str(name), notes=n) for name, n in counted), total=len(used))


def _distinct(groups: NDArray[np.int64], files: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Count the files of each of *size* groups, each file once a group."""
    span = int(files.max(initial=0)) + 1
    pairs = np.sort(groups * span + files)
    return np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] // span, minlength=size)
