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
from knapper.index.tokenizer import segment
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


def replace_files(
    connection: sqlite3.Connection, batch: Sequence[tuple[StoredFile, FileRows]], *, generation: int
) -> None:
    """Replace all that is indexed of stored files, given by id; arguments are those of `insert_files`."""
    added: list[_AddedChunk] = []
    kept: list[tuple[int, int, int, int, int, int]] = []
    removed: list[tuple[StoredFile, Sequence[StoredChunk]]] = []
    updates: list[tuple[int, FileRows, int, bytes]] = []
    for file, rows in batch:
        ids, left_over = _assign_chunks(file, rows, read_chunks(connection, file.id) if file.first_free else [])
        first_new = database.chunk_range(file.id)[0] + file.first_free
        title = segment(rows.title)
        for n, (i, c) in enumerate(zip(ids, rows.chunks, strict=True)):
            if i < first_new:
                kept.append((n, c.start, c.stop, c.start_line, c.end_line, i))
            else:
                added.append((i, n, title, c))
        removed.append((file, left_over))
        next_chunk = file.first_free + sum(i >= first_new for i in ids)
        updates.append((file.id, rows, next_chunk, documents.digest_rows_of(rows, ids)))
    # Words of lower ids first, as FTS5 writes out what it has buffered before them; but the chunks last, as the vectors
    # of a passage that moved to another file are copied from where it was.
    removed_ids = _remove_words(connection, removed)
    _insert_chunks(connection, added, generation=generation)
    _delete_chunks(connection, removed_ids, generation=generation)
    connection.executemany(
        "UPDATE chunks SET position = ?, start = ?, stop = ?, start_line = ?, end_line = ? WHERE id = ?", kept
    )
    _update_files(connection, updates)
    record_changes(connection, [(generation, file.id, None) for file, _ in batch])


def _assign_chunks(
    file: StoredFile, rows: FileRows, stored: Sequence[StoredChunk]
) -> tuple[list[int], list[StoredChunk]]:
    """Return the id of each chunk, that of an equal stored one where there is one; and the stored ones left over."""
    unmatched: defaultdict[bytes, list[StoredChunk]] = defaultdict(list)
    # The words of a chunk hold the title: under another one, none of them stays.
    is_same_title = file.title == rows.title
    for old in reversed(stored if is_same_title else ()):
        unmatched[old.digest].append(old)
    next_id = database.chunk_range(file.id)[0] + file.first_free
    ids: list[int] = []
    for chunk in rows.chunks:
        if unmatched.get(chunk.digest):
            ids.append(unmatched[chunk.digest].pop().id)
        else:
            ids.append(next_id)
            next_id += 1
    return ids, list(chain.from_iterable(unmatched.values())) if is_same_title else list(stored)


def remove_chunks(
    connection: sqlite3.Connection, removed: Iterable[tuple[StoredFile, Iterable[StoredChunk]]], *, generation: int
) -> None:
    """Remove chunks of files with their words and vectors.

    Raises:
        sqlite3.DatabaseError: A text isn't what was stored, so that other words would be removed than it has.
    """
    _delete_chunks(connection, _remove_words(connection, removed), generation=generation)


def _remove_words(
    connection: sqlite3.Connection, removed: Iterable[tuple[StoredFile, Iterable[StoredChunk]]]
) -> list[int]:
    """Remove the words of chunks, and return their ids."""
    rows = [(segment(file.title), file.path, old) for file, chunks in removed for old in chunks]
    documents.check_digests((path, old.kind, old.path, old.text, old.digest) for _, path, old in rows)
    rows.sort(key=lambda row: row[2].id)
    removed_ids = [old.id for _, _, old in rows]
    if rows:
        fts5.record_dropped(connection, fts5.CHUNKS, removed_ids)
    # The same texts as they were indexed with, as the table stores none.
    connection.executemany(
        "INSERT INTO chunk_words (chunk_words, rowid, title, heading, body) VALUES ('delete', ?, ?, ?, ?)",
        [(old.id, title, segment(old.path), segment(old.text)) for title, _, old in rows],
    )
    return removed_ids


