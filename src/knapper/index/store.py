"""Write and read the rows of files and chunks; a file's chunks are replaced in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from knapper.index import database, documents
from knapper.index.database import Database
from knapper.index.documents import HEADING_SEPARATOR, Chunk, FileRecord, FileRows, FileState
from knapper.index.tokenizer import segment, segment_all
from knapper.index.words import fts5
from knapper.jsontypes import JSONValue, loads, object_or_empty
from knapper.system.arrays import np
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from knapper.vault.walk import FileStat


def enqueue_chunks(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Add new chunks to the queue for embedding."""
    connection.executemany("INSERT INTO waiting VALUES (?)", [(i,) for i in ids])


def dequeue_chunks(connection: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Remove chunks from the queue that got their vector or were removed."""
    connection.execute(
        "DELETE FROM waiting WHERE chunk_id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    )


def is_queue_for(connection: sqlite3.Connection, model: str) -> bool:
    """Return whether the queue is for vectors of *model*."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'model'").fetchone()
    return row is not None and bool(row[0] == model)


def rebuild_queue(connection: sqlite3.Connection, model: str) -> None:
    """Rebuild the queue for *model*."""
    connection.execute("DELETE FROM waiting")
    connection.execute(
        "INSERT INTO waiting SELECT c.id FROM chunks c LEFT JOIN vectors v ON v.chunk_id = c.id AND v.model = ?"
        " WHERE v.chunk_id IS NULL",
        (model,),
    )
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('model', ?)", (model,))


def count_unembedded(connection: sqlite3.Connection, model: str) -> int:
    """Count the chunks without a vector of *model*."""
    if is_queue_for(connection, model):
        return int(connection.execute("SELECT COUNT(*) FROM waiting").fetchone()[0])
    sql = "SELECT (SELECT COUNT(*) FROM chunks) - (SELECT COUNT(*) FROM vectors WHERE model = ?)"
    return int(connection.execute(sql, (model,)).fetchone()[0])


_AddedChunk = tuple[int, int, str, Chunk]
"""A chunk with its id, its position, and its note's title as words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A stored file with what a replacement of its chunks needs."""

    id: int
    path: str
    title: str
    """The title that its chunks are indexed with; the words of another one couldn't be removed."""
    first_free: int
    """Its first unused chunk number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A stored chunk with what its removal from the full-text index needs."""

    id: int
    kind: str
    digest: bytes
    text: str
    path: str


def read_chunks(connection: sqlite3.Connection, file_id: int) -> list[StoredChunk]:
    """Read a file's stored chunks, by id."""
    rows = connection.execute(
        "SELECT id, kind, digest, text, path FROM chunks WHERE id >= ? AND id < ? ORDER BY id",
        database.chunk_range(file_id),
    )
    return [StoredChunk(id=i, kind=k, digest=d, text=t, path=p) for i, k, d, t, p in rows]


def replace_chunks(connection: sqlite3.Connection, file: StoredFile, rows: FileRows, *, generation: int) -> int:
    """Replace a file's chunks.

    Args:
        connection: Inside a transaction.
        file: The file that owns them.
        rows: What replaces them, with the file's new title, which is indexed with each chunk.
        generation: The running transaction's.

    Returns:
        The first free chunk number afterwards.
    """
    stored = read_chunks(connection, file.id) if file.first_free else []
    # The words of a chunk hold the title: under another one, none of them stays.
    is_same_title = file.title == rows.title
    unmatched: defaultdict[bytes, list[StoredChunk]] = defaultdict(list)
    for old in reversed(stored if is_same_title else ()):
        unmatched[old.digest].append(old)
    kept: list[tuple[int, int, Chunk]] = []
    added: list[tuple[int, Chunk]] = []
    for position, chunk in enumerate(rows.chunks):
        if unmatched.get(chunk.digest):
            kept.append((unmatched[chunk.digest].pop().id, position, chunk))
        else:
            added.append((position, chunk))
    if stored:
        left_over = chain.from_iterable(unmatched.values())
        remove_chunks(connection, file, left_over if is_same_title else stored, generation=generation)
    connection.executemany(
        "UPDATE chunks SET position = ?, start = ?, stop = ?, start_line = ?, end_line = ? WHERE id = ?",
        [(n, c.start, c.stop, c.start_line, c.end_line, i) for i, n, c in kept],
    )
    first_id = database.chunk_range(file.id)[0] + file.first_free
    title = segment(rows.title)
    _insert_chunks(
        connection,
        [(first_id + offset, n, title, chunk) for offset, (n, chunk) in enumerate(added)],
        generation=generation,
    )
    return file.first_free + len(added)


