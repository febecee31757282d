"""Storage that processes share: the write lock, contents stored once each, and SQLite files of a vault's state."""

import contextlib
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import filelock

from knapper.changes.disk import databases
from knapper.errors import ConflictError, NotFound, StorageError
from knapper.system import private

LOCK_FILE = "write.lock"
HOLDER_FILE = "write.lock.pid"
NEXT_FILE = "write.next.lock"
"""Held by the next writer in line, so that one that has just written can't overtake those that wait."""
_POLL_S = 0.005
_PID_DIGITS = 12


@contextlib.contextmanager
def hold_write_lock(folder: Path, *, timeout_s: float) -> Generator[None]:
    """Acquire the write lock, which keeps every other process and thread from writing, until the block ends.

    The system releases the lock of a process that dies.

    Args:
        folder: The vault's state folder.
        timeout_s: Seconds to wait for another writer; 0 tries once.

    Raises:
        ConflictError: Another writer still has it; ``details["pid"]`` names its process.
        StorageError: The lock's file can't be made.
    """
    holder = folder / HOLDER_FILE
    try:
        guard = _acquire_lock(folder, timeout_s)
    except filelock.Timeout as error:
        raise _locked_error(holder) from error
    except OSError as error:
        msg = f"the vault's lock in '{folder}' can't be taken: {error.strerror}"
        raise StorageError(msg, hint="check that the folder is there and can be written") from error
    try:
        # The process id only serves error messages, so failing to write it (on a full disk) doesn't matter.
        with contextlib.suppress(OSError):
            _write_pid(holder)
        yield
    finally:
        guard.release()


def is_being_written(folder: Path) -> bool:
    """Return whether another writer holds the write lock right now.

    Raises:
        StorageError: The lock's file can't be made.
    """
    try:
        with hold_write_lock(folder, timeout_s=0):
            return False
    except ConflictError:
        return True


def _acquire_lock(folder: Path, timeout_s: float) -> filelock.BaseFileLock:
    """Acquire the lock: first the next place in line, then the lock itself; without a time-out, try only once."""
    guard = private.file_lock(folder / LOCK_FILE, poll_s=_POLL_S)
    if timeout_s <= 0:
        guard.acquire(timeout=0)
        return guard
    deadline = time.monotonic() + timeout_s
    next_in_line = private.file_lock(folder / NEXT_FILE, poll_s=_POLL_S)
    with next_in_line.acquire(timeout=timeout_s):
        guard.acquire(timeout=max(deadline - time.monotonic(), 0))
    return guard


def _write_pid(holder: Path) -> None:
    """Write this process's id over the last one's."""
    # The id is padded instead of truncating the file, which some file systems answer with a flush.
    private.create_file(holder)
    handle = os.open(holder, os.O_RDWR)
    try:
        os.write(handle, f"{os.getpid():<{_PID_DIGITS}}".encode("ascii"))
    finally:
        os.close(handle)


def _locked_error(holder: Path) -> ConflictError:
    try:
        pid = int(holder.read_text(encoding="ascii"))
    except (OSError, ValueError):
        pid = 0
    who = f"process {pid}" if pid else "another process"
    return ConflictError(
        f"{who} is writing to this vault",
        code="locked",
        hint="try again when it has finished",
        details={"pid": pid or None},
    )


BLOB_SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs (
    hash TEXT PRIMARY KEY,
    packed INTEGER NOT NULL,
    content BLOB NOT NULL
) WITHOUT ROWID;
"""
_COMPRESSION_LEVEL = 3
"""Takes two thirds of the default level's time, for a twentieth more space."""
_FAST_COMPRESSION_LEVEL = 1
_LARGE_BYTES = 1024 * 1024


def put_blob(database: sqlite3.Connection, name: str, content: bytes) -> int:
    """Store content under its hash, unless it is there; return how many bytes were added."""
    if database.execute("SELECT 1 FROM blobs WHERE hash = ?", (name,)).fetchone():
        return 0
    packed = zlib.compress(content, _FAST_COMPRESSION_LEVEL if len(content) > _LARGE_BYTES else _COMPRESSION_LEVEL)
    database.execute("INSERT INTO blobs VALUES (?, ?, ?)", (name, len(packed), packed))
    return len(packed)


