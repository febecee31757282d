"""Find the names that a mistyped word may mean."""

import json
import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from knapper.vault import paths

MIN_LETTERS = 4
"""A shorter word is like too many others."""
_CANDIDATES = 100
_LIKE = 75.0
"""How alike, of 100, a word of a name has to be."""


def names(
    connection: sqlite3.Connection, words: Sequence[str], *, allowed: NDArray[np.bool_] | None
) -> dict[int, float]:
    """Score files whose title or aliases hold a word like one of *words*.

    Args:
        connection: The index.
        words: Words that the index doesn't know as they are.
        allowed: By file id: whether it may be found; None allows all.

    Returns:
        By file id, the mean over *words* of how alike the likest word of a name is, 0 to 1; others are left out.
    """
    asked = [paths.key(word) for word in words if len(word) >= MIN_LETTERS]
    if not asked:
        return {}
    scores: dict[int, float] = {}
    for file, name in _candidates(connection, asked):
        if allowed is not None and not (file < len(allowed) and allowed[file]):
            continue
        likest = [_likeness(word, paths.key(name)) for word in asked]
        if max(likest) >= _LIKE:
            score = sum(like for like in likest if like >= _LIKE) / len(asked) / 100
            scores[file] = max(score, scores.get(file, 0.0))
    return scores


def _likeness(word: str, name: str) -> float:
    return max((fuzz.ratio(word, part) for part in (*name.split(), name)), default=0.0)


def _candidates(connection: sqlite3.Connection, words: Sequence[str]) -> list[tuple[int, str]]:
    """Give names that share most three-letter pieces with one of the words."""
    found: dict[int, list[str]] = {}
    for word in words:
        pieces = {word[at : at + 3] for at in range(len(word) - 2)}
        match = " OR ".join('"' + piece.replace('"', '""') + '"' for piece in sorted(pieces))
        rows = connection.execute(
            "SELECT g.rowid, f.title_row FROM name_grams g JOIN files f ON f.id = g.rowid"
            " WHERE name_grams MATCH ? ORDER BY bm25(name_grams) LIMIT ?",
            (match, _CANDIDATES),
        )
        for file, row in rows:
            found[int(file)] = str(json.loads(row)[3]).split("\n")
    return [(file, name) for file, names_of in found.items() for name in names_of]
