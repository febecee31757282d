"""Open the index's SQLite file: one connection a thread to read, one to write."""

import os
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from knapper.errors import StorageError
from knapper.index import schema, states
from knapper.index.states import Connection

BUSY_MS = 30_000
"""How long a connection waits for another process's transaction before it gives up."""
_AGAIN_S = 0.01
_TRUSTED_S = 0.02
"""How long a reader trusts that its file is still the index; a search would ask ten times otherwise."""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OF_DISK = _DAMAGED | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


class Database:
    """Hold the connections to one index file.

    Readers see a snapshot and never wait; writers wait for one another. Any thread may use it.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, make it where it isn't there, and drop it where it was built for another version.

        Raises:
            StorageError: The file can't be opened or made.
        """
        self.path = path
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, Connection]] = []
        self._guard = threading.Lock()
        self._write = threading.RLock()
        self._writing = False
        with self._opening():
            self._prepare_or_replace()

    def reader(self, *, trusted_s: float = _TRUSTED_S) -> Connection:
        """Give this thread's connection; one to the new file where another process has replaced or removed it.

        Args:
            trusted_s: How long ago it may have been looked whether that is so.

        Raises:
            StorageError: The new file can't be opened or made.
        """
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            return self._connect()
        if connection.in_transaction or self._is_ours(trusted_s):
            return connection
        uid = _uid(connection)
        self._forget(connection)
        with self._opening():
            self._prepare()
        self._tell_apart(uid)
        return self.reader()

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """Hold one state of the index while several questions are asked."""
        connection = self.reader(trusted_s=0)
        if connection.in_transaction:
            yield connection
            return
        connection.hold()
        try:
            yield connection
        finally:
            connection.let_go()

    @contextmanager
    def transaction(self, *, counts: bool = True) -> Generator[sqlite3.Connection]:
        """Write all of what happens inside, or nothing; the generation goes up by one, unless it needn't count.

        Raises:
            StorageError: The disk is full, the file is read-only or damaged.
        """
        with self._write:
            connection = self.reader(trusted_s=0)
            if self._writing:
                yield connection
                return
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._writing = True
                try:
                    if counts:
                        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    self._writing = False
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StorageError(
                    f"the index {self.path} can't be written: {error}",
                    hint="check free space and permissions, then run `knap index --full`",
                ) from error

    def rebuild(self) -> None:
        """Begin anew with empty tables; readers see the old ones until all is ready, unless the file is damaged.

        Raises:
            StorageError: The disk is full, or the file can't be written.
        """
        try:
            with self.transaction() as connection:
                schema.drop(connection)
                schema.create(connection)
        except StorageError as error:
            if _code(error.__cause__) in _OF_DISK - _DAMAGED:
                raise
            with self._opening():
                self._replace()  # damage has many faces: "vtable constructor failed" is one

    def size_bytes(self) -> int:
        """Give the size on disk, the log of recent writes included."""
        files = (Path(f"{self.path}{suffix}") for suffix in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Close every connection."""
        with self._guard:
            for _, connection in self._open:
                connection.close()
            self._open.clear()
            self._local = threading.local()

    def __enter__(self) -> Self:
        """Use the database as a context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @contextmanager
    def _opening(self) -> Generator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            yield
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"the index {self.path} can't be opened: {error}",
                hint="check the folder's permissions and free space; the index can be deleted, it comes back",
            ) from error

    def _is_ours(self, trusted_s: float) -> bool:
        """Tell whether the file is the one that this thread's connection has open, or was so a moment ago."""
        now = time.monotonic()
        if now - self._local.seen < trusted_s:
            return True
        try:
            ours = os.path.samestat(self.path.stat(), self._local.file)
        except OSError:
            return False
        self._local.seen = now
        return ours

    def _tell_apart(self, uid: str) -> None:
        """Give an older copy that took an index's place an id of its own: what is remembered isn't true of it."""
        if uid and _uid(self.reader()) == uid:
            with suppress(StorageError), self.transaction() as connection:
                connection.execute("UPDATE meta SET value = ? WHERE (key, value) = ('uid', ?)", (schema.new_uid(), uid))

    def _forget(self, connection: sqlite3.Connection) -> None:
        """Close this thread's connection."""
        with self._guard:
            self._open = [one for one in self._open if one[1] is not connection]
        del self._local.connection
        connection.close()

    def _connect(self) -> Connection:
        before = self.path.stat() if self.path.exists() else None  # who replaces it meanwhile is noticed the next time
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=Connection,
        )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA mmap_size = 67108864")  # counts as resident for each connection; more gains nothing
        with self._guard:
            self._open = [*self._without_ended(), (threading.current_thread(), connection)]
        for statement in schema.TEMPORARY:
            connection.execute(statement)
        self._local.connection, self._local.file, self._local.seen = connection, before or self.path.stat(), -_TRUSTED_S
        return connection

    def _without_ended(self) -> list[tuple[threading.Thread, Connection]]:
        """Close the connections of threads that have ended, and give the others."""
        kept = [one for one in self._open if one[0].is_alive()]
        for one in self._open:
            if one not in kept:
                one[1].close()
        return kept

    def _prepare_or_replace(self) -> None:
        """Build a damaged file anew: nothing in it is anywhere's only copy."""
        try:
            self._prepare()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            self._replace()

    def _replace(self) -> None:
        """Put an empty index in the file's place."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self._prepare()

    def _prepare(self) -> None:
        connection = self.reader()
        if _version(connection) == schema.VERSION:
            return
        _log_writes(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) != schema.VERSION:  # another process may have been first
                schema.drop(connection)
                schema.create(connection)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _uid(connection: sqlite3.Connection) -> str:
    try:
        return states.state_of(connection)[0]
    except (sqlite3.DatabaseError, KeyError):  # a damaged file, from which nothing can be remembered
        return ""


def failure(error: Exception) -> StorageError | None:
    """Say what is wrong with a file of the program's state; None where the error is no file's fault."""
    if _code(error) not in _OF_DISK:
        return None
    return StorageError(
        f"a file of the program's state can't be read: {error}",
        hint="`knap doctor` tells whether it is the index, which comes back with `knap index --full`",
    )


def _code(error: BaseException | None) -> int:
    """Give SQLite's own number of an error, without what it adds to say more; 0 where it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _log_writes(connection: sqlite3.Connection) -> None:
    """Let readers go on while one writes; who begins at the same time is waited for, which SQLite doesn't here."""
    until = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)
        else:
            return


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
