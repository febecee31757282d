"""Storage that processes share: a vault's SQLite files and how they are checked, its contents, and its write lock."""

import contextlib
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import filelock

from knapper.changes.disk import files
from knapper.errors import ConflictError, NotFound, StorageError
from knapper.system import private

BACKUP_FOLDER: Final = "backups"
_DERIVED_FOLDERS: Final = frozenset({BACKUP_FOLDER, private.ASIDE_NAME, "index"})
TRACES: Final[Mapping[str, str]] = {"taint.db": "taint", "journal.db": "journal.used"}
"""By a database's name, a folder or file beside it that is made before its first row, and stays: backups may lack."""
_SQLITE_HEADER: Final = b"SQLite format 3\0"
_ROOT_AT: Final = 100
"""Where the page of all tables begins in a file of SQLite. Source: SQLite, "Database File Format", 1.6."""
_LEAF_PAGE: Final = 0x0D
_BUSY_S: Final = 10.0
_REFUSAL_CODES: Final = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
)
_PROBE_S: Final = 0.05
MIN_LOCK_WAIT_S: Final = 0.3
"""Longer than `WorkLocks.is_held` holds a lock while it probes."""
_DAMAGE_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite says that a file is damaged, and not that it is busy, full or closed to us."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE_CODES


def storage_error(error: sqlite3.Error, what: str) -> StorageError:
    """Build the error for a state file that can't be used; *what* names it."""
    if is_damage(error):
        return damage_error(what, str(error))
    return StorageError(
        f"{what} can't be used: {error}", hint="check the disk's free space and the folder's permissions"
    )


def damage_error(what: str, why: str) -> StorageError:
    """Build the error for a damaged state file; *what* names it."""
    return StorageError(
        f"{what} is damaged: {why}",
        code="damaged",
        hint="`knap doctor` tells what is damaged, and `knap doctor --repair` saves what can be saved",
    )


def is_refusal(error: BaseException | None) -> bool:
    """Return whether SQLite says that the disk is full or doesn't let us write."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSAL_CODES


def check_emptied(path: Path) -> None:
    """Refuse a file that is empty, or has no tables, although it has been in use: it would be taken for a new one.

    Being empty is no damage by itself: a process that is killed, or waits for the write lock, just before it makes the
    tables leaves such a file.

    Raises:
        StorageError: There is a backup of it, or what is only made for its rows, so it wasn't empty.
    """
    # Looked at again once one was seen: another process may be making the file, and its first backup, just now.
    if _is_empty(path) and ((backups := list_backups(path)) or has_trace(path)) and _is_empty(path):
        repaired = "brings it back from its backup" if backups else "begins a new one, as there is no backup"
        lost = "" if backups else ": what it held is lost"
        raise StorageError(
            f"'{path}' is empty, although it was in use{lost}",
            code="damaged",
            hint=f"`knap doctor --repair` {repaired}, and keeps the empty file aside",
        )


def find_emptied(folder: Path) -> Iterator[StorageError]:
    """Yield what `check_emptied` says of the databases right in a folder."""
    for path in sorted(folder.glob("*.db")):
        try:
            check_emptied(path)
        except StorageError as error:
            yield error


def record_use(path: Path) -> None:
    """Make the file that shows that a database is in use, before its first row.

    Raises:
        OSError: The folder can't be written.
    """
    private.create_file(path.with_name(TRACES[path.name]))


def forget_use(path: Path) -> None:
    """Remove what shows that a database was in use, where a new one is to take its place; no process may use it."""
    trace = path.with_name(TRACES[path.name]) if has_trace(path) else None
    if trace is not None and trace.is_dir():
        shutil.rmtree(trace, ignore_errors=True)
    elif trace is not None:
        with contextlib.suppress(OSError):  # a folder that can't be written gets no new database either
            trace.unlink()


def has_trace(path: Path) -> bool:
    """Return whether something beside a database shows that it has had rows."""
    return path.name in TRACES and path.with_name(TRACES[path.name]).exists()


def _is_empty(path: Path) -> bool:
    """Return whether a database is there without tables; its log is asked first, since it moves into the file."""
    try:
        if _has_log(path):
            return False
        with path.open("rb") as file:
            head = file.read(_ROOT_AT + 5)
    except OSError:
        return False
    # The page of all tables has no cell: a file of one kilobyte may be as empty as one of none.
    root = head[_ROOT_AT:]
    return not head or (head.startswith(_SQLITE_HEADER) and root[:1] == bytes([_LEAF_PAGE]) and root[3:] == b"\0\0")


def _has_log(path: Path) -> bool:
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def find_databases(folder: Path) -> list[Path]:
    """List the databases below a vault's state folder, without those that are derived from the notes."""
    found = (path for path in folder.rglob("*.db") if not _DERIVED_FOLDERS & set(path.relative_to(folder).parts))
    return sorted(found)


