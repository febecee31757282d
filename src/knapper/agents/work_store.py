"""The one file of a vault's sessions, turns, runs, paused runs and presets, and what earlier versions kept apart."""

import contextlib
import hashlib
import logging
import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from knapper.changes.disk import storage
from knapper.changes.disk.storage import SharedDatabase
from knapper.errors import StorageError
from knapper.system import private

LOG: Final = logging.getLogger(__name__)
WORK_FILE: Final = "work.db"
WORK_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    client_key TEXT NOT NULL,
    kind TEXT NOT NULL,
    file TEXT NOT NULL,
    file_hash TEXT NOT NULL,
    file_node TEXT NOT NULL,
    name TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    forked_from TEXT NOT NULL,
    head TEXT NOT NULL,
    head_upto INTEGER NOT NULL,
    cleared INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_file ON sessions (client_key, file) WHERE kind = 'file';
CREATE UNIQUE INDEX sessions_none ON sessions (client_key) WHERE kind = 'none';
CREATE INDEX sessions_updated ON sessions (client_key, updated);
CREATE TABLE turns (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    at TEXT NOT NULL,
    file TEXT NOT NULL,
    question TEXT NOT NULL,
    messages TEXT NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    cancel INTEGER NOT NULL DEFAULT 0,
    data TEXT NOT NULL
);
CREATE INDEX runs_created ON runs (created);
CREATE TABLE nodes (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run, id)
) WITHOUT ROWID;
CREATE TABLE cache (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    sources TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX cache_key ON cache (key);
CREATE TABLE paused (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    at TEXT NOT NULL,
    question TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE presets (key TEXT PRIMARY KEY, name TEXT NOT NULL, said TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE switches (
    client_key TEXT NOT NULL,
    name TEXT NOT NULL,
    is_on INTEGER NOT NULL,
    PRIMARY KEY (client_key, name)
) WITHOUT ROWID;
CREATE TABLE migrated (mark INTEGER PRIMARY KEY, file TEXT NOT NULL);
"""
WorkKind = Literal["sessions", "runs", "paused", "presets"]
"""Sessions with their turns; runs with their nodes and the cache; paused runs; presets, with the switches of agents."""
_FIND_CLIENT: Final = "SELECT 1 FROM sessions WHERE client_key = ? LIMIT 1"
_UNSAFE_CHARACTERS: Final = re.compile(r"[^a-z0-9_-]+")


def client_key(client: str) -> str:
    """Return what a client's rows are found by, ``phone-1f2e3d4c5b6a``; empty for the vault's own.

    Earlier versions called a client's folder so, which doesn't tell its name.
    """
    if not client:
        return ""
    digest = hashlib.sha256(client.encode()).hexdigest()[:12]
    return f"{_UNSAFE_CHARACTERS.sub('-', client.lower())[:32]}-{digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStore:
    """The open file; threads may share it, processes have one each."""

    folder: Path
    """The vault's state folder."""
    database: SharedDatabase
    failures: dict[Path, StorageError] = field(default_factory=dict[Path, StorageError])
    """Files of earlier versions that couldn't be migrated when that was last tried, and why."""
    is_partial: bool = False
    """Whether the rows that are in the file are read where others couldn't be migrated; `find_failure` then tells."""

    def database_with(self, kind: WorkKind, client: str = "") -> SharedDatabase:
        """Return the database once a client's rows of a kind are in it; an empty name is for the vault's own.

        Raises:
            StorageError: An earlier version's file of them can't be migrated.
            ConflictError: Another process has been writing for too long.
        """
        path = _earlier_path(self.folder, kind, client)
        if path in self.failures and not self.database.is_read_only:
            # Whoever had the file open may have ended since, or it may have been repaired.
            failures = _migrate(self.folder, self.database, wait_s=0)
            self.failures.update(failures)  # first, so that one that fails again is never missing: threads share this
            for migrated in self.failures.keys() - failures.keys():
                _ = self.failures.pop(migrated, None)
        error = self.failures.get(path)
        if error and not self.is_partial:
            raise error
        return self.database

    def find_failure(self, kind: WorkKind, client: str = "") -> StorageError | None:
        """Return why a client's rows of a kind couldn't be migrated; None where nothing of them is missing."""
        return self.failures.get(_earlier_path(self.folder, kind, client))

    def has_sessions(self, client: str) -> bool:
        """Return whether a client has sessions."""
        if _earlier_path(self.folder, "sessions", client) in self.failures:
            return True
        with self.database.reading() as database:
            return database.execute(_FIND_CLIENT, (client_key(client),)).fetchone() is not None

    def shut(self) -> None:
        """Close the file."""
        self.database.shut()


def open_work(folder: Path) -> WorkStore:
    """Open the file in a vault's state folder, which exists, and migrate the files of earlier versions.

    Where the disk is full or the folder can't be written, those files stay, and what can be read is there read-only.

    Raises:
        StorageError: The file can't be used.
        ConflictError: Another process has been writing for too long.
    """
    database = storage.open_shared_database(folder / WORK_FILE, _SCHEMA, WORK_VERSION)
    if not any(_find_earlier(folder)):
        return WorkStore(folder=folder, database=database)
    with ExitStack() as stack:
        _ = stack.callback(database.shut)
        if not database.is_read_only and _has_space(folder):
            try:
                failures = _migrate(folder, database)
            except StorageError as error:
                if not storage.is_refusal(error.__cause__):
                    raise
            else:
                _ = stack.pop_all()
                return WorkStore(folder=folder, database=database, failures=failures)
        return _read_without_migrating(folder, database)


def has_any(folder: Path, kind: WorkKind) -> bool:
    """Return whether anything of a kind is stored, of any client; if not, what reads it needn't be imported.

    True also where that can't be told: opening the file then says why.
    """
    if any(earlier.kind == kind for earlier in _find_earlier(folder)):
        return True
    return _is_found(folder, f"SELECT 1 FROM {kind} LIMIT 1", ())  # noqa: S608 - one of four words


def has_sessions(folder: Path, client: str) -> bool:
    """Return whether a client has sessions; true also where that can't be told, as for `has_any`."""
    key = client_key(client)
    if any(earlier.kind == "sessions" and earlier.client_key == key for earlier in _find_earlier(folder)):
        return True
    return _is_found(folder, _FIND_CLIENT, (key,))


def migrate(folder: Path) -> None:
    """Migrate the files of earlier versions in a vault's state folder.

    Raises:
        StorageError: The disk has no space for that or refuses it, one of them can't be migrated, or the file can't be
            used.
        ConflictError: Another process has been writing for too long.
    """
    if any(_find_earlier(folder)):
        if not _has_space(folder):
            raise StorageError(
                f"the disk of '{folder}' has no space for migrating what earlier versions stored, so it is only read",
                hint="free as much as those files take",
            )
        work = open_work(folder)
        work.shut()
        for error in work.failures.values():
            raise error
        if work.database.is_read_only:
            raise StorageError(
                f"what earlier versions stored in '{folder}' can't be migrated, so it is only read",
                hint="check the disk's free space and the folder's permissions",
            )


def _is_found(folder: Path, sql: str, values: tuple[str, ...]) -> bool:
    path = folder / WORK_FILE
    connect = storage.connect_to_read if os.access(folder, os.W_OK) else storage.open_to_read
    try:
        with closing(connect(path)) as database:
            return database.execute(sql, values).fetchone() is not None
    except (OSError, sqlite3.Error):
        return path.exists()


_EARLIER_FILES: Final[Mapping[WorkKind, str]] = {
    "sessions": "sessions.db",
    "runs": "task_runs.db",
    "paused": "paused.db",
    "presets": "presets.db",
}
_CLIENTS_FOLDER: Final = "chats"
"""In it each client had a folder with its sessions and its switches."""
_EARLIER_VERSION: Final = 1
"""The only one that the tables of each file had."""
_FIRST_MARK: Final = 1_000_000
_LAST_MARK: Final = (1 << 31) - 1
"""A file is marked in place of its version before it is migrated: earlier versions don't open it from then on, and it
is migrated once, wherever this program is killed."""
_LOCK_TIMEOUT_S: Final = 1.0
"""How long to wait for processes that have the files open only to read them."""
_POLL_S: Final = 0.02
_LONG_S: Final = 1.5
"""How long migrating may take before it is logged: whoever waits for it could think that nothing happens."""
_COPIES: Final[Mapping[WorkKind, tuple[tuple[str, str], ...]]] = {
    "sessions": (
        (
            "SELECT * FROM sessions",
            # Where an earlier version was used in between, a note's second session is found by its id alone.
            "INSERT INTO sessions VALUES (:id, :client_key, CASE WHEN EXISTS (SELECT 1 FROM sessions s"
            " WHERE s.client_key = :client_key AND s.kind = :kind AND (:kind = 'none' OR s.file = :file))"
            " THEN 'own' ELSE :kind END, :file, :file_hash, :file_node, :name, :created, :updated, :forked_from, :head,"
            " :head_upto, :cleared)",
        ),
        (
            "SELECT * FROM turns WHERE session IN (SELECT id FROM sessions)",
            "INSERT INTO turns VALUES (:session, :number, :at, :file, :question, :messages, :outcome)",
        ),
    ),
    "runs": (
        (
            "SELECT * FROM runs ORDER BY rowid",
            "INSERT INTO runs VALUES (:id, :state, :created, :updated, :cancel, :data)",
        ),
        (
            "SELECT * FROM nodes WHERE run IN (SELECT id FROM runs)",
            "INSERT INTO nodes VALUES (:run, :id, :number, :state, :data)",
        ),
        (
            "SELECT * FROM cache ORDER BY number",
            "INSERT INTO cache (key, sources, data) VALUES (:key, :sources, :data)",
        ),
    ),
    "paused": (("SELECT * FROM paused", "INSERT INTO paused VALUES (:id, :client, :at, :question, :request, :state)"),),
    "presets": (
        (
            "SELECT * FROM presets WHERE :client_key = ''",
            # Where an earlier version was used in between, its preset of the same name is kept beside the newer one.
            "INSERT OR REPLACE INTO presets SELECT key || ' (2)', :name || ' (2)',"
            " json_set(:said, '$.name', :name || ' (2)') FROM presets WHERE key = :key AND said <> :said",
        ),
        ("SELECT * FROM presets WHERE :client_key = ''", "INSERT OR IGNORE INTO presets VALUES (:key, :name, :said)"),
        ("SELECT * FROM switches", "INSERT OR IGNORE INTO switches VALUES (:client_key, :name, :is_on)"),
    ),
}
"""What is read from an earlier version's file, and how it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EarlierFile:
    """A file of an earlier version."""

    path: Path
    kind: WorkKind
    client_key: str = ""

    def copy_to(self, target: sqlite3.Connection, source: sqlite3.Connection) -> None:
        """Copy all rows or none, unless they were copied already.

        Raises:
            StorageError: The file can't be read, or its rows are there already.
            sqlite3.Error: The rows can't be written.
        """
        mark = storage.schema_version(source)
        if target.execute("SELECT 1 FROM migrated WHERE mark = ?", (mark,)).fetchone():
            return  # killed before the file was removed, or the system refused that
        target.execute("SAVEPOINT file")
        try:
            if source.execute("SELECT 1 FROM sqlite_master").fetchone():
                for select, insert in _COPIES[self.kind]:
                    target.executemany(insert, self._read(source, select))
            if mark >= _FIRST_MARK:  # else it stays, and is only read
                target.execute("INSERT INTO migrated VALUES (?, ?)", (mark, f"{self.client_key}/{self.path.name}"))
        except (StorageError, sqlite3.IntegrityError) as error:
            target.execute("ROLLBACK TO file")
            if isinstance(error, StorageError):
                raise
            hint = "if it is a copy, or was put back from a backup, move it elsewhere"
            raise StorageError(f"'{self.path}' has entries that are in '{WORK_FILE}' already", hint=hint) from error
        finally:
            if target.in_transaction:  # SQLite ends it itself where the disk is full
                target.execute("RELEASE file")

    def _read(self, source: sqlite3.Connection, select: str) -> Iterator[dict[str, object]]:
        with storage.storage_errors(self.path):
            for row in source.execute(select, {"client_key": self.client_key}):
                yield {**dict(row), "client_key": self.client_key}

    def check_version(self, source: sqlite3.Connection) -> None:
        """Check that this program knows the file.

        Raises:
            StorageError: A newer version made it.
        """
        if _EARLIER_VERSION < storage.schema_version(source) < _FIRST_MARK:
            raise StorageError(f"'{self.path}' was made by a newer version", hint="update this program")

    def open_exclusively(self, deadline: float) -> sqlite3.Connection:
        """Open and mark the file, and lock all other processes out of it until it is closed.

        Args:
            deadline: When to give up on a file in use, by `time.monotonic`.

        Raises:
            StorageError: It is damaged or in use, or a newer version made it.
        """
        storage.check_emptied(self.path)
        with storage.storage_errors(self.path), ExitStack() as stack:
            database = stack.enter_context(closing(private.connect(self.path, timeout_s=0)))
            database.row_factory = sqlite3.Row
            self._lock(database, deadline)
            self.check_version(database)
            verdict = " ".join(str(database.execute("PRAGMA quick_check(1)").fetchone()[0]).split())
            if verdict != "ok":
                raise storage.damage_error(f"'{self.path}'", verdict)
            if storage.schema_version(database) < _FIRST_MARK:
                mark = _FIRST_MARK + secrets.randbelow(_LAST_MARK - _FIRST_MARK)
                database.execute(f"PRAGMA user_version = {mark}")
            _ = stack.pop_all()
            return database

    def _lock(self, database: sqlite3.Connection, deadline: float) -> None:
        database.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
        while True:
            try:
                # Its log moves into it, which fails while another process has it open.
                database.execute("PRAGMA journal_mode = DELETE").fetchone()
                database.executescript("BEGIN EXCLUSIVE; COMMIT")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() >= deadline:
                    hint = "stop `knap serve`, and editors and terminals with `knap mcp` or `knap chat`, then try again"
                    raise StorageError(f"an earlier version is still using '{self.path}'", hint=hint) from error
                time.sleep(_POLL_S)
            else:
                return


def _earlier_path(folder: Path, kind: WorkKind, client: str) -> Path:
    """Return where earlier versions had a client's file of a kind; an empty name is for the vault's own."""
    return (folder / _CLIENTS_FOLDER / client_key(client) if client else folder) / _EARLIER_FILES[kind]


def _find_earlier(folder: Path) -> Iterator[_EarlierFile]:
    for kind, name in _EARLIER_FILES.items():
        if (path := folder / name).is_file():
            yield _EarlierFile(path=path, kind=kind)
    for path in sorted(folder.glob(f"{_CLIENTS_FOLDER}/*/*.db")):
        for kind, name in _EARLIER_FILES.items():
            if path.name == name:
                yield _EarlierFile(path=path, kind=kind, client_key=path.parent.name)


def _has_space(folder: Path) -> bool:
    """Return whether what earlier versions stored fits on the disk once more; trying it all the same would fill it.

    The rows are in the log until the files are removed, and only then take place in the file itself.
    """
    needed = _count_bytes(folder)
    return shutil.disk_usage(folder).free > needed + needed // 8


def _count_bytes(folder: Path) -> int:
    """Return how much the files of earlier versions take."""
    total = 0
    for earlier in _find_earlier(folder):
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):  # another process has migrated it meanwhile
                total += Path(f"{earlier.path}{suffix}").stat().st_size
    return total


@contextmanager
def _logging_if_long(folder: Path) -> Generator[None]:
    """Log that files are being migrated if the block takes long."""
    size_mb = _count_bytes(folder) / 1_000_000
    message = "migrating %.1f MB that earlier versions stored in '%s' to '%s'; this is done once"
    timer = threading.Timer(_LONG_S, LOG.info, (message, size_mb, folder, WORK_FILE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _migrate(folder: Path, database: SharedDatabase, *, wait_s: float = _LOCK_TIMEOUT_S) -> dict[Path, StorageError]:
    """Copy the rows of earlier versions' files, all in one transaction, and then remove the files.

    Args:
        folder: The vault's state folder.
        database: The one file.
        wait_s: How long to wait for processes that have the files open, in seconds.

    Returns:
        The files that couldn't be migrated, and why: damaged ones, for example, until they are repaired.
    """
    failures: dict[Path, StorageError] = {}
    migrated: list[Path] = []
    deadline = time.monotonic() + wait_s
    with storage.hold_write_lock(folder, timeout_s=storage.BUSY_S), _logging_if_long(folder):
        with ExitStack() as stack, database.writing() as target:
            # Looked for again under the lock: another process may have migrated them meanwhile.
            for earlier in _find_earlier(folder):
                try:
                    earlier.copy_to(target, stack.enter_context(closing(earlier.open_exclusively(deadline))))
                except StorageError as error:
                    failures[earlier.path] = error
                else:
                    migrated.append(earlier.path)
        for path in migrated:
            for suffix in ("-wal", "-shm", "-journal", ""):
                # Windows removes no file that somebody reads; by its mark, it is known to be migrated.
                with contextlib.suppress(PermissionError):
                    Path(f"{path}{suffix}").unlink(missing_ok=True)
    return failures


def _read_without_migrating(folder: Path, database: SharedDatabase) -> WorkStore:
    """Return a read-only copy in memory of the rows of the file and of earlier versions' files, which stay."""
    failures: dict[Path, StorageError] = {}
    with ExitStack() as stack:
        joined = stack.enter_context(closing(storage.connect_memory()))
        with database.reading() as current:
            current.backup(joined)
        for earlier in _find_earlier(folder):
            try:
                with storage.storage_errors(earlier.path), closing(storage.open_to_read(earlier.path)) as source:
                    source.row_factory = sqlite3.Row
                    earlier.check_version(source)
                    earlier.copy_to(joined, source)
            except StorageError as error:
                failures[earlier.path] = error
        joined.execute("PRAGMA query_only = ON").fetchone()
        _ = stack.pop_all()
    database = SharedDatabase(joined, folder / WORK_FILE, is_read_only=True)
    return WorkStore(folder=folder, database=database, failures=failures)