def remove_chunks(
    connection: sqlite3.Connection, file: StoredFile, chunks: Iterable[StoredChunk], *, generation: int
) -> None:
    """Remove a file's chunks with their words and vectors.

    Raises:
        sqlite3.DatabaseError: A text isn't what was stored, so that other words would be removed than it has.
    """
    rows = list(chunks)
    documents.check_digests((file.path, old.kind, old.path, old.text, old.digest) for old in rows)
    fts5.record_dropped(connection, fts5.CHUNKS, [old.id for old in rows])
    title = segment(file.title)
    # The same texts as they were indexed with, as the table stores none.
    connection.executemany(
        "INSERT INTO chunk_words (chunk_words, rowid, title, heading, body) VALUES ('delete', ?, ?, ?, ?)",
        [(old.id, title, segment(old.path), segment(old.text)) for old in rows],
    )
    ids = [(old.id,) for old in rows]
    connection.executemany("DELETE FROM chunks WHERE id = ?", ids)
    connection.executemany("DELETE FROM vectors WHERE chunk_id = ?", ids)
    dequeue_chunks(connection, (old.id for old in rows))
    connection.executemany("INSERT INTO removed VALUES (?, ?)", [(generation, old.id) for old in rows])


def _insert_chunks(connection: sqlite3.Connection, added: Sequence[_AddedChunk], *, generation: int) -> None:
    if not added:
        return
    paths_and_texts = [(HEADING_SEPARATOR.join(c.path), c.text) for *_, c in added]
    connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (i, n, c.kind, c.heading, path, c.start, c.stop, c.start_line, c.end_line, c.digest, text)
            for (i, n, _, c), (path, text) in zip(added, paths_and_texts, strict=True)
        ],
    )
    columns = (segment_all(texts) for texts in zip(*paths_and_texts, strict=True))
    rows = [(i, (title, *texts)) for (i, _, title, _), *texts in zip(added, *columns, strict=True)]
    connection.executemany(
        "INSERT INTO chunk_words (rowid, title, heading, body) VALUES (?, ?, ?, ?)", [(i, *row) for i, row in rows]
    )
    fts5.record_added(connection, fts5.CHUNKS, rows)
    reused = set[int]()
    if connection.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None:
        # A moved or copied note isn't embedded again. Once for each text, since it passes over all equal chunks that
        # have no vector; thousands may be new at once.
        query = """SELECT v.model, v.vector FROM chunks c JOIN vectors v ON v.chunk_id = c.id
            WHERE c.digest = ? AND v.model = (SELECT value FROM meta WHERE key = 'model') LIMIT 1"""
        known = {digest: connection.execute(query, (digest,)).fetchall() for digest in {c.digest for *_, c in added}}
        vector_rows = [
            (i, generation, model, vector, documents.vector_checksum(i, model, vector))
            for i, _, _, chunk in added
            for model, vector in known[chunk.digest]
        ]
        # A statement of its own: INSERT ... SELECT would make FTS5 flush its buffered words each time.
        connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?, ?)", vector_rows)
        reused = {row[0] for row in vector_rows}
    enqueue_chunks(connection, (i for i, *_ in added if i not in reused))


_SEARCHED_PROPERTIES = "shape != 'list' AND item IS NOT NULL"
"""Properties that can be searched by a part of their text."""


_FILE_COLUMNS = ", ".join((*documents.TIME_COLUMNS, *documents.CONTENT_COLUMNS, "next_chunk", "rows_digest"))


def insert_files(connection: sqlite3.Connection, batch: Sequence[FileRows], *, generation: int) -> None:
    """Insert new files with all that is indexed of them; a statement for each table.

    Args:
        connection: Inside a transaction.
        batch: The files, none of them stored.
        generation: The running transaction's.
    """
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'files'").fetchone()
    files = list(enumerate(batch, 1 + int(last[0] if last else 0)))
    marks = ", ".join("?" * (4 + len(documents.TIME_COLUMNS) + len(documents.CONTENT_COLUMNS)))
    connection.executemany(
        f"INSERT INTO files (id, path, {_FILE_COLUMNS}) VALUES ({marks})",
        [
            (i, rows.path, *rows.times, *rows.content, len(rows.chunks), documents.digest_new_rows(i, rows))
            for i, rows in files
        ],
    )
    _insert_names(connection, files)
    added: list[_AddedChunk] = []
    for i, rows in files:
        first_id, _ = database.chunk_range(i)
        title = segment(rows.title)
        added.extend((first_id + n, n, title, chunk) for n, chunk in enumerate(rows.chunks))
    _insert_chunks(connection, added, generation=generation)
    _insert_details(connection, files)
    record_changes(connection, [(generation, i, documents.link_key(rows.path)) for i, rows in files])


