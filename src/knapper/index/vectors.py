"""Rank chunks by the cosine between their vectors and the query's."""

import sqlite3
import threading
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from knapper.index import database, integrity

_MIN_CAPACITY = 1_024
_GROWTH_FACTOR = 1.25
"""Capacity relative to the stored vectors, so that the next added vectors don't require a copy of all."""
_MAX_REMOVED_SHARE = 0.125
"""Of all rows, until the matrix is made anew: 50,000 vectors take 53 MB, and 15 ms to copy."""
_LOAD_ROWS = 8_192
_MAX_ELEMENT = 1.01
"""No element of a vector of length 1 is larger, except for the rounding of float16."""


class VectorCache:
    """The vectors of one model in memory, updated from the index's changes.

    One matrix of float32: 100,000 chunks of 256 dimensions take 102 MB.
    """

    def __init__(self, model: str) -> None:
        """Start empty; ``sync`` fills it."""
        self.model = model
        self._lock = threading.Lock()
        self._reset()

    def sync(self, connection: sqlite3.Connection) -> None:
        """Apply the changes since the last call, as of *connection*'s snapshot."""
        with self._lock:
            uid, generation = database.state_of(connection)
            if (uid, generation) == (self._uid, self._generation):
                return
            if uid != self._uid or self._generation < database.removed_since(connection):
                self._reset()
                self._uid = uid
            self._drop(connection)
            self._add(connection)
            self._generation = generation

    def rank(
        self,
        query: NDArray[np.float32],
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        without: Collection[int] = (),
    ) -> dict[int, float]:
        """Return the nearest chunks with their cosine, nearest first.

        Chunks with a cosine of 0 or less are left out.

        Args:
            query: Normalised; a vector of other dimensions than the stored ones has no neighbours.
            limit: Maximum number of chunks.
            allowed: Mask by file id of the files whose chunks may be found; None allows all.
            without: Chunks to leave out.
        """
        # Only for the moment of copying: the rows in use never change in place; ids do, for removed chunks.
        with self._lock:
            ids, rows = self._ids[: self._used].copy(), self._matrix[: self._used]
            hidden = [self._places[chunk_id] for chunk_id in without if chunk_id in self._places]
        if len(query) != rows.shape[1]:
            return {}
        is_excluded = ~_allowed_places(ids, allowed)
        is_excluded[hidden] = True
        return _nearest(ids, rows @ query, is_excluded, limit)

    def rows_of(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return the vectors of those chunks that have one: their ids, and a row for each."""
        with self._lock:
            places_by_id = {chunk_id: self._places[chunk_id] for chunk_id in ids if chunk_id in self._places}
            return list(places_by_id), self._matrix[list(places_by_id.values())]

    def fits(self, query: NDArray[np.float32]) -> bool:
        """Return whether a query's vector has the stored dimensions; true where none are stored."""
        return not self._places or len(query) == self._matrix.shape[1]

    @property
    def held_rows(self) -> int:
        """Return how many rows take memory: those of the vectors, and of removed ones."""
        return self._used

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._places)

    def _reset(self) -> None:
        self._uid = ""
        self._generation = -1
        self._used = 0
        self._ids = np.empty(0, np.int64)
        self._matrix = np.empty((0, 0), np.float32)
        self._places: dict[int, int] = {}

    def _drop(self, connection: sqlite3.Connection) -> None:
        if self._generation < 0:
            return
        for (chunk_id,) in connection.execute("SELECT chunk_id FROM removed WHERE generation > ?", (self._generation,)):
            place = self._places.pop(chunk_id, None)
            if place is not None:
                self._ids[place] = -1
        if self._used - len(self._places) > _MAX_REMOVED_SHARE * self._used + _MIN_CAPACITY:
            self._compact()

    def _add(self, connection: sqlite3.Connection) -> None:
        newest_row = connection.execute(
            "SELECT length(vector) FROM vectors WHERE generation > ? AND model = ? ORDER BY generation DESC LIMIT 1",
            (self._generation, self.model),
        ).fetchone()
        if newest_row is None:
            return
        size = int(newest_row[0])
        dimensions = size // 2
        # The model behind the name was replaced by one of other dimensions.
        if self._matrix.shape[1] != dimensions:
            uid = self._uid
            self._reset()
            self._uid, self._matrix = uid, np.empty((0, dimensions), np.float32)
        new_rows_sql = "FROM vectors WHERE generation > ? AND model = ? AND length(vector) = ?"
        parameters = (self._generation, self.model, size)
        self._make_room(
            int(connection.execute(f"SELECT COUNT(*) {new_rows_sql}", parameters).fetchone()[0]), dimensions
        )
        cursor = connection.execute(f"SELECT chunk_id, vector {new_rows_sql}", parameters)
        while rows := cursor.fetchmany(_LOAD_ROWS):
            # A recomputed vector gets a new row, so that running rankings still read the old one.
            for chunk_id, _ in rows:
                old_place = self._places.pop(chunk_id, None)
                if old_place is not None:
                    self._ids[old_place] = -1
            start, stop = self._used, self._used + len(rows)
            self._ids[start:stop] = [chunk_id for chunk_id, _ in rows]
            block = np.frombuffer(b"".join(vector for _, vector in rows), np.float16)
            # Also false for NaN, which a flipped bit can make.
            if not np.abs(block).max(initial=0) <= _MAX_ELEMENT:
                raise integrity.damage_error("a vector isn't one that was stored")
            self._matrix[start:stop] = block.reshape(-1, dimensions)
            self._places.update(zip((chunk_id for chunk_id, _ in rows), range(start, stop), strict=True))
            self._used = stop

    def _make_room(self, more: int, dimensions: int) -> None:
        needed = self._used + more
        if needed <= len(self._ids):
            return
        # Pages of an array that nothing was written to yet take no memory.
        capacity = max(int(needed * _GROWTH_FACTOR), _MIN_CAPACITY)
        self._ids = np.resize(self._ids, capacity) if len(self._ids) else np.empty(capacity, np.int64)
        larger_matrix = np.empty((capacity, dimensions), np.float32)
        larger_matrix[: self._used] = self._matrix[: self._used]
        self._matrix = larger_matrix

    def _compact(self) -> None:
        alive = np.flatnonzero(self._ids[: self._used] >= 0)
        self._ids, self._matrix = self._ids[alive].copy(), self._matrix[alive].copy()
        self._used = len(alive)
        self._places = {int(chunk_id): place for place, chunk_id in enumerate(self._ids)}


def _nearest(
    ids: NDArray[np.int64], scores: NDArray[np.float32], is_excluded: NDArray[np.bool_], limit: int
) -> dict[int, float]:
    scores[is_excluded] = -np.inf
    best = _largest_places(scores, limit)
    return {int(ids[i]): float(scores[i]) for i in best if scores[i] > 0}


def _allowed_places(ids: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Return which rows are of allowed chunks; a file added after the mask was made isn't allowed."""
    is_used = ids >= 0
    if allowed is None:
        return is_used
    files = np.where(is_used, ids >> database.CHUNK_BITS, 0)
    return is_used & (files < len(allowed)) & allowed[np.minimum(files, len(allowed) - 1)]


def _largest_places(scores: NDArray[np.float32], limit: int) -> NDArray[np.intp]:
    """Return the indexes of the largest scores, largest first; equal ones by index."""
    if len(scores) > limit:
        best = np.argpartition(-scores, limit)[:limit]
        best.sort()
    else:
        best = np.arange(len(scores))
    return best[np.argsort(-scores[best], kind="stable")]
