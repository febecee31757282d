"""Open SQLite files of a vault's state that several processes read and write at once."""

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from knapper.changes.disk import lock
from knapper.errors import StorageError

BUSY_S = 10.0
Stamp: TypeAlias = tuple[int, int]
"""Another one after every write, be it by this process or by another."""


class Ledger:
    """Hold an open file; threads may share it, and processes have one each."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        """Wrap an open database; `open_ledger` makes one."""
        self._database = database
        self._guard = threading.RLock()
        self._begun = 0
        self.path = path

    def stamp(self, database: sqlite3.Connection) -> Stamp | None:
        """Identify the state that a lent database is in; None where the block has written to it itself."""
        if database.total_changes != self._begun:
            return None
        return int(database.execute("PRAGMA data_version").fetchone()[0]), database.total_changes

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Lend the database to one thread, as it is at one moment.

        Raises:
            StorageError: The file can't be read.
        """
        with self._guard, _named(self.path):
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
        """Keep what the block writes, all or nothing, so that it outlasts a power cut.

        Raises:
            StorageError: The file can't be written.
        """
        with self._guard, _named(self.path):
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


def open_ledger(path: Path, schema: str, version: int) -> Ledger:
    """Open a file, and make it where there is none.

    Args:
        path: In the vault's state folder, which exists.
        schema: SQL that makes the tables, none of which is there.
        version: Of the schema.

    Raises:
        StorageError: The file is damaged, can't be opened, or a newer version made it.
    """
    with _named(path):
        database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        database.row_factory = sqlite3.Row
        try:
            _prepare(database, path, schema, version)
        except BaseException:
            database.close()
            raise
        return Ledger(database, path)


def _prepare(database: sqlite3.Connection, path: Path, schema: str, version: int) -> None:
    if _version(database) > version:
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if _version(database) < version:
        with lock.hold(path.parent, timeout_s=BUSY_S):
            if _version(database) < version:
                database.execute("PRAGMA journal_mode = WAL").fetchone()
                database.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {version}; COMMIT;")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = ON")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _named(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"'{path}' can't be used: {error}", hint="check the disk's free space and the folder's permissions"
        ) from error