def update_file(connection: sqlite3.Connection, file_id: int, rows: FileRows, *, next_chunk: int) -> None:
    """Update a stored file's row, the words of its names, and its rows in the detail tables.

    Args:
        connection: Inside a transaction.
        file_id: The file's.
        rows: What is stored of it.
        next_chunk: Its first unused chunk number.
    """
    (old_row,) = connection.execute("SELECT title_row FROM files WHERE id = ?", (file_id,)).fetchone()
    has_other_names = rows.content[-1] != old_row
    if has_other_names:
        _remove_title(connection, file_id)
    _remove_details(connection, file_id)
    values = (*rows.times, *rows.content, next_chunk, b"")
    connection.execute(
        f"UPDATE files SET ({_FILE_COLUMNS}) = ({', '.join('?' * len(values))}) WHERE id = ?", (*values, file_id)
    )
    if has_other_names:
        _insert_names(connection, [(file_id, rows)])
    _insert_details(connection, [(file_id, rows)])


def remove_file(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove a file's rows except its chunks."""
    _remove_title(connection, file_id)
    _remove_details(connection, file_id)
    connection.execute("DELETE FROM files WHERE id = ?", (file_id,))


ONLY_TOUCHED: Final = "/"
"""In place of a name's key, which never is this: the file has other times, and the same content and links."""


def record_changes(connection: sqlite3.Connection, changes: Iterable[tuple[int, int, str | None]]) -> None:
    """Record files that changed, for `LinkEndsCache` and for publishing.

    Args:
        connection: Inside a transaction.
        changes: The running generation, the file's id, and the key of its name where it was added or removed, or
            `ONLY_TOUCHED`.
    """
    connection.executemany("INSERT INTO changed_files VALUES (?, ?, ?)", changes)


def _insert_details(connection: sqlite3.Connection, files: Sequence[tuple[int, FileRows]]) -> None:
    connection.executemany(
        "INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [(i, *row) for i, rows in files for row in rows.links]
    )
    connection.executemany(
        "INSERT INTO tags VALUES (?, ?, ?, ?)", [(i, *row) for i, rows in files for row in rows.tags]
    )
    (last,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM properties").fetchone()
    connection.executemany(
        "INSERT INTO properties (file_id, key, name, shape, item, number) VALUES (?, ?, ?, ?, ?, ?)",
        [(i, *row) for i, rows in files for row in rows.properties],
    )
    # Two statements, as for vectors: INSERT ... SELECT would make FTS5 flush its buffered words for each file.
    searched = connection.execute(f"SELECT id, item FROM properties WHERE id > ? AND {_SEARCHED_PROPERTIES}", (last,))
    connection.executemany("INSERT INTO property_grams (rowid, item) VALUES (?, ?)", searched.fetchall())
    connection.executemany(
        "INSERT INTO aliases VALUES (?, ?, ?)", [(i, *row) for i, rows in files for row in rows.aliases]
    )
    connection.executemany(
        "INSERT INTO headings VALUES (?, ?, ?, ?)", [(i, *row) for i, rows in files for row in rows.headings]
    )


def _remove_details(connection: sqlite3.Connection, file_id: int) -> None:
    searched = connection.execute(
        f"SELECT id, item FROM properties WHERE file_id = ? AND {_SEARCHED_PROPERTIES}", (file_id,)
    )
    connection.executemany(
        "INSERT INTO property_grams (property_grams, rowid, item) VALUES ('delete', ?, ?)", searched.fetchall()
    )
    for table in database.PER_FILE_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))


def _insert_names(connection: sqlite3.Connection, files: Iterable[tuple[int, FileRows]]) -> None:
    named = [(i, rows.names) for i, rows in files if rows.is_named]
    words = [(i, texts[:3]) for i, texts in named]
    connection.executemany(
        "INSERT INTO title_words (rowid, title, aliases, headings) VALUES (?, ?, ?, ?)", [(i, *row) for i, row in words]
    )
    fts5.record_added(connection, fts5.NAMES, words)
    connection.executemany(
        "INSERT INTO name_grams (rowid, names) VALUES (?, ?)", [(i, all_names) for i, (*_, all_names) in named]
    )


