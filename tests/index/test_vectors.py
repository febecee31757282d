"""The vectors in memory, as the index's changes come and go."""

import sqlite3

import numpy as np
from numpy.typing import NDArray

from knapper.index.vectors import VectorCache

COUNT = 4_000
SIZE = 8


def test_memory_stays_flat_while_notes_change_for_ever() -> None:
    connection = _opened()
    cache = VectorCache("m")
    _write(connection, range(COUNT), generation=1)
    cache.sync(connection)
    first = cache.held_rows

    held: list[int] = []
    for generation in range(2, 60):
        start = (generation - 2) * 500
        _remove(connection, range(start, start + 500), generation)
        _write(connection, range(COUNT + start, COUNT + start + 500), generation)
        cache.sync(connection)
        held.append(cache.held_rows)

    assert first == COUNT
    assert len(cache) == COUNT
    assert max(held) < 1.6 * COUNT
    newest = COUNT + 58 * 500 - 1
    assert next(iter(cache.rank(_vector(newest), limit=1, allowed=None))) == newest
    assert set(cache.rank(np.ones(SIZE, np.float32), limit=COUNT * 2, allowed=None)) <= set(range(29_000, newest + 1))


def _opened() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);"
        "CREATE TABLE vectors (chunk_id INTEGER PRIMARY KEY, generation INTEGER, model TEXT, vector BLOB);"
        "CREATE TABLE removed (generation INTEGER, chunk_id INTEGER);"
        "INSERT INTO meta VALUES ('uid', 'u'), ('generation', '0');"
    )
    return connection


def _write(connection: sqlite3.Connection, ids: range, generation: int) -> None:
    rows = [(one, generation, _vector(one).astype(np.float16).tobytes()) for one in ids]
    connection.executemany("INSERT INTO vectors VALUES (?, ?, 'm', ?)", rows)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'generation'", (str(generation),))


def _remove(connection: sqlite3.Connection, ids: range, generation: int) -> None:
    connection.executemany("DELETE FROM vectors WHERE chunk_id = ?", [(one,) for one in ids])
    connection.executemany("INSERT INTO removed VALUES (?, ?)", [(generation, one) for one in ids])


def _vector(seed: int) -> NDArray[np.float32]:
    found = np.abs(np.random.default_rng(seed).standard_normal(SIZE))
    return (found / np.linalg.norm(found)).astype(np.float32)
