"""Check that the index holds what was stored in it, and mark a damaged one until it is built anew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.errors import StorageError
from knapper.index import database, documents
from knapper.system import private

if TYPE_CHECKING:
    from knapper.index.database import Database

_WORD_TABLES: Final = ("chunk_words", "title_words")
"""Full-text tables whose words are counted as they are stored."""
_FULL_TEXT_TABLES: Final = (*_WORD_TABLES, "name_grams", "property_grams")
_VARINT_END: Final = 128
"""The last byte of a varint is below this."""
_MARK_FILE: Final = "damaged"


def damage_error(what: str) -> sqlite3.DatabaseError:
    """Build the error that SQLite itself raises for a damaged file."""
    error = sqlite3.DatabaseError(f"database disk image is malformed: {what}")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def add_words(connection: sqlite3.Connection, table: str, ids: Sequence[int], *, sign: int = 1) -> None:
    """Count the words of rows that were just stored, or with a *sign* of -1 are about to be removed."""
    if not ids:
        return
    rows = connection.execute(
        f"SELECT sz FROM {table}_docsize WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)
    )
    words = sum(sum(decode_varints(size)) for (size,) in rows)
    connection.execute("UPDATE meta SET value = value + ? WHERE key = ?", (sign * words, table))


def check_totals(connection: sqlite3.Connection) -> None:
    """Compare the words that each full-text table counts with those that were stored; takes no longer for a large one.

    Raises:
        sqlite3.DatabaseError: Words were removed that were never stored, or the numbers are damaged.
    """
    counted = dict(connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?)", _WORD_TABLES))
    for table in _WORD_TABLES:
        row = connection.execute(f"SELECT block FROM {table}_data WHERE id = 1").fetchone()
        _, *words = decode_varints(row[0] if row else b"") or [0]
        if sum(words) != int(counted.get(table, -1)):
            raise damage_error(f"the words of {table} aren't those that were stored")


def find_damage(index: Database) -> str:
    """Check the whole file, its full-text tables and its texts.

    Returns:
        What is wrong; empty where nothing is, or where the disk doesn't let the file be checked.
    """
    try:
        with index.snapshot() as connection:
            verdict = " ".join(str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0]).split())
            if verdict != "ok":
                return verdict
            check_totals(connection)
            _check_rows(connection)
        _check_full_text(index)
    except (sqlite3.Error, StorageError) as error:
        if not database.is_damage(error):
            return ""
        return database.describe_damage(error)
    except (ValueError, LookupError, OverflowError) as error:
        # Values of another type or out of their range than those that were stored.
        return database.describe_damage(error)
    return ""


def _check_full_text(index: Database) -> None:
    """Let FTS5 check its own tables; the command looks like an insertion, but writes nothing."""
    with index.transaction(counts=False) as connection:
        for table in _FULL_TEXT_TABLES:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


def _check_rows(connection: sqlite3.Connection) -> None:
    """Read every row, which fails where a text can't be decoded, and compare each chunk with its hash."""
    for table in ("files", *database.PER_FILE_TABLES):
        for _ in connection.execute(f"SELECT * FROM {table}"):
            pass
    rows = connection.execute(
        "SELECT f.path, c.kind, c.path, c.text, c.digest FROM chunks c"
        f" JOIN files f ON f.id = c.id >> {database.CHUNK_BITS}"
    )
    check_digests(rows)


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


def decode_varints(raw: bytes) -> list[int]:
    """Decode SQLite's varints: seven bits a byte, the highest first.

    Source: SQLite documentation, "Database File Format", on variable-length integers.
    """
    numbers: list[int] = []
    number = 0
    for byte in raw:
        number = number << 7 | byte & 0x7F
        if byte < _VARINT_END:
            numbers.append(number)
            number = 0
    return numbers


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
    """Remove the mark of an index that was built anew.

    Raises:
        OSError: The folder can't be written.
    """
    (folder / _MARK_FILE).unlink(missing_ok=True)