def _remove_title(connection: sqlite3.Connection, file_id: int) -> None:
    old, kind = connection.execute("SELECT title_row, kind FROM files WHERE id = ?", (file_id,)).fetchone()
    if not old or kind == "attachment":
        return
    title, aliases, headings, names = json.loads(old)
    fts5.record_dropped(connection, fts5.NAMES, [file_id])
    connection.execute(
        "INSERT INTO title_words (title_words, rowid, title, aliases, headings) VALUES ('delete', ?, ?, ?, ?)",
        (file_id, title, aliases, headings),
    )
    connection.execute("INSERT INTO name_grams (name_grams, rowid, names) VALUES ('delete', ?, ?)", (file_id, names))


def floor_key(model: str) -> str:
    """Return the key of a model's floor, the cosine from which on a chunk counts as found by its meaning."""
    return f"floor:{model}"


KEPT_GENERATIONS = 1_000
"""Generations that a reader's vectors may be behind before all are loaded again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRow:
    """A stored chunk with its note."""

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


class PendingChunk(NamedTuple):
    """A chunk without a vector yet."""

    id: int
    title: str
    path: tuple[str, ...]
    text: str


class IndexStore:
    """The rows of one vault's index."""

    def __init__(self, path: Path) -> None:
        """Open the store in the file *path*; create it where it is missing."""
        self.database = Database(path)
        self.own_lengths: dict[str, int] = {}  # of the vectors that this process stored last, by the model

    def generation(self) -> int:
        """Return the number of written transactions; equal numbers mean an equal index."""
        return database.generation_of(self.database.reader(trusted_s=0))

    def clear(self) -> None:
        """Remove all rows."""
        self.database.rebuild()

    def close(self) -> None:
        """Close the store's connections."""
        self.database.close()

    @contextmanager
    def batch(self) -> Generator[None]:
        """Join several writes in one transaction."""
        with self.database.transaction():
            yield

    def apply(self, record: FileRecord, chunks: Sequence[Chunk]) -> None:
        """Replace a file's rows; chunks with the same digest keep their words and vectors."""
        self.apply_all([documents.rows_of(record, chunks)])

    def apply_all(self, batch: Sequence[FileRows]) -> None:
        """Replace the rows of several files, each of which is given once."""
        with self.database.transaction() as connection:
            generation = database.generation_of(connection)
            new: list[FileRows] = []
            known: list[tuple[StoredFile, FileRows]] = []
            for rows in batch:
                stored = _find_file(connection, rows.path)
                if stored is not None and stored.first_free + len(rows.chunks) >= database.MAX_CHUNKS_PER_FILE:
                    self.remove([NotePath(rows.path)])
                    stored = None
                if stored is None:
                    new.append(rows)
                else:
                    known.append((stored, rows))
            # New files first: the vectors of a passage that was moved to one are copied from where it was.
            if new:
                insert_files(connection, new, generation=generation)
            for stored, rows in known:
                next_chunk = replace_chunks(connection, stored, rows, generation=generation)
                update_file(connection, stored.id, rows, next_chunk=next_chunk)
                documents.store_rows_digest(connection, stored.id)
            record_changes(connection, [(generation, stored.id, None) for stored, _ in known])

    def touch(self, rows: FileRows) -> None:
        """Record a file's new times where its content is unchanged."""
        with self.database.transaction() as connection:
            columns = ", ".join(documents.TIME_COLUMNS)
            marks = ", ".join("?" * len(documents.TIME_COLUMNS))
            connection.execute(f"UPDATE files SET ({columns}) = ({marks}) WHERE path = ?", (*rows.times, rows.path))
            file = _find_file(connection, rows.path)
            if file is not None:
                documents.store_rows_digest(connection, file.id)
                record_changes(connection, [(database.generation_of(connection), file.id, ONLY_TOUCHED)])

    def settle(self, files: Sequence[FileStat]) -> None:
        """Record that files have the indexed content, and that their next save will change their time or inode.

        This doesn't count as a change of the index.
        """
        if files:
            rows = [(stat.ctime_ns, documents.stored_inode(stat.inode), stat.path) for stat in files]
            with self.database.transaction(counts=False) as connection:
                connection.executemany("UPDATE files SET racy = 0, ctime_ns = ?, inode = ? WHERE path = ?", rows)

    def remove(self, paths: Sequence[NotePath]) -> None:
        """Remove files."""
        if not paths:
            return
        with self.database.transaction() as connection:
            generation = database.generation_of(connection)
            for path in paths:
                file = _find_file(connection, path)
                if file is not None:
                    remove_chunks(connection, file, read_chunks(connection, file.id), generation=generation)
                    remove_file(connection, file.id)
                    record_changes(connection, [(generation, file.id, documents.link_key(path))])

    def file_states(self, *, below: NotePath | None = None) -> dict[NotePath, FileState]:
        """Return the indexed state of every file, or of the file *below* and all files below that folder."""
        if below is None:
            return self._read_states("", ())
        # "0" comes right after "/"
        return self._read_states(" WHERE path = ? OR (path >= ? AND path < ?)", (below, f"{below}/", f"{below}0"))

    def _read_states(self, condition: str, parameters: Sequence[str]) -> dict[NotePath, FileState]:
        sql = f"SELECT path, size, mtime_ns, racy, ctime_ns, inode, target, failed_ns FROM files{condition}"
        rows = self.database.reader().execute(sql, parameters)
        return {
            NotePath(path): FileState(
                size=size,
                mtime_ns=mtime_ns,
                racy=bool(racy),
                ctime_ns=ctime_ns,
                inode=inode,
                target=target,
                failed_ns=failed_ns,
            )
            for path, size, mtime_ns, racy, ctime_ns, inode, target, failed_ns in rows
        }

    def settled_times(self) -> tuple[dict[str, tuple[int, int, int]], list[NotePath]]:
        """Return size, time and time of the last change of any kind by path, of files that these alone tell unchanged.

        The second value lists the other files: links, those saved in the moment of reading, and those that failed.
        """
        rows = self.database.reader().execute(
            "SELECT path, size, mtime_ns, ctime_ns, racy OR target != '' OR failed_ns FROM files"
        )
        times: dict[str, tuple[int, int, int]] = {}
        others: list[NotePath] = []
        for path, size, mtime_ns, ctime_ns, is_other in rows:
            if is_other:
                others.append(NotePath(path))
            else:
                times[path] = size, mtime_ns, ctime_ns
        return times, others

    def states_of(self, paths: Iterable[str]) -> dict[NotePath, FileState]:
        """Return the indexed state of some files, without those that aren't indexed."""
        chosen = json.dumps(list(paths), ensure_ascii=False)
        return self._read_states(" WHERE path IN (SELECT value FROM json_each(?))", (chosen,))

    def count_files(self) -> int:
        """Count the indexed files."""
        return int(self.database.reader().execute("SELECT COUNT(*) FROM files").fetchone()[0])

    def target_of(self, path: NotePath) -> NotePath:
        """Return the target of a symbolic link; the path itself for any other or unknown file."""
        row = self.database.reader().execute("SELECT target FROM files WHERE path = ?", (path,)).fetchone()
        return NotePath(row[0]) if row and row[0] else path

    def hashes_of(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the indexed hashes of files, by path; empty ones of files that weren't read."""
        sql = "SELECT path, hash FROM files WHERE path IN (SELECT value FROM json_each(?))"
        return dict(self.database.reader().execute(sql, (json.dumps(list(paths), ensure_ascii=False),)))

    def hash_of(self, path: NotePath) -> str:
        """Return the indexed hash of a file; empty where there is none."""
        row = self.database.reader().execute("SELECT hash FROM files WHERE path = ?", (path,)).fetchone()
        return str(row[0]) if row else ""

    def hashes(self) -> list[tuple[NotePath, NotePath, str]]:
        """List the notes by path, each with its link target, or its own path, and its hash."""
        rows = self.database.reader().execute("SELECT path, target, hash FROM files WHERE kind = 'note' ORDER BY path")
        return [(NotePath(path), NotePath(target or path), str(hash_)) for path, target, hash_ in rows]

    def properties_with_address(self, paths: Sequence[NotePath]) -> dict[NotePath, dict[str, JSONValue]]:
        """Return the indexed properties of those notes in which any holds a web address."""
        rows = self.database.reader().execute(
            "SELECT path, properties FROM files"
            " WHERE path IN (SELECT value FROM json_each(?)) AND instr(properties, '://')",
            (json.dumps(paths, ensure_ascii=False),),
        )
        return {NotePath(path): object_or_empty(loads(properties_json)) for path, properties_json in rows}

    def rows(self, ids: Sequence[int]) -> list[ChunkRow]:
        """Read chunks by id in the given order, without those that were removed."""
        sql = (
            "SELECT c.id, f.path, f.title, f.hash, c.kind, c.heading, c.path, c.start, c.stop, c.start_line,"
            " c.end_line, c.text, c.digest FROM json_each(?2) j CROSS JOIN chunks c ON c.id = j.value"
            " CROSS JOIN files f ON f.id = c.id >> ?1"
        )
        rows = self.database.reader().execute(sql, (database.CHUNK_BITS, json.dumps(list(ids)))).fetchall()
        documents.check_digests((row[1], row[4], row[6], row[11], row[12]) for row in rows)
        rows_by_id: dict[int, ChunkRow] = {}
        for i, note, title, digest, kind, heading, path, start, stop, start_line, end_line, text, _ in rows:
            rows_by_id[i] = ChunkRow(
                id=i,
                note=NotePath(note),
                title=title,
                hash=digest,
                kind=kind,
                heading=heading,
                path=_split_headings(path),
                start=start,
                stop=stop,
                start_line=start_line,
                end_line=end_line,
                text=text,
            )
        return [rows_by_id[chunk_id] for chunk_id in ids if chunk_id in rows_by_id]

    def pending(self, model: str, *, after: int, limit: int) -> list[PendingChunk]:
        """Return chunks without a vector of *model* and with an id above *after*, by id."""
        if not is_queue_for(self.database.reader(), model):
            with self.database.transaction() as connection:
                rebuild_queue(connection, model)
        rows = self.database.reader().execute(
            "SELECT c.id, f.title, c.path, c.text FROM waiting w JOIN chunks c ON c.id = w.chunk_id"
            " JOIN files f ON f.id = c.id >> ? WHERE w.chunk_id > ? ORDER BY w.chunk_id LIMIT ?",
            (database.CHUNK_BITS, after, limit),
        )
        return [PendingChunk(i, t, _split_headings(p), x) for i, t, p, x in rows]

    def count_pending(self, model: str) -> int:
        """Count the chunks without a vector of *model*."""
        return count_unembedded(self.database.reader(), model)

    def vector_length(self, model: str) -> int:
        """Return how many numbers the stored vectors of *model* have; 0 where there are none."""
        sql = "SELECT length(vector) / 2 FROM vectors WHERE model = ? LIMIT 1"
        row = self.database.reader().execute(sql, (model,)).fetchone()
        return int(row[0]) if row else 0

    def add_vectors(self, model: str, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Store vectors of chunks, except for chunks that were removed meanwhile.

        Where the model's stored vectors have another length, they are removed, and all chunks are queued again.
        """
        with self.database.transaction() as connection:
            generation = database.generation_of(connection)
            if self.vector_length(model) not in {0, vectors.shape[1]}:
                connection.execute("DELETE FROM vectors WHERE model = ?", (model,))
                connection.execute("DELETE FROM meta WHERE key = ?", (floor_key(model),))
                rebuild_queue(connection, model)
            present = connection.execute(
                "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
            )
            kept = {int(i) for (i,) in present}
            rows = zip(ids, map(bytes, vectors.astype(np.float16)), strict=True)
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)",
                [(i, generation, model, raw, documents.vector_checksum(i, model, raw)) for i, raw in rows if i in kept],
            )
            if is_queue_for(connection, model):
                dequeue_chunks(connection, ids)

    def meta(self, key: str) -> str:
        """Read a stored value; empty where there is none."""
        row = self.database.reader().execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    @property
    def is_empty(self) -> bool:
        """Return whether no chunk is stored."""
        return self.database.reader().execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is None

    def set_meta(self, key: str, value: str, *, counts: bool = True) -> None:
        """Store a value under *key*; *counts* tells whether that is a change of the index."""
        with self.database.transaction(counts=counts) as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def forget(self, *, keep: int = KEPT_GENERATIONS) -> None:
        """Delete the records of chunks and files that were changed more than *keep* generations ago."""
        with self.database.transaction() as connection:
            oldest = max(database.generation_of(connection) - keep, 0)
            connection.execute("DELETE FROM removed WHERE generation < ?", (oldest,))
            connection.execute("DELETE FROM changed_files WHERE generation < ?", (oldest,))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('removed_since', ?)", (oldest,))


def _find_file(connection: sqlite3.Connection, path: str) -> StoredFile | None:
    row = connection.execute("SELECT id, title, next_chunk FROM files WHERE path = ?", (path,)).fetchone()
    return StoredFile(id=int(row[0]), path=path, title=str(row[1]), first_free=int(row[2])) if row else None


def _split_headings(path: str) -> tuple[str, ...]:
    return tuple(path.split(HEADING_SEPARATOR)) if path else ()