def _delete_chunks(connection: sqlite3.Connection, removed_ids: Sequence[int], *, generation: int) -> None:
    if not removed_ids:
        return
    ids = [(i,) for i in removed_ids]
    connection.executemany("DELETE FROM chunks WHERE id = ?", ids)
    connection.executemany("DELETE FROM vectors WHERE chunk_id = ?", ids)
    dequeue_chunks(connection, removed_ids)
    connection.executemany("INSERT INTO removed VALUES (?, ?)", [(generation, i) for i in removed_ids])


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
    rows = [
        (i, (title, segment(path), segment(text)))
        for (i, _, title, _), (path, text) in zip(added, paths_and_texts, strict=True)
    ]
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


_PATH_COLUMNS: Final = ("path_key", "name_key", "folder_key", "kind", "title")
"""The first of `documents.CONTENT_COLUMNS`, which follow from a file's path."""
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
            (i, rows.path, *rows.times, *rows.content, len(rows.chunks), documents.digest_rows_of(rows, ids))
            for i, rows in files
            for ids in (range(*database.chunk_range(i))[: len(rows.chunks)],)
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


def _update_files(connection: sqlite3.Connection, updates: Sequence[tuple[int, FileRows, int, bytes]]) -> None:
    """Update stored files' rows, the words of their names, and their rows in the detail tables.

    Each file is given by its id, with what is stored of it, its first unused chunk number, and the digest of its rows.
    """
    ids = json.dumps([file_id for file_id, *_ in updates])
    columns = ", ".join(("title_row", *_PATH_COLUMNS))
    sql = f"SELECT id, {columns} FROM files WHERE id IN (SELECT value FROM json_each(?))"
    stored = {i: (title_row, by_path) for i, title_row, *by_path in connection.execute(sql, (ids,))}
    renamed = [(i, rows) for i, rows, *_ in updates if rows.content[-1] != stored[i][0]]
    for file_id, _ in renamed:
        _remove_title(connection, file_id)
    _remove_details(connection, ids)
    # What follows from the path stays, and with it the order of the indexes by name and folder.
    is_whole = any(list(rows.content[: len(_PATH_COLUMNS)]) != stored[i][1] for i, rows, *_ in updates)
    first = 0 if is_whole else len(_PATH_COLUMNS)
    names = (*documents.TIME_COLUMNS, *documents.CONTENT_COLUMNS[first:], "next_chunk", "rows_digest")
    connection.executemany(
        f"UPDATE files SET ({', '.join(names)}) = ({', '.join('?' * len(names))}) WHERE id = ?",
        [(*rows.times, *rows.content[first:], next_chunk, digest, i) for i, rows, next_chunk, digest in updates],
    )
    _insert_names(connection, renamed)
    _insert_details(connection, [(i, rows) for i, rows, *_ in updates])