def find_damage(path: Path) -> str:
    """Check a whole database, with the contents of a journal.

    Returns:
        What is wrong; empty where nothing is.
    """
    try:
        check_emptied(path)
        with contextlib.closing(connect_to_read(path)) as database:
            verdict = " ".join(str(database.execute("PRAGMA integrity_check(1)").fetchone()[0]).split())
            if verdict != "ok":
                return verdict
            bad_contents = len(list(find_bad_contents(database)))
            return f"{bad_contents} stored contents aren't those that were stored" if bad_contents else ""
    except StorageError as error:
        return error.message
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)


class _CopyConnection(sqlite3.Connection):
    """A connection to a temporary copy of a database, which goes with it."""

    folder: "TemporaryDirectory[str] | None" = None

    def close(self) -> None:
        """Close the connection, and remove the copy."""
        super().close()
        if self.folder is not None:
            self.folder.cleanup()


def open_or_read(
    path: Path,
    prepare: Callable[[sqlite3.Connection], None],
    *,
    version: int,
    make_tables: Callable[[sqlite3.Connection, int], None],
) -> tuple[sqlite3.Connection, bool]:
    """Open a database; where the disk is full or can't be written, only to read it as it is.

    Nothing is written beside it then: what an earlier version of the tables lacks is added to a copy in the memory, and
    a log that nobody keeps in order is read in a temporary copy. A file that isn't there is read as one without rows.

    Args:
        path: Of the database; it's created where there is none.
        prepare: Makes missing tables under the write lock, and sets the connection's options.
        version: Of the tables.
        make_tables: Makes those that a version lacks, without a lock.

    Returns:
        The connection, and whether it can only read.

    Raises:
        sqlite3.Error: It can't be opened.
        OSError: It can't be read.
        StorageError: A newer version made the file.
    """
    if os.access(path.parent, os.W_OK):
        try:
            return _connect(path, prepare), not os.access(path, os.W_OK)
        except sqlite3.Error as error:
            if not is_refusal(error) or not path.is_file():
                raise
    database = open_to_read(path)
    database.row_factory = sqlite3.Row
    found = schema_version(database)
    if found > version:
        database.close()
        raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
    if found < version:
        copy = connect_memory()
        database.backup(copy)
        database.close()
        database = copy
        make_tables(database, found)
    database.execute("PRAGMA query_only = ON").fetchone()
    return database, True


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a database without writing to its folder; one that isn't there is read as one without tables.

    Raises:
        sqlite3.Error: It can't be opened.
    """
    if not path.is_file():
        return connect_memory()
    if _has_log(path):
        # In place it can be read with what a living process shares of the log; SQLite would have to make that.
        with contextlib.suppress(sqlite3.Error):
            database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                _ = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.Error:
                database.close()
                raise
            return database
        # A temporary copy with its log, since reading that in place would write beside it.
        with contextlib.suppress(OSError):  # on a full disk, what the log has is left out
            folder = TemporaryDirectory(prefix="knapper-")
            try:
                for name in (path.name, f"{path.name}-wal"):
                    shutil.copyfile(path.with_name(name), Path(folder.name, name))
                database = sqlite3.connect(
                    Path(folder.name, path.name), isolation_level=None, check_same_thread=False, factory=_CopyConnection
                )
            except BaseException:
                folder.cleanup()
                raise
            database.folder = folder
            return database
    return private.connect(path, timeout_s=_BUSY_S, is_immutable=True)


def connect_memory() -> sqlite3.Connection:
    """Open an empty database in memory."""
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.row_factory = sqlite3.Row
    return database


def _connect(path: Path, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    database = private.connect(path, timeout_s=_BUSY_S)
    database.row_factory = sqlite3.Row
    try:
        prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a database to read it; also one in a folder that can't be written.

    Raises:
        sqlite3.Error: It can't be opened.
    """
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None)


