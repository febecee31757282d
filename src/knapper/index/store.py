"""Keep notes and chunks in SQLite; a file's chunks are replaced in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from knapper.index import chunk_rows, file_rows, schema, waiting
from knapper.index.database import Database
from knapper.index.records import Known, Record
from knapper.jsontypes import JSONValue
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from knapper.index.chunks import Chunk


REMEMBERED_GENERATIONS = 1_000
"""How far a reader's vectors may be behind before it loads them all again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Hold a stored chunk with its note."""

    id: int
    note: NotePath
    title: str
    hash: str
    kind: str
    heading: str
    path: tuple[str, ...]
    start: int
    stop: int
    start_line: int
    end_line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Hold a chunk that waits for its vector."""

    id: int
    title: str
    path: tuple[str, ...]
    text: str


class Store:
    """Write and read one vault's index."""

    def __init__(self, path: Path) -> None:
        """Open the store in the file *path*, and make it where it isn't there."""
        self.database = Database(path)

    def generation(self) -> int:
        """Count the transactions that have been written; equal numbers mean an equal index."""
        return generation_of(self.database.reader(trusted_s=0))

    def clear(self) -> None:
        """Forget everything."""
        self.database.rebuild()

    def close(self) -> None:
        """Close the store's connections."""
        self.database.close()

    @contextmanager
    def batch(self) -> Generator[None]:
        """Put several writes into one transaction."""
        with self.database.transaction():
            yield

    def apply(self, record: Record, chunks: Sequence[Chunk]) -> None:
        """Replace what is stored of a file; chunks whose digest stays keep their words and vectors."""
        with self.database.transaction() as connection:
            row = _file_row(connection, record.path)
            if row is not None and row[1] + len(chunks) >= schema.MAX_CHUNKS:
                self.remove([record.path])
                row = None
            file_id, first_free = row or (file_rows.insert(connection, record), 0)
            next_chunk = chunk_rows.replace(
                connection,
                file_id,
                record.title,
                chunks,
                first_free=first_free,
                generation=generation_of(connection),
            )
            file_rows.write(connection, file_id, record, next_chunk=next_chunk)

    def touch(self, record: Record) -> None:
        """Note that a file was looked at again and still says the same."""
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE files SET mtime_ns = ?, racy = ?, modified = ?, created = ? WHERE path = ?",
                (record.stat.mtime_ns, record.racy, record.modified, record.created, record.path),
            )

    def settle(self, paths: Sequence[NotePath]) -> None:
        """Note that the time of files tells their next save; what is answered stays the same."""
        if paths:
            with self.database.transaction(counts=False) as connection:
                connection.executemany("UPDATE files SET racy = 0 WHERE path = ?", [(path,) for path in paths])

    def remove(self, gone: Sequence[NotePath]) -> None:
        """Forget files."""
        if not gone:
            return
        with self.database.transaction() as connection:
            generation = generation_of(connection)
            for path in gone:
                row = connection.execute("SELECT id, title FROM files WHERE path = ?", (path,)).fetchone()
                if row is not None:
                    chunk_rows.remove(
                        connection, str(row[1]), chunk_rows.read(connection, int(row[0])), generation=generation
                    )
                    file_rows.remove(connection, int(row[0]))

    def known(self, *, below: NotePath | None = None) -> dict[NotePath, Known]:
        """Give the remembered state of every file, or of the file *below* and of all below the folder of that name."""
        sql, limits = "SELECT path, size, mtime_ns, racy, failed_ns FROM files", ()
        if below is not None:
            sql += " WHERE path = ? OR (path >= ? AND path < ?)"
            limits = (below, f"{below}/", f"{below}0")  # "0" comes right after "/"
        rows = self.database.reader().execute(sql, limits)
        return {NotePath(p): Known(size=s, mtime_ns=m, racy=bool(r), failed_ns=f) for p, s, m, r, f in rows}

    def target_of(self, path: NotePath) -> NotePath:
        """Give the file that a symbolic link leads to; the path itself where it is none, or unknown."""
        row = self.database.reader().execute("SELECT target FROM files WHERE path = ?", (path,)).fetchone()
        return NotePath(row[0]) if row and row[0] else path

    def hash_of(self, path: NotePath) -> str:
        """Give the hash that the index holds of a file; empty where it has none."""
        row = self.database.reader().execute("SELECT hash FROM files WHERE path = ?", (path,)).fetchone()
        return str(row[0]) if row else ""

    def hashes(self) -> list[tuple[NotePath, NotePath, str]]:
        """List the notes by path: each with the file that it leads to, if it is a link, or itself, and its hash."""
        rows = self.database.reader().execute("SELECT path, target, hash FROM files WHERE kind = 'note' ORDER BY path")
        return [(NotePath(path), NotePath(target or path), str(hash_)) for path, target, hash_ in rows]

    def properties_of(self, wanted: Sequence[NotePath]) -> dict[NotePath, dict[str, JSONValue]]:
        """Give the properties that the index holds of notes; those that it doesn't know are left out."""
        rows = self.database.reader().execute(
            "SELECT path, properties FROM files WHERE path IN (SELECT value FROM json_each(?))",
            (json.dumps(wanted, ensure_ascii=False),),
        )
        return {NotePath(path): cast("dict[str, JSONValue]", json.loads(said)) for path, said in rows}

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Read chunks by id, in the order asked; those that are gone are left out."""
        sql = (
            "SELECT c.id, f.path, f.title, f.hash, c.kind, c.heading, c.path, c.start, c.stop, c.start_line,"
            " c.end_line, c.text FROM chunks c JOIN files f ON f.id = c.id >> ?"
            " WHERE c.id IN (SELECT value FROM json_each(?))"
        )
        rows = self.database.reader().execute(sql, (schema.CHUNK_BITS, json.dumps(list(ids))))
        found = {row[0]: _row(row) for row in rows}
        return [found[chunk_id] for chunk_id in ids if chunk_id in found]

    def pending(self, model: str, *, after: int, limit: int) -> list[Pending]:
        """Give chunks with an id above *after* that have no vector of *model* yet, by id."""
        if not waiting.is_about(self.database.reader(), model):
            with self.database.transaction() as connection:
                waiting.restart(connection, model)
        rows = self.database.reader().execute(
            "SELECT c.id, f.title, c.path, c.text FROM waiting w JOIN chunks c ON c.id = w.chunk_id"
            " JOIN files f ON f.id = c.id >> ? WHERE w.chunk_id > ? ORDER BY w.chunk_id LIMIT ?",
            (schema.CHUNK_BITS, after, limit),
        )
        return [Pending(id=i, title=t, path=_split(p), text=x) for i, t, p, x in rows]

    def count_pending(self, model: str) -> int:
        """Count the chunks that have no vector of *model* yet."""
        return waiting.count(self.database.reader(), model)

    def add_vectors(self, model: str, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Store vectors of chunks; chunks that have gone meanwhile are left out.

        Where the model's earlier vectors have another length, they are forgotten, and all chunks wait again.
        """
        with self.database.transaction() as connection:
            generation = generation_of(connection)
            old = connection.execute("SELECT length(vector) FROM vectors WHERE model = ? LIMIT 1", (model,)).fetchone()
            if old is not None and int(old[0]) != 2 * vectors.shape[1]:
                connection.execute("DELETE FROM vectors WHERE model = ?", (model,))
                waiting.restart(connection, model)
            connection.executemany(
                "INSERT OR REPLACE INTO vectors SELECT id, ?, ?, ? FROM chunks WHERE id = ?",
                [(generation, model, v.astype(np.float16).tobytes(), i) for i, v in zip(ids, vectors, strict=True)],
            )
            if waiting.is_about(connection, model):
                waiting.drop(connection, ids)

    def meta(self, key: str) -> str:
        """Read a remembered value; empty where there is none."""
        row = self.database.reader().execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_meta(self, key: str, value: str) -> None:
        """Remember a value under *key*."""
        with self.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def forget(self, *, keep: int = REMEMBERED_GENERATIONS) -> None:
        """Forget which chunks were removed longer ago than *keep* generations."""
        with self.database.transaction() as connection:
            oldest = max(generation_of(connection) - keep, 0)
            connection.execute("DELETE FROM removed WHERE generation < ?", (oldest,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('removed_since', ?)", (oldest,))


def generation_of(connection: sqlite3.Connection) -> int:
    """Read the generation as *connection* sees it."""
    return int(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])


def _file_row(connection: sqlite3.Connection, path: NotePath) -> tuple[int, int] | None:
    row = connection.execute("SELECT id, next_chunk FROM files WHERE path = ?", (path,)).fetchone()
    return (int(row[0]), int(row[1])) if row else None


def _row(said: tuple[int, str, str, str, str, str, str, int, int, int, int, str]) -> Row:
    chunk_id, note, title, digest, kind, heading, path, start, stop, start_line, end_line, text = said
    return Row(
        id=chunk_id,
        note=NotePath(note),
        title=title,
        hash=digest,
        kind=kind,
        heading=heading,
        path=_split(path),
        start=start,
        stop=stop,
        start_line=start_line,
        end_line=end_line,
        text=text,
    )


def _split(path: str) -> tuple[str, ...]:
    return tuple(path.split(chunk_rows.SEPARATOR)) if path else ()
