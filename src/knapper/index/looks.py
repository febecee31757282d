"""Look at one state of the SQLite store, through all that is remembered about it in memory."""

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from knapper.index import schema, typos
from knapper.index.allowed import Allowed
from knapper.index.filters import Filter
from knapper.index.keyword import Keywords
from knapper.index.ports import RANKING
from knapper.index.segment import Query
from knapper.index.store import Row, Store
from knapper.index.vectors import Vectors
from knapper.vault.paths import NotePath

_MANY = 10_000
"""Vectors of a vault so large that ranking takes longer than handing it to another thread."""


class SqliteLooks:
    """Keep word counts, filters' answers and one model's vectors between looks; any thread may look."""

    def __init__(self, store: Store, *, many: int = _MANY) -> None:
        """Look at *store*; from so *many* vectors on, threads rank beside the one that asks."""
        self._store = store
        self._many = many
        self._keywords = Keywords()
        self._vectors = Vectors("")
        self.allowed = Allowed()
        self._beside = ThreadPoolExecutor(_ranking_threads(), thread_name_prefix=RANKING)

    @contextmanager
    def look(self, model: str) -> Generator["SqliteLook"]:
        """Hold one state while several questions are asked; *model* says whose vectors count."""
        if model and self._vectors.model != model:
            self._vectors = Vectors(model)
        with self._store.database.snapshot() as connection:
            yield SqliteLook(
                store=self._store,
                connection=connection,
                words=self._keywords,
                meanings=self._vectors,
                allowed=self.allowed,
                beside=self._beside,
                many=self._many,
            )

    def close(self) -> None:
        """End the threads; what they still do is waited for."""
        self._beside.shutdown()
        self._keywords.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteLook:
    """Answer questions about one state; see `knapper.index.ports.Look`."""

    store: Store
    connection: sqlite3.Connection
    words: Keywords
    meanings: Vectors
    allowed: Allowed
    beside: Executor
    many: int

    def keyword(self, query: Query, where: Filter, *, limit: int) -> dict[int, float]:
        """Rank by FTS5's BM25."""
        allowed, logs = self._mask(where), where.include_log
        return self.words.chunks(self.connection, query, limit=limit, allowed=allowed, include_log=logs)

    def names(self, query: Query, where: Filter) -> dict[int, float]:
        """Rank titles, aliases and headings."""
        return self.words.names(self.connection, query, allowed=self._mask(where))

    def nearest(self, vector: NDArray[np.float32], where: Filter, *, limit: int) -> Callable[[], Mapping[int, float]]:
        """Multiply all vectors in memory with it; many of them in a thread, beside what SQLite does."""
        self.meanings.sync(self.connection)
        without = () if where.include_log else self._logged()
        rank = partial(self.meanings.rank, vector, limit=limit, allowed=self._mask(where), without=without)
        if len(self.meanings) >= self.many:
            return self.beside.submit(rank).result
        found = rank()
        return lambda: found

    def fits(self, vector: NDArray[np.float32]) -> bool:
        """Count its numbers."""
        self.meanings.sync(self.connection)
        return self.meanings.fits(vector)

    def vectors(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Take them from memory."""
        self.meanings.sync(self.connection)
        return self.meanings.take(ids)

    def passing(self, query: Query, ids: Collection[int]) -> set[int]:
        """Ask the word index."""
        return self.words.passing(self.connection, query, ids)

    def corrections(self, query: Query, where: Filter) -> Mapping[str, str]:
        """Compare with the names that share three-letter pieces."""
        allowed = self._mask(where)
        unknown = self.words.unknown(self.connection, query, allowed=allowed)
        return typos.corrections(self.connection, unknown, allowed=allowed) if unknown else {}

    def note(self, chunk_id: int) -> int:
        """Read it from the chunk's id."""
        return chunk_id >> schema.CHUNK_BITS

    def chunks(self, note: NotePath) -> list[int]:
        """Ask for the range of the note's ids."""
        rows = self.connection.execute(
            "SELECT c.id FROM files f JOIN chunks c ON c.id >= f.id << ?1 AND c.id < (f.id + 1) << ?1"
            " WHERE f.path = ?2 AND c.kind != 'log'",
            (schema.CHUNK_BITS, note),
        )
        return [int(i) for (i,) in rows]

    def paths(self, notes: Collection[int]) -> dict[int, NotePath]:
        """Ask by file id."""
        rows = self.connection.execute(
            "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(notes)),)
        )
        return {int(i): NotePath(path) for i, path in rows}

    def first(self, note: int) -> int | None:
        """Take the first text; properties only where there is none, and what the program logged never."""
        row = self.connection.execute(
            "SELECT id FROM chunks WHERE id >= ? AND id < ? AND kind != 'log'"
            " ORDER BY kind = 'frontmatter', position LIMIT 1",
            schema.chunk_range(note),
        ).fetchone()
        return int(row[0]) if row else None

    def properties(self, ids: Collection[int]) -> set[int]:
        """Ask by kind."""
        rows = self.connection.execute(
            "SELECT id FROM chunks WHERE kind = 'frontmatter' AND id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        return {int(i) for (i,) in rows}

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Read them from the store."""
        return self.store.rows(ids)

    def _logged(self) -> list[int]:
        return [int(i) for (i,) in self.connection.execute(schema.LOGGED)]

    def _mask(self, where: Filter) -> NDArray[np.bool_] | None:
        return self.allowed.mask(self.connection, where)


def _ranking_threads() -> int:
    """Leave half of the processors to what asks: two multiplications at once wait for the same memory anyway."""
    return max((os.cpu_count() or 1) // 2, 1)