def find_bad_contents(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the names of stored contents that don't have the hash that they are named by."""
    has_contents = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'blobs'").fetchone()
    for name, packed in database.execute("SELECT hash, content FROM blobs") if has_contents else ():
        try:
            content = zlib.decompress(packed)
        except (TypeError, zlib.error):
            yield name
            continue
        if str(name).startswith("sha256:") and files.hash_content(content) != name:
            yield name


def list_backups(path: Path) -> list[Path]:
    """List a database's backups, the newest first."""
    return sorted((path.parent / BACKUP_FOLDER).glob(f"{path.name}.????-??-??"), reverse=True)


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
        # First the next place in line, then the lock itself; without a time-out, it is tried only once.
        guard = private.file_lock(folder / LOCK_FILE, poll_s=_POLL_S)
        if timeout_s <= 0:
            guard.acquire(timeout=0)
        else:
            deadline = time.monotonic() + timeout_s
            next_in_line = private.file_lock(folder / NEXT_FILE, poll_s=_POLL_S)
            with next_in_line.acquire(timeout=timeout_s):
                guard.acquire(timeout=max(deadline - time.monotonic(), 0))
    except filelock.Timeout as error:
        try:
            pid = int(holder.read_text(encoding="ascii"))
        except (OSError, ValueError):
            pid = 0
        who = f"process {pid}" if pid else "another process"
        raise ConflictError(
            f"{who} is writing to this vault",
            code="locked",
            hint="try again when it has finished",
            details={"pid": pid or None},
        ) from error
    except OSError as error:
        msg = f"the vault's lock in '{folder}' can't be taken: {error.strerror}"
        raise StorageError(msg, hint="check that the folder is there and can be written") from error
    try:
        # The process id only serves error messages, so failing to write it (on a full disk) doesn't matter.
        with contextlib.suppress(OSError):
            # The id is padded instead of truncating the file, which some file systems answer with a flush.
            private.create_file(holder)
            handle = os.open(holder, os.O_RDWR)
            try:
                os.write(handle, f"{os.getpid():<{_PID_DIGITS}}".encode("ascii"))
            finally:
                os.close(handle)
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


class WorkLocks:
    """Locks of pieces of work, such as a session's turn or a run; the system releases one where its process ends."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, with a file for each lock; it is made with the first one."""
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return the file of a lock, which stays when the lock is released."""
        return self.folder / f"{name}.lock"

    def acquire(self, name: str, *, wait_s: float = MIN_LOCK_WAIT_S) -> filelock.BaseFileLock | None:
        """Acquire a lock, which any thread may release; None where it is held for longer than *wait_s*."""
        private.make_folder(self.folder)
        lock = private.file_lock(self.path(name), timeout_s=wait_s, poll_s=_POLL_S)
        try:
            _ = lock.acquire()
        except filelock.Timeout:
            return None
        return lock

    def is_held(self, name: str) -> bool:
        """Return whether any process holds a lock for longer than a probe like this one does.

        Raises:
            OSError: This user may not take the lock.
        """
        # Two probes at once must not take each other for work: the second try comes after the other has let go.
        if not self.path(name).exists():
            return False
        lock = private.file_lock(self.path(name), timeout_s=2 * _PROBE_S, poll_s=_PROBE_S)
        try:
            with lock:
                return False
        except filelock.Timeout:
            return True


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
        with self._guard, storage_errors(self.path):
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
        with self._guard, storage_errors(self.path):
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
    check_emptied(path)

    def prepare(database: sqlite3.Connection) -> None:
        if schema_version(database) > version:
            raise StorageError(f"'{path}' was made by a newer version", hint="update this program")
        if schema_version(database) < version:
            with hold_write_lock(path.parent, timeout_s=BUSY_S):
                # Checked again under the lock: another process may have made the tables meanwhile.
                if (found := schema_version(database)) < version:
                    database.execute("PRAGMA journal_mode = WAL").fetchone()
                    _make_tables(database, found, schema, version)
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")

    with storage_errors(path):
        database, is_read_only = open_or_read(
            path,
            prepare,
            version=version,
            make_tables=lambda database, found: _make_tables(database, found, schema, version),
        )
        return SharedDatabase(database, path, is_read_only=is_read_only)


def _make_tables(database: sqlite3.Connection, found: int, schema: str | tuple[str, ...], version: int) -> None:
    missing = schema if isinstance(schema, str) else "".join(schema[found:])
    database.executescript(f"BEGIN IMMEDIATE; {missing} PRAGMA user_version = {version}; COMMIT;")


def schema_version(database: sqlite3.Connection) -> int:
    """Return the version of the tables in a database; 0 where there are none."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def storage_errors(path: Path) -> Generator[None]:
    """Turn what SQLite raises into errors that name the file.

    Raises:
        StorageError: SQLite can't use the file; its code is ``damaged`` where that is why.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error, f"'{path}'") from error
