"""Replace a file's chunks, their words and their vectors."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knapper.index import schema, waiting
from knapper.index.segment import segment

if TYPE_CHECKING:
    from knapper.index.chunks import Chunk

SEPARATOR = "\x1f"
"""Stands between the headings of a stored heading path; no heading holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Hold what is needed to recognise a stored chunk, and to take its words out of the index again."""

    id: int
    digest: bytes
    text: str
    path: str


def read(connection: sqlite3.Connection, file_id: int) -> list[Stored]:
    """Read a file's stored chunks, by id."""
    rows = connection.execute(
        "SELECT id, digest, text, path FROM chunks WHERE id >= ? AND id < ? ORDER BY id", schema.chunk_range(file_id)
    )
    return [Stored(id=i, digest=d, text=t, path=p) for i, d, t, p in rows]


def replace(
    connection: sqlite3.Connection,
    file_id: int,
    title: str,
    chunks: Sequence[Chunk],
    *,
    first_free: int,
    generation: int,
) -> int:
    """Make *chunks* the file's chunks.

    Args:
        connection: Inside a transaction.
        file_id: The file that owns them.
        title: The file's title, part of what is searched with each chunk.
        chunks: In order of position.
        first_free: The first chunk number that the file never used.
        generation: The running transaction's.

    Returns:
        The first free chunk number afterwards.
    """
    kept, added, gone = _match(read(connection, file_id), chunks)
    remove(connection, title, gone, generation=generation)
    connection.executemany(
        "UPDATE chunks SET position = ?, start = ?, stop = ?, start_line = ?, end_line = ? WHERE id = ?",
        [(n, c.start, c.stop, c.start_line, c.end_line, i) for i, n, c in kept],
    )
    low, _ = schema.chunk_range(file_id)
    numbered = [(low + first_free + offset, n, chunk) for offset, (n, chunk) in enumerate(added)]
    _insert(connection, title, numbered)
    reused = _reuse_vectors(connection, numbered, generation=generation)
    waiting.add(connection, (i for i, _, _ in numbered if i not in reused))
    return first_free + len(numbered)


def remove(connection: sqlite3.Connection, title: str, gone: Iterable[Stored], *, generation: int) -> None:
    """Take chunks out, with their words and vectors."""
    rows = list(gone)
    connection.executemany(
        "INSERT INTO chunk_words (chunk_words, rowid, title, heading, body) VALUES ('delete', ?, ?, ?, ?)",
        [(old.id, *_words(title, old.path, old.text)) for old in rows],
    )
    ids = [(old.id,) for old in rows]
    connection.executemany("DELETE FROM chunks WHERE id = ?", ids)
    connection.executemany("DELETE FROM vectors WHERE chunk_id = ?", ids)
    waiting.drop(connection, (old.id for old in rows))
    connection.executemany("INSERT INTO removed VALUES (?, ?)", [(generation, old.id) for old in rows])


def _match(
    old: Sequence[Stored], new: Sequence[Chunk]
) -> tuple[list[tuple[int, int, Chunk]], list[tuple[int, Chunk]], list[Stored]]:
    """Pair stored and new chunks of one digest, in order."""
    free: defaultdict[bytes, list[Stored]] = defaultdict(list)
    for stored in reversed(old):
        free[stored.digest].append(stored)
    kept: list[tuple[int, int, Chunk]] = []
    added: list[tuple[int, Chunk]] = []
    for position, chunk in enumerate(new):
        if free.get(chunk.digest):
            kept.append((free[chunk.digest].pop().id, position, chunk))
        else:
            added.append((position, chunk))
    return kept, added, [stored for rest in free.values() for stored in rest]


def _words(title: str, path: str, text: str) -> tuple[str, str, str]:
    """Give what the word index reads; the same when a chunk is taken out again, since the table keeps no text."""
    return segment(title), segment(path), segment(text)


def _insert(connection: sqlite3.Connection, title: str, numbered: Sequence[tuple[int, int, Chunk]]) -> None:
    connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                i,
                n,
                c.kind,
                c.heading,
                SEPARATOR.join(c.path),
                c.start,
                c.stop,
                c.start_line,
                c.end_line,
                c.digest,
                c.text,
            )
            for i, n, c in numbered
        ],
    )
    connection.executemany(
        "INSERT INTO chunk_words (rowid, title, heading, body) VALUES (?, ?, ?, ?)",
        [(i, *_words(title, SEPARATOR.join(c.path), c.text)) for i, _, c in numbered],
    )


def _reuse_vectors(
    connection: sqlite3.Connection, numbered: Sequence[tuple[int, int, Chunk]], *, generation: int
) -> set[int]:
    """Copy vectors of equal chunks elsewhere: a moved or copied note needn't be embedded again; tells for which."""
    found = [
        (i, generation, *row)
        for i, _, chunk in numbered
        for row in connection.execute(
            "SELECT v.model, v.vector FROM chunks c JOIN vectors v ON v.chunk_id = c.id"
            " WHERE c.digest = ? AND v.model = (SELECT value FROM meta WHERE key = 'model') LIMIT 1",
            (chunk.digest,),
        )
    ]  # INSERT ... SELECT would make FTS5 write out its buffered words each time
    connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", found)
    return {row[0] for row in found}