def remove_file(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove a file's rows except its chunks."""
    _remove_title(connection, file_id)
    _remove_details(connection, json.dumps([file_id]))
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


def _remove_details(connection: sqlite3.Connection, file_ids: str) -> None:
    """Remove the rows of files from the detail tables; *file_ids* is a JSON list."""
    of_files = "file_id IN (SELECT value FROM json_each(?))"
    searched = connection.execute(
        f"SELECT id, item FROM properties WHERE {of_files} AND {_SEARCHED_PROPERTIES} ORDER BY id", (file_ids,)
    )
    connection.executemany(
        "INSERT INTO property_grams (property_grams, rowid, item) VALUES ('delete', ?, ?)", searched.fetchall()
    )
    for table in database.PER_FILE_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE {of_files}", (file_ids,))


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
            stored_files = _find_files(connection, [rows.path for rows in batch])
            for rows in batch:
                stored = stored_files.get(rows.path)
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
            if known:
                replace_files(connection, sorted(known, key=lambda one: one[0].id), generation=generation)

    def touch(self, rows: FileRows) -> None:
        """Record a file's new times where its content is unchanged."""
        with self.database.transaction() as connection:
            # The size as well: that of a file which was saved while it was read is of the text before.
            columns = (*documents.TIME_COLUMNS, "size")
            values = (*rows.times, rows.content[documents.CONTENT_COLUMNS.index("size")])
            assignments = ", ".join(f"{column} = ?" for column in columns)
            connection.execute(f"UPDATE files SET {assignments} WHERE path = ?", (*values, rows.path))
            file = _find_files(connection, [rows.path]).get(rows.path)
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
            for file in _find_files(connection, paths).values():
                remove_chunks(connection, [(file, read_chunks(connection, file.id))], generation=generation)
                remove_file(connection, file.id)
                record_changes(connection, [(generation, file.id, documents.link_key(file.path))])

    def file_states(self) -> dict[NotePath, FileState]:
        """Return the indexed state of every file."""
        return self._read_states("", ())

    def states_below(self, places: Iterable[str]) -> dict[NotePath, FileState]:
        """Return the indexed state of the files that places name, and of all files below the folders that they name."""
        # "0" comes right after "/". CROSS JOIN keeps the order, in which each place is looked up by the paths' index.
        below = "f.path = value OR (f.path >= value || '/' AND f.path < value || '0')"
        condition = f" WHERE id IN (SELECT f.id FROM json_each(?) CROSS JOIN files f ON {below})"
        return self._read_states(condition, (json.dumps(list(places), ensure_ascii=False),))

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
        ids = "SELECT chunk_id AS id FROM waiting WHERE chunk_id > ?"
        return _read_texts(self.database.reader(), ids, after, limit)

    def count_pending(self, model: str) -> int:
        """Count the chunks without a vector of *model*."""
        return count_unembedded(self.database.reader(), model)

    def vector_length(self, model: str) -> int:
        """Return how many numbers the stored vectors of *model* have; 0 where there are none."""
        sql = "SELECT length(vector) / 2 FROM vectors WHERE model = ? LIMIT 1"
        row = self.database.reader().execute(sql, (model,)).fetchone()
        return int(row[0]) if row else 0

    def add_vectors(self, model: str, chunks: Sequence[PendingChunk], vectors: NDArray[np.float32]) -> int:
        """Store vectors of chunks, except for chunks that were removed meanwhile, or whose numbers now mean others.

        Where the model's stored vectors have another length, they are removed, and all chunks are queued again.

        Args:
            model: The embedder's id.
            chunks: The chunks as they were embedded.
            vectors: A row for each chunk.

        Returns:
            How many were stored.
        """
        with self.database.transaction() as connection:
            generation = database.generation_of(connection)
            # An index that was begun anew or restored from a copy has given the same numbers to other texts.
            ids = json.dumps([row.id for row in chunks])
            current = set(_read_texts(connection, "SELECT value AS id FROM json_each(?)", ids))
            if self.vector_length(model) not in {0, vectors.shape[1]}:
                connection.execute("DELETE FROM vectors WHERE model = ?", (model,))
                connection.execute("DELETE FROM meta WHERE key = ?", (floor_key(model),))
                rebuild_queue(connection, model)
            pairs = zip(chunks, map(bytes, vectors.astype(np.float16)), strict=True)
            kept = [(row.id, raw) for row, raw in pairs if row in current]
            rows = [(i, generation, model, raw, documents.vector_checksum(i, model, raw)) for i, raw in kept]
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)
            if is_queue_for(connection, model):
                dequeue_chunks(connection, (i for i, _ in kept))
            return len(rows)

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


def _find_files(connection: sqlite3.Connection, paths: Sequence[str]) -> dict[str, StoredFile]:
    """Return the stored ones of some files, by path."""
    rows = connection.execute(
        "SELECT id, path, title, next_chunk FROM files WHERE path IN (SELECT value FROM json_each(?))",
        (json.dumps(paths, ensure_ascii=False),),
    )
    return {path: StoredFile(id=i, path=path, title=title, first_free=free) for i, path, title, free in rows}


def _read_texts(connection: sqlite3.Connection, ids: str, value: str | int, limit: int = -1) -> list[PendingChunk]:
    """Return what is embedded of the first chunks that the query *ids* selects by *value*, by id."""
    sql = (
        f"SELECT c.id, f.title, c.path, c.text FROM ({ids}) i JOIN chunks c ON c.id = i.id"
        f" JOIN files f ON f.id = c.id >> {database.CHUNK_BITS} ORDER BY i.id LIMIT ?"
    )
    return [PendingChunk(i, t, _split_headings(p), x) for i, t, p, x in connection.execute(sql, (value, limit))]


def _split_headings(path: str) -> tuple[str, ...]:
    return tuple(path.split(HEADING_SEPARATOR)) if path else ()
