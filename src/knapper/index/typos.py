"""Find the words that a mistyped word may mean, among those of names."""

import json
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from knapper.vault import paths

MIN_LETTERS = 4
"""A shorter word is like too many others."""
_CANDIDATES = 100
_LIKE = 78.0
"""How alike, of 100, a word has to be."""


def corrections(
    connection: sqlite3.Connection, words: Sequence[str], *, allowed: NDArray[np.bool_] | None
) -> dict[str, str]:
    """Give for each word the likest word of a title or alias, where one is alike enough.

    Args:
        connection: The index.
        words: Words that the index doesn't know as they are.
        allowed: By file id: whether its names may be used; None allows all.

    Returns:
        ``{"apearance": "appearance"}``; words that nothing is like are left out.
    """
    found: dict[str, str] = {}
    for word in words:
        folded = paths.name_key(word)
        if len(folded) < MIN_LETTERS or not folded.isalpha():
            continue
        from rapidfuzz import fuzz  # noqa: PLC0415 - 30 ms that only a mistyped word should cost

        alike = [(fuzz.ratio(folded, part), part) for part in set(_words(connection, folded, allowed))]
        likeness, best = max(alike, default=(0.0, ""))
        if likeness >= _LIKE:
            found[word] = best
    return found


def _words(connection: sqlite3.Connection, word: str, allowed: NDArray[np.bool_] | None) -> Iterator[str]:
    """Give the words of the names that share most three-letter pieces with *word*."""
    pieces = sorted({word[at : at + 3] for at in range(len(word) - 2)})
    match = " OR ".join(f'"{piece}"' for piece in pieces)
    rows = connection.execute(
        "SELECT g.rowid, f.title_row FROM name_grams g JOIN files f ON f.id = g.rowid"
        " WHERE name_grams MATCH ? ORDER BY bm25(name_grams) LIMIT ?",
        (match, _CANDIDATES),
    )
    for file, row in rows:
        if allowed is None or (file < len(allowed) and allowed[file]):
            names = paths.name_key(str(json.loads(row)[3]))
            yield from ("".join(c for c in part if c.isalnum()) for part in names.split())
