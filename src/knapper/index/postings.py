"""Score rows by the words they hold, all at once.

SQLite's own ``bm25()`` looks up a row's length each time it scores the row, which takes most of its time. Here the
lengths are in memory, and the engine only tells where each word stands.
"""

import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from knapper.index import schema, terms
from knapper.index.lengths import Lengths
from knapper.index.terms import Word

_K1 = 1.2
_B = 0.75
"""FTS5's constants of BM25."""
_CODE_BITS = 2
"""Bits that tell the column beside a row's id."""
_Standing = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Rows by ascending id, and a number for each."""


class Postings:
    """Score the rows of a table whose ids aren't used twice; any thread may ask."""

    def __init__(self, table: str, weights: Mapping[str, float]) -> None:
        """Score the FTS5 table *table*; *weights* tells what a word in each of its columns counts, four at most."""
        self._table = table
        self._weights = np.array([*weights.values()])
        code = " ".join(f"WHEN '{column}' THEN {code}" for code, column in enumerate(weights))
        self._codes = f"(doc << {_CODE_BITS}) + CASE col {code} END"
        self.score = f"-bm25({table}, {', '.join(map(str, weights.values()))})"
        """Asks the engine for a row's score."""
        self.lengths = Lengths(table, columns=len(weights))

    def scores(self, connection: sqlite3.Connection, words: Sequence[Word]) -> _Standing:
        """Give the rows that hold any of *words*, with their scores: what ``bm25()`` gives.

        Raises:
            sqlite3.DatabaseError: The index is damaged.
        """
        standing = self._standing(connection, words)
        ids = np.concatenate([ids for ids, _ in standing])
        if not len(ids):  # all that held them have gone since they were counted, and the table may be empty
            return ids, np.empty(0, np.float64)
        known, places = self.lengths.find(connection, ids)
        total, length = self.lengths.total(connection)
        lengths = known.words[places].astype(np.float64)
        norms = _K1 * (1 - _B + _B * lengths * (total / max(length, 1)))
        scored: list[NDArray[np.float64]] = []
        at = 0
        for word, (_, values) in zip(words, standing, strict=True):
            one = _bm25(values, norms[at : at + len(values)], total) if word.token else values
            scored.append(one * word.times)
            at += len(values)
        summed = np.bincount(places, weights=np.concatenate(scored)).astype(np.float64, copy=False)
        held = np.flatnonzero(summed > 0)
        return known.ids[held], summed[held]

    def _standing(self, connection: sqlite3.Connection, words: Sequence[Word]) -> list[_Standing]:
        """Ask for all words at once, for one text each: each row would let other threads in between."""
        asked = ", ".join(self._one() if word.token else self._several() for word in words)
        told = connection.execute(f"SELECT {asked}", [word.token or word.expression for word in words]).fetchone()
        return [
            self._counted(text or "") if word.token else _scored(text or "")
            for word, text in zip(words, told, strict=True)
        ]

    def _one(self) -> str:
        """Ask where a token stands: once for each time."""
        return f"(SELECT group_concat({self._codes}, ' ') FROM {schema.STANDING[self._table]} WHERE term = ?)"

    def _several(self) -> str:
        """Ask for the rows and scores of what isn't one token."""
        scored = f"SELECT rowid AS id, {self.score} AS score FROM {self._table} WHERE {self._table} MATCH ?"
        return f"(SELECT group_concat(id || ' ' || quote(score), ' ') FROM ({scored} ORDER BY rowid LIMIT -1))"

    def _counted(self, text: str) -> _Standing:
        """Give the rows that a token stands in, and the sum of the weights of its columns."""
        codes = np.fromstring(text, np.int64, sep=" ")
        ids = codes >> _CODE_BITS
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        weights = self._weights[codes & ((1 << _CODE_BITS) - 1)]
        return ids[starts], np.add.reduceat(weights, starts) if len(starts) else weights


def _scored(text: str) -> _Standing:
    told = np.fromstring(text, np.float64, sep=" ")
    return told[::2].astype(np.int64), told[1::2]


def _bm25(often: NDArray[np.float64], norms: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    return terms.weight(len(often), total) * (_K1 + 1) * often / (often + norms)
