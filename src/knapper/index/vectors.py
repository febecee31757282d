"""Rank chunks by the cosine between their vectors and the query's."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knapper.index import database, integrity, vector_file
from knapper.index.arrays import np
from knapper.index.vector_file import VectorFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIN_CAPACITY = 1_024
_GROWTH_FACTOR = 1.25
"""Capacity relative to the stored vectors, so that the next added vectors don't require a copy of all."""
_MAX_REMOVED_SHARE = 0.125
"""Of all rows, until the matrix is made anew: 50,000 vectors take 53 MB, and 15 ms to copy."""
_LOAD_ROWS = 8_192
_MAX_ELEMENT = 1.01
"""No element of a vector of length 1 is larger, except for the rounding of float16."""


_MIN_CANDIDATES = 600
_CANDIDATES_PER_RESULT = 3
_ROWS_PER_CANDIDATE = 500
"""What codes choose for the exact rows to rank: 600 hold .99 of the nearest 200 of 100,000, and .96 of a million."""
_KEPT_MASKS = 8
"""Of 0.1 MB for 100,000 rows each."""


class VectorCache:
    """The vectors of one model, updated from the index's changes.

    Those of a large index are in a mapped file; what changed since, and all of a small index, in one matrix of float32.
    """

    def __init__(self, model: str, folder: Path | None = None) -> None:
        """Start empty; ``sync`` fills it. *folder* is the index's own, where a large one has its file."""
        self.model = model
        self._folder = folder
        self._lock = threading.Lock()
        self._refused: Path | None = None
        self._clear()  # the arrays come with the first sync: most commands need none, nor numpy

    def sync(self, connection: sqlite3.Connection) -> None:
        """Apply the changes since the last call, as of *connection*'s snapshot."""
        with self._lock:
            uid, generation = database.state_of(connection)
            if (uid, generation) == (self._uid, self._generation):
                return
            if uid != self._uid or self._generation < database.removed_since(connection):
                self._reset()
                self._uid = uid
            self._map(connection)
            self._drop(connection)
            self._add(connection)
            self._generation = generation
            self._version += 1

    def rank(
        self,
        query: NDArray[np.float32],
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        without: Collection[int] = (),
    ) -> dict[int, float]:
        """Return the nearest chunks with their cosine, nearest first.

        Chunks with a cosine of 0 or less are left out. In a large index with codes, a chunk beyond the first ten may be
        missing, about one of 250; every cosine is exact.

        Args:
            query: Normalised; a vector of other dimensions than the stored ones has no neighbours.
            limit: Maximum number of chunks.
            allowed: Mask by file id of the files whose chunks may be found; None allows all. It doesn't change.
            without: Chunks to leave out.

        Raises:
            LookupError: The file is damaged. It isn't used any more: what ``sync`` does next reads all vectors.
        """
        # Only for the moment of copying: the rows in use never change in place; ids do, for removed chunks.
        with self._lock:
            ids, rows = self._ids[: self._used].copy(), self._matrix[: self._used]
            hidden = [self._places[chunk_id] for chunk_id in without if chunk_id in self._places]
            file = self.file
            is_left_out = self._excluded_rows(file, allowed, without) if file else None
        ranked: dict[int, float] = {}
        if file and is_left_out is not None and len(query) == file.rows.shape[1]:
            try:
                candidates = max(_MIN_CANDIDATES, _CANDIDATES_PER_RESULT * limit, len(file.ids) // _ROWS_PER_CANDIDATE)
                places, scores = file.score(query, is_left_out, candidates)
            except LookupError:
                self._discard(file)
                raise
            ranked = _nearest(file.ids[places], scores, scores == -np.inf, limit)
        if len(query) == rows.shape[1] and len(ids):
            is_excluded = ~_allowed_places(ids, allowed)
            is_excluded[hidden] = True
            ranked |= _nearest(ids, rows @ query, is_excluded, limit)
            if file:
                ranked = dict(sorted(ranked.items(), key=lambda item: -item[1])[:limit])
        return ranked

    def rows_of(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return the vectors of those chunks that have one: their ids, and a row for each."""
        with self._lock:
            places_by_id = {chunk_id: self._places[chunk_id] for chunk_id in ids if chunk_id in self._places}
            if not self.file:
                return list(places_by_id), self._matrix[list(places_by_id.values())]
            others = np.array([chunk_id for chunk_id in ids if chunk_id not in places_by_id], np.int64)
            places, is_there = self.file.find(others)
            is_there &= ~self._is_gone[places]
            newer = self._matrix[list(places_by_id.values())].reshape(-1, self.file.rows.shape[1])
            found = [*places_by_id, *others[is_there].tolist()]
            return found, np.concatenate((newer, self.file.rows[places[is_there]]))

    def fits(self, query: NDArray[np.float32]) -> bool:
        """Return whether a query's vector has the stored dimensions; true where none are stored."""
        if self.file:
            return len(query) == self.file.rows.shape[1]
        return not self._places or len(query) == self._matrix.shape[1]

    @property
    def held_rows(self) -> int:
        """Return how many rows take memory: those of the vectors outside the file, and of removed ones."""
        return self._used

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._places) + self._kept_rows

    def _reset(self) -> None:
        self._clear()
        self._ids = np.empty(0, np.int64)
        self._matrix = np.empty((0, 0), np.float32)
        self._is_gone = np.empty(0, np.bool_)

    def _clear(self) -> None:
        self._uid = ""
        self._generation = -1
        self._used = 0
        self._places: dict[int, int] = {}
        self.file: VectorFile | None = None
        """What it began from; None where the index is small, or has none that is whole."""
        self._kept_rows = 0
        self._version = 0
        self._masks: list[tuple[NDArray[np.bool_] | None, int, NDArray[np.bool_]]] = []

    def _map(self, connection: sqlite3.Connection) -> None:
        """Begin from the file that the database names, where it is newer than what was begun from."""
        path = vector_file.named(connection, self._folder) if self._folder else None
        if self.file and not self.file.path.exists():
            self._reset()  # it was found to be wrong, or another one took its place
            self._uid = database.state_of(connection)[0]
        if path is None or path == self._refused or (self.file and self.file.path == path):
            return
        uid, generation = database.state_of(connection)
        file = VectorFile.open(path, uid, self.model)
        if file is None or not database.removed_since(connection) <= file.generation <= generation:
            if file is None:
                self._refused = path
                vector_file.remove_damaged(path)
            return
        self._reset()
        self._uid, self._generation = uid, file.generation
        self.file, self._is_gone, self._kept_rows = file, np.zeros(len(file.ids), np.bool_), len(file.ids)
        self._matrix = np.empty((0, file.rows.shape[1]), np.float32)

    def _discard(self, file: VectorFile) -> None:
        """Leave a damaged file, and read all vectors at the next call."""
        with self._lock:
            self._refused = file.path
            vector_file.remove(file.path)
            self._reset()

    def _excluded_rows(
        self, file: VectorFile, allowed: NDArray[np.bool_] | None, without: Collection[int]
    ) -> NDArray[np.bool_]:
        """Return which of the file's rows are left out; the last masks are kept, as they take longer than the rest."""
        kept = next((kept for kept in self._masks if kept[0] is allowed and kept[1] == self._version), None)
        if kept is None:
            kept = allowed, self._version, self._is_gone | ~_allowed_places(file.ids, allowed)
            self._masks = [kept, *self._masks[: _KEPT_MASKS - 1]]
        is_excluded = kept[2]
        if without:
            places, is_there = file.find(np.fromiter(without, np.int64, len(without)))
            is_excluded = is_excluded.copy()
            is_excluded[places[is_there]] = True
        return is_excluded

    def _drop(self, connection: sqlite3.Connection) -> None:
        if self._generation < 0:
            return
        removed = [
            int(chunk_id)
            for (chunk_id,) in connection.execute(
                "SELECT chunk_id FROM removed WHERE generation > ?", (self._generation,)
            )
        ]
        self._forget(removed)
        if self._used - len(self._places) > _MAX_REMOVED_SHARE * self._used + _MIN_CAPACITY:
            self._compact()

    def _forget(self, chunks: Sequence[int]) -> None:
        """Leave out the rows of chunks that were removed, or that get a new row."""
        for chunk_id in chunks:
            place = self._places.pop(chunk_id, None)
            if place is not None:
                self._ids[place] = -1
        if self.file and chunks:
            places, is_there = self.file.find(np.array(chunks, np.int64))
            self._is_gone[places[is_there]] = True
            self._kept_rows = len(self._is_gone) - int(np.count_nonzero(self._is_gone))

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
            self._forget([chunk_id for chunk_id, _ in rows])
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