def get_blob(database: sqlite3.Connection, name: str) -> bytes:
    """Return stored content by its hash.

    Raises:
        NotFound: The journal doesn't hold it, or no longer.
        StorageError: The journal is damaged.
    """
    row = database.execute("SELECT content FROM blobs WHERE hash = ?", (name,)).fetchone()
    if row is None:
        raise NotFound(f"the journal doesn't hold the content {name}", hint="it may be older than the journal reaches")
    try:
        return zlib.decompress(row[0])
    except zlib.error as error:
        raise StorageError(f"the journal's copy of {name} is damaged", hint="restore it from a backup") from error


def drop_unused_blobs(database: sqlite3.Connection, names: Iterable[str | None]) -> int:
    """Delete those of *names* that no step refers to any more; return how many stored bytes were freed."""
    freed = 0
    for name in {name for name in names if name}:
        rows = database.execute(
            "DELETE FROM blobs WHERE hash = :name AND NOT EXISTS (SELECT 1 FROM steps WHERE before = :name)"
            " AND NOT EXISTS (SELECT 1 FROM steps WHERE after = :name) RETURNING packed",
            {"name": name},
        ).fetchall()
        freed += sum(int(row["packed"]) for row in rows)
    return freed


def blob_bytes(database: sqlite3.Connection) -> int:
    """Return the total of stored bytes."""
    return int(database.execute("SELECT coalesce(sum(packed), 0) FROM blobs").fetchone()[0])


BUSY_S = 10.0
DataVersion: TypeAlias = tuple[int, int]
"""Differs after every write, by this process or by another."""


class SharedDatabase:
    """Open SQLite file; threads may share it, processes have one each."""

    def __init__(self, database: sqlite3.Connection, path: Path, *, is_read_only: bool = False) -> None:
        """Wrap an open database; use `open_shared_database`."""
        self.is_read_only = is_read_only
        self._database = database
        self._guard = threading.RLock()
        self._begun = 0
        self.path = path

    def stamp(self, database: sqlite3.Connection) -> DataVersion | None:
        """Return the version of the data inside a block; None if the block itself has written."""
        if database.total_changes != self._begun:
            return None
        # SQLite's version only counts commits of other connections, `total_changes` those of this one.
        return int(database.execute("PRAGMA data_version").fetchone()[0]), database.total_changes

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Yield the database, in one consistent state, to one thread at a time.

        Raises:
            StorageError: The file can't be read.
        """
        with self._guard, _storage_errors(self.path):
            # A read inside a write block of the same thread sees what the block has written.
            if self._database.in_transaction:
                yield self._database
                return
            self._begin("BEGIN")
            try:
                yield self._database
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Commit what the block writes, all or nothing and durably.

        Raises:
            StorageError: The file can't be written.
        """
        with self._guard, _storage_errors(self.path):
            self._begin("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def shut(self) -> None:
        """Close the file."""
        with self._guard:
            self._database.close()

    def _begin(self, statement: str) -> None:
        self._database.execute(statement)
        self._begun = self._database.total_changes


def open_shared_database(path: Path, schema: str | tuple[str, ...], version: int) -> SharedDatabase:
    """Open a file, and create it where there is none.

    Args:
        path: In the vault's state folder, which exists.
        schema: SQL that makes the tables, none of which is there; or of each version what it adds to the one before.
        version: Of the schema.

    Raises:
        StorageError: The file is damaged, can't be opened, or a newer version made it.
    """
    databases.check_emptied(path)
    with _storage_errors(path):
        database, is_read_only = databases.open_or_read(
            path,
            lambda database: _prepare_database(database, path, schema, version),
            version=version,
            make_tables=lambda database, found: _make_tables(database, found, schema, version),
        )
        return SharedDatabase(database, path, is_read_only=is_read_only)


def _prepare_database(database: sqlite3.Connection, path: Path, schema: str | tuple[str, ...], version: int) -> None:
    if _schema_version(database) > version:
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if _schema_version(database) < version:
        with hold_write_lock(path.parent, timeout_s=BUSY_S):
            # Checked again under the lock: another process may have made the tables meanwhile.
            if (found := _schema_version(database)) < version:
                database.execute("PRAGMA journal_mode = WAL").fetchone()
                _make_tables(database, found, schema, version)
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = ON")


def _make_tables(database: sqlite3.Connection, found: int, schema: str | tuple[str, ...], version: int) -> None:
    missing = schema if isinstance(schema, str) else "".join(schema[found:])
    database.executescript(f"BEGIN IMMEDIATE; {missing} PRAGMA user_version = {version}; COMMIT;")


def _schema_version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _storage_errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise databases.storage_error(error, f"'{path}'") from error
