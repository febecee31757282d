"""Check that the index holds what was stored in it, and mark a damaged one until it is rebuilt."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.errors import StorageError
from knapper.index import database, documents, words
from knapper.system import private

if TYPE_CHECKING:
    from knapper.index.database import Database

_FULL_TEXT_TABLES: Final = ("chunk_words", "title_words", "name_grams", "property_grams")
_MARK_FILE: Final = "damaged"


def damage_error(what: str) -> sqlite3.DatabaseError:
    """Build the error that SQLite itself raises for a damaged file."""
    error = sqlite3.DatabaseError(f"database disk image is malformed: {what}")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def find_damage(index: Database, *, words_too: bool = True) -> str:
    """Check the whole file and its texts, and compare its words with them.

    Args:
        index: The index.
        words_too: Whether the full-text tables must hold the words of the texts and no others, which takes as long
            again; else only whether they can be read.

    Returns:
        What is wrong; empty where nothing is, or where the disk doesn't let the file be checked.
    """
    try:
        with index.snapshot() as connection:
            verdict = " ".join(str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0]).split())
            if verdict != "ok":
                return verdict
            if not database.has_own_schema(connection):
                return "the schema isn't the one that was stored"
            _check_rows(connection)
            if words_too:
                _check_recorded(connection, index.path.parent)
                _check_vector_file(connection, index.path.parent)
        _check_full_text(index, words_too=words_too)
    except (sqlite3.Error, StorageError) as error:
        if not database.is_damage(error):
            return ""
        return database.describe_damage(error)
    except (ValueError, LookupError, OverflowError) as error:
        # Values of another type or out of their range than those that were stored.
        return database.describe_damage(error)
    return ""


def _check_full_text(index: Database, *, words_too: bool) -> None:
    """Let FTS5 check its tables, and compare them with the texts that they were made from; the command writes nothing.

    Source: SQLite FTS5 documentation, "The 'integrity-check' Command"; with a rank of 1 it reads the texts, too.
    """
    with index.transaction(counts=False) as connection:
        for table in _FULL_TEXT_TABLES:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', ?)", (int(words_too),))


def _check_recorded(connection: sqlite3.Connection, folder: Path) -> None:
    """Check what was recorded beside a derived file of postings, which has checksums of its own."""
    if not words.is_recording(connection):
        return
    from knapper.index import postings  # noqa: PLC0415 - only a large index has such a file

    damage = words.find_wrong_record(connection) or postings.find_wrong_rows(connection, folder)
    if damage:
        raise damage_error(damage)


def _check_vector_file(connection: sqlite3.Connection, folder: Path) -> None:
    """Remove a derived file of vectors that isn't like the stored ones; the next embedding derives another."""
    if any(folder.glob(f"{database.VECTORS_PREFIX}*")):
        from knapper.index import vector_file  # noqa: PLC0415 - only a large index has such a file

        vector_file.remove_wrong(connection, folder)


def _check_rows(connection: sqlite3.Connection) -> None:
    """Compare files, vectors and chunks with their digests, which fails where a text can't be decoded."""
    for file_id, digest in connection.execute("SELECT id, rows_digest FROM files"):
        if _digest_rows(connection, file_id) != digest:
            raise damage_error("a row isn't the one that was stored")
    for chunk_id, model, vector, checksum in connection.execute(
        "SELECT chunk_id, model, vector, checksum FROM vectors"
    ):
        if vector_checksum(chunk_id, model, vector) != checksum:
            raise damage_error("a vector isn't one that was stored")
    rows = connection.execute(
        "SELECT f.path, c.kind, c.path, c.text, c.digest FROM chunks c"
        f" JOIN files f ON f.id = c.id >> {database.CHUNK_BITS}"
    )
    check_digests(rows)


def _joined(*columns: str) -> str:
    """Return the SQL of a row's values as one text; numbers and texts alone, which every SQLite writes alike."""
    return " || char(31) || ".join(columns)


def _listed(table: str, condition: str, *columns: str) -> str:
    """Return the SQL of a file's rows of a table as one text."""
    rows = f"SELECT {_joined(*columns)} AS row FROM {table} WHERE {condition} ORDER BY rowid"
    return f"(SELECT group_concat(row, char(30)) FROM ({rows}))"


_OF_FILE: Final = "file_id = ?1"
_ROWS_SQL: Final = "SELECT {} FROM files WHERE id = ?1".format(
    ", ".join(
        (
            _joined("path", "target", "path_key", "name_key", "folder_key", "kind", "title"),
            _joined("hash", "created", "modified", "properties", "problems", "title_row"),
            _listed(
                "links",
                _OF_FILE,
                *("kind", "target", "target_key", "headings", "block", "coalesce(alias, char(29))", "line", "key"),
            ),
            _listed("tags", _OF_FILE, "key", "name", "line"),
            _listed("properties", _OF_FILE, "key", "name", "shape", "coalesce(item, char(29))"),
            _listed("aliases", _OF_FILE, "alias", "key"),
            _listed("headings", _OF_FILE, "level", "title", "line"),
            _listed(
                "chunks",
                f"id >= ?1 << {database.CHUNK_BITS} AND id < (?1 + 1) << {database.CHUNK_BITS}",
                *("id", "position", "kind", "heading", "start", "stop", "start_line", "end_line", "hex(digest)"),
            ),
        )
    )
)
"""Selects what answers show of a file; its size and times are compared with the disk at each refresh."""


def vector_checksum(chunk_id: int, model: str, vector: bytes) -> int:
    """Return the checksum of a chunk's vector; with another model's name it would not be found any more."""
    return zlib.crc32(vector, zlib.crc32(model.encode(), chunk_id & 0xFFFFFFFF))


def store_rows_digest(connection: sqlite3.Connection, file_id: int) -> None:
    """Store the digest of a file's rows, which were just written in the same transaction."""
    connection.execute("UPDATE files SET rows_digest = ? WHERE id = ?", (_digest_rows(connection, file_id), file_id))


def _digest_rows(connection: sqlite3.Connection, file_id: int) -> bytes:
    values = connection.execute(_ROWS_SQL, (file_id,)).fetchone()
    return blake2b(b"\0".join(value.encode() if value else b"" for value in values), digest_size=8).digest()


def check_digests(rows: Iterable[tuple[str, str, str, str, bytes]]) -> None:
    """Compare chunks with their hashes, so that no text is shown that isn't the note's.

    Args:
        rows: The note, the chunk's kind, its joined headings, its text and its hash.

    Raises:
        sqlite3.DatabaseError: A chunk isn't what was stored.
    """
    for note, kind, headings, text, digest in rows:
        if documents.chunk_digest(kind, note, headings, text) != digest:
            raise damage_error("a text isn't the one that was stored")


def mark(folder: Path, reason: str) -> None:
    """Record that the index in *folder* is damaged, in a file beside it, since the index itself may not be writable."""
    # Where the disk is full or read-only, the next one to see the damage tries again.
    with suppress(OSError):
        private.write_text(folder / _MARK_FILE, reason)


def read_mark(folder: Path) -> str:
    """Return why the index is marked as damaged; an empty text where it isn't."""
    try:
        return (folder / _MARK_FILE).read_text(encoding="utf-8", errors="replace") or "it is marked as damaged"
    except OSError:
        return ""


def remove_mark(folder: Path) -> None:
    """Remove the mark of an index that was rebuilt.

    Raises:
        OSError: The folder can't be written.
    """
    (folder / _MARK_FILE).unlink(missing_ok=True)
