"""Taint: which clients, runs and sessions have read untrusted content, and until when they only propose."""

import contextlib
import sqlite3
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.changes.disk import storage
from knapper.changes.disk.storage import SharedDatabase
from knapper.errors import RefusedError
from knapper.system import private
from knapper.vault.access import Grants

if TYPE_CHECKING:
    from filelock import BaseFileLock

FILE = "taint.db"
HOLDERS_FOLDER = storage.TRACES[FILE]
"""Of the locks of processes in which tainted runs go on. It also shows that an emptied file had marks."""
_SCHEMAS = (
    """
CREATE TABLE IF NOT EXISTS taints (
    client TEXT NOT NULL,
    run TEXT NOT NULL,
    at TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (client, run)
) WITHOUT ROWID;
""",
    """
ALTER TABLE taints ADD COLUMN seen TEXT NOT NULL DEFAULT '';
ALTER TABLE taints ADD COLUMN inherited INTEGER NOT NULL DEFAULT 0;
UPDATE taints SET seen = at;
""",
    """
ALTER TABLE taints ADD COLUMN holder TEXT NOT NULL DEFAULT '';
CREATE TABLE pruned (at TEXT NOT NULL);
""",
)
"""Of each version, what it adds to the one before."""
_IN_FORCE = "(run <> '' OR seen > :horizon)"
_APPLIES = f"((run <> '' AND run = :run) OR (run = '' AND client = :client)) AND {_IN_FORCE}"
DEFAULT_MINUTES: Final = 60
_STEP: Final = timedelta(minutes=1)
"""How often a client's last reading is stored anew, which waits for the disk; its taint lasts that much longer."""
_ENDED_FOR: Final = timedelta(days=1)
"""How long after its last reading an ended run is kept: its stored state may be under way."""
_UNHELD_FOR: Final = timedelta(days=30)
"""The same of a run whose process isn't known: an older version or a full disk may have left that out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads: a client, and the run, session or connection in which it does."""

    client: str
    run: str = ""
    """Empty for a client that calls without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """Since when a client or run may only propose, until when, and why."""

    client: str
    run: str
    """Empty for the client itself: it counts outside of runs and sessions, and in each of them."""
    at: datetime
    """When it began."""
    until: datetime | None
    """When it ends unless more is read; None for a run or session, which keeps it."""
    source: str
    """The first note or address with foreign text that was read."""
    inherited: bool
    """Whether it was only begun by a tainted client, and hasn't read any such text by itself."""


class _Holder:
    """A lock that a process has while its tainted runs go on; the system releases it when the process dies."""

    def __init__(self, folder: Path) -> None:
        """Take nothing yet: most processes have no tainted runs."""
        self._folder = folder
        self._lock: BaseFileLock | None = None
        self.name = ""

    def hold(self) -> str:
        """Return the lock's name, taking it on first use; empty where it can't be taken."""
        if self._lock is None:
            name = uuid.uuid4().hex
            with contextlib.suppress(OSError):
                private.make_folder(self._folder)
                lock = private.file_lock(_lock_file(self._folder, name), timeout_s=0)
                _ = lock.acquire()
                self._lock, self.name = lock, name
        return self.name

    def release(self) -> None:
        """Release the lock and remove its file: the process's runs have ended."""
        if self._lock is not None:
            _remove_lock(self._folder, self.name, self._lock)
            self._lock, self.name = None, ""


def _lock_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.lock"


def _is_held(folder: Path, name: str) -> bool:
    """Return whether the process that took a lock still lives; the file of a dead one is removed."""
    if not _lock_file(folder, name).exists():
        return False
    lock = private.file_lock(_lock_file(folder, name), timeout_s=0)
    try:
        _ = lock.acquire()
    except (OSError, TimeoutError):  # a lock that can't be tried may be held
        return True
    _remove_lock(folder, name, lock)
    return False


def _remove_lock(folder: Path, name: str, lock: "BaseFileLock") -> None:
    with contextlib.suppress(OSError):
        _lock_file(folder, name).unlink(missing_ok=True)
    lock.release()
    with contextlib.suppress(OSError):  # Windows removes no file that is open
        _lock_file(folder, name).unlink(missing_ok=True)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Taints:
    """Open list of tainted clients and runs; `open_taints` returns one.

    A run or session keeps its taint. That of a client without a run ends when it hasn't read foreign text for a while.
    """

    def __init__(
        self, own: SharedDatabase, *, lifetime: timedelta | None, now: Callable[[], datetime] = _utc_now
    ) -> None:
        """Wrap an open file.

        Args:
            own: The file.
            lifetime: How long after the last reading a client stays tainted; None for ever.
            now: Returns the time.
        """
        self._ledger = own
        self._lifetime = lifetime
        self._now = now
        self._folder = own.path.parent / HOLDERS_FOLDER
        self._holder = _Holder(self._folder)
        self._askers: tuple[Reader, ...] = ()
        self._sessions: tuple[Reader, ...] = ()

    def shared_with(self, *askers: Reader) -> "Taints":
        """Return the same list for an agent that works for others.

        What taints the agent taints these, who hear of it; while one of these is tainted, the agent only proposes.
        """
        return self._linked((*self._askers, *askers), self._sessions)

    def within(self, *sessions: Reader) -> "Taints":
        """Return the same list for a run that goes on in a session: each has what the other has read."""
        return self._linked(self._askers, (*self._sessions, *sessions))

    def mark(self, client: str, run: str, source: str) -> bool:
        """Record that foreign text was read.

        Args:
            client: Who read it.
            run: The run or session that it was read in; empty where there is none.
            source: The note or address.

        Returns:
            True if this wasn't recorded before.
        """
        reader = Reader(client=client, run=run)
        return reader in self._record((reader, *self._sessions, *self._askers), source)

    def is_tainted(self, client: str, run: str = "") -> bool:
        """Return whether a client, or the run or session that it works in, has read foreign text.

        All clients of one run share what one of them has read; what a client read outside of runs counts in each.
        """
        return bool(self._find((Reader(client=client, run=run), *self._sessions, *self._askers)))

    def keeps(self, run: str) -> bool:
        """Return whether a run or session is tainted, by what was read in it or by whoever began it."""
        return bool(self._find((Reader(client="", run=run),)))

    def begin(self, client: str, run: str) -> None:
        """Begin a run, or go on with a session: it takes over the taint of what it is derived from.

        A session that has read foreign text passes its taint to those who hear of it now, and a tainted asker passes
        its own to the run.
        """
        own = (Reader(client=client, run=run), *self._sessions)
        if source := self._find(own):
            _ = self._record((*own, *self._askers), source)
        elif source := self._find(self._askers):
            _ = self._record(own, source, inherited=True)

    def end(self, client: str, run: str) -> None:
        """End a run: those who hear of it have read at this time what it has read."""
        source = self._find((Reader(client=client, run=run), *self._sessions), inherited=False)
        if source:
            _ = self._record(self._askers, source)

    def copy(self, run: str, reader: Reader) -> None:
        """Give a copy of a session the taint that the session has, before anything is done in the copy."""
        if source := self._find((Reader(client=reader.client, run=run),)):
            _ = self._record((reader,), source)

    def entries(self) -> tuple[Taint, ...]:
        """Return the tainted clients and runs, the newest first."""
        with self._ledger.reading() as database:
            rows = database.execute(
                f"SELECT * FROM taints WHERE {_IN_FORCE} ORDER BY at DESC, client, run",  # noqa: S608  # a constant of this module
                {"horizon": self._horizon()},
            ).fetchall()
        taints: list[Taint] = []
        for row in rows:
            until = None
            if self._lifetime and not row["run"]:
                until = datetime.fromisoformat(row["seen"]) + self._lifetime + _STEP
            taints.append(
                Taint(
                    client=row["client"],
                    run=row["run"],
                    at=datetime.fromisoformat(row["at"]),
                    until=until,
                    source=row["source"],
                    inherited=bool(row["inherited"]),
                )
            )
        return tuple(taints)

    def clear(self, client: str, run: str = "", *, by: Grants) -> bool:
        """Remove the taint of a client or run.

        Args:
            client: Whose entry.
            run: Which run's; empty for the entry of the client itself.
            by: The grants of whoever clears it.

        Returns:
            True if there was such an entry.

        Raises:
            RefusedError: It isn't a person.
        """
        _check_is_person(by)
        with self._ledger.writing() as database:
            cursor = database.execute("DELETE FROM taints WHERE client = ? AND run = ?", (client, run))
            return cursor.rowcount > 0

    def clear_all(self, *, by: Grants) -> None:
        """Remove the taint of all clients and runs.

        Raises:
            RefusedError: It isn't a person.
        """
        _check_is_person(by)
        with self._ledger.writing() as database:
            _ = database.execute("DELETE FROM taints")

    def prune(self, find_stored: Callable[[], Collection[str] | None]) -> int:
        """Forget clients whose time is over, and runs and connections that can't go on; at most once a day.

        A run is kept while it is stored, and while the process lives that last worked in it. Whatever is touched
        meanwhile stays.

        Args:
            find_stored: Returns the ids of all sessions and runs that are stored; None if these can't be told. It is
                called where something may have ended.

        Returns:
            The number of entries that were removed.

        Raises:
            StorageError: The file can't be used.
        """
        if self._ledger.is_read_only:
            return 0
        now = self._now()
        times = {"horizon": self._horizon(), "day": _stamp(now - _ENDED_FOR)}
        with self._ledger.reading() as database:
            over = database.execute("SELECT count(*) FROM taints WHERE run = '' AND seen <= :horizon", times).fetchone()
            pruned_today = database.execute("SELECT 1 FROM pruned WHERE at > :day", times).fetchone()
            old = database.execute("SELECT * FROM taints WHERE run <> '' AND seen < :day", times).fetchall()
        if not over[0] and (pruned_today or not old):
            return 0
        ended: list[sqlite3.Row] = []
        if not pruned_today:
            # The holders first: what one of them stores before it ends is then found among what is stored.
            unknown_since = _stamp(now - _UNHELD_FOR)
            held = {name: _is_held(self._folder, name) for name in {str(row["holder"]) for row in old} if name}
            unheld = [row for row in old if not held.get(row["holder"], row["seen"] >= unknown_since)]
            stored = find_stored() if unheld else ()
            ended = [] if stored is None else [row for row in unheld if row["run"] not in stored]
        # locks of processes that died, whose entries a person may have removed
        youngest = time.time() - _ENDED_FOR.total_seconds()
        with contextlib.suppress(OSError):
            for file in self._folder.glob("*.lock"):
                if file.lstat().st_mtime < youngest:
                    _ = _is_held(self._folder, file.stem)
        with self._ledger.writing() as database:
            removed = database.execute("DELETE FROM taints WHERE run = '' AND seen <= :horizon", times).rowcount
            for row in ended:
                sql = "DELETE FROM taints WHERE client = ? AND run = ? AND seen = ? AND holder = ?"
                removed += database.execute(sql, (row["client"], row["run"], row["seen"], row["holder"])).rowcount
            _ = database.execute("DELETE FROM pruned")
            _ = database.execute("INSERT INTO pruned VALUES (?)", (_stamp(now),))
        return removed

    def shut(self) -> None:
        """Close the file; the runs of this process have ended."""
        self._ledger.shut()
        self._holder.release()

    def _linked(self, askers: Iterable[Reader], sessions: Iterable[Reader]) -> "Taints":
        linked = Taints(self._ledger, lifetime=self._lifetime, now=self._now)
        linked._holder = self._holder
        linked._askers, linked._sessions = tuple(dict.fromkeys(askers)), tuple(dict.fromkeys(sessions))
        return linked

    def _horizon(self) -> str:
        """Return the time before which a client's last reading doesn't count any more."""
        return "" if self._lifetime is None else _stamp(self._now() - self._lifetime - _STEP)

    def _find(self, readers: Iterable[Reader], *, inherited: bool = True) -> str:
        """Return what one of the readers has read; empty where none has read anything foreign."""
        sql = f"SELECT source FROM taints WHERE {_APPLIES} AND inherited <= :inherited ORDER BY inherited LIMIT 1"  # noqa: S608  # as above
        fixed = {"horizon": self._horizon(), "inherited": int(inherited)}
        with self._ledger.reading() as database:
            for reader in readers:
                row = database.execute(sql, {"client": reader.client, "run": reader.run, **fixed}).fetchone()
                if row is not None:
                    return row["source"]
        return ""

    def _record(self, readers: Iterable[Reader], source: str, *, inherited: bool = False) -> list[Reader]:
        """Mark readers, all or none, and return those that weren't marked before."""
        wanted = list(dict.fromkeys(readers))
        # A read spares those that are tainted already the durable write, which waits for the disk.
        with self._ledger.reading() as database:
            outdated = [reader for reader in wanted if not self._is_recorded(database, reader, inherited=inherited)]
        if not outdated:
            return []
        with self._ledger.writing() as database:
            return [reader for reader in outdated if self._write(database, reader, source, inherited=inherited)]

    def _is_recorded(self, database: sqlite3.Connection, reader: Reader, *, inherited: bool) -> bool:
        row = _find_row(database, reader)
        if row is None or row["inherited"] > inherited:
            return False
        if reader.run:
            return bool(self._holder.name) and row["holder"] == self._holder.name
        return _stamp(self._now() - _STEP) < row["seen"]

    def _write(self, database: sqlite3.Connection, reader: Reader, source: str, *, inherited: bool) -> bool:
        row, now = _find_row(database, reader), _stamp(self._now())
        is_new = row is None or (not reader.run and row["seen"] <= self._horizon())
        holder = self._holder.hold() if reader.run else ""
        if row is None or is_new or row["inherited"] > inherited:
            with contextlib.suppress(OSError):  # a mark is worth more than what shows that there was one
                private.make_folder(self._folder)
            values = (reader.client, reader.run, now, source, now, inherited, holder)
            sql = (
                "INSERT OR REPLACE INTO taints (client, run, at, source, seen, inherited, holder)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)"
            )
            _ = database.execute(sql, values)
        else:
            sql = "UPDATE taints SET seen = max(seen, ?), holder = ? WHERE client = ? AND run = ?"
            _ = database.execute(sql, (now, holder, reader.client, reader.run))
        return is_new


def _find_row(database: sqlite3.Connection, reader: Reader) -> sqlite3.Row | None:
    return database.execute("SELECT * FROM taints WHERE client = ? AND run = ?", (reader.client, reader.run)).fetchone()


def _stamp(at: datetime) -> str:
    """Return a time as text that sorts like the time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _check_is_person(by: Grants) -> None:
    if not by.is_person:
        raise RefusedError("only a person can clear who has read foreign text", hint="use the command line or page")


def open_taints(
    folder: Path,
    *,
    lifetime: timedelta | None = timedelta(minutes=DEFAULT_MINUTES),
    now: Callable[[], datetime] = _utc_now,
) -> Taints:
    """Open the list in the state folder, and make it where there is none.

    Args:
        folder: The folder; it exists.
        lifetime: How long after the last reading a client without a run stays tainted; None for ever.
        now: Returns the time.

    Raises:
        StorageError: The file can't be used.
    """
    ledger = storage.open_shared_database(folder / FILE, _SCHEMAS, len(_SCHEMAS))
    return Taints(ledger, lifetime=lifetime, now=now)


_RUN_TABLES: Final = {
    "work.db*": ("sessions", "runs", "paused"),
    "sessions.db*": ("sessions",),
    "task_runs.db*": ("runs",),
    "paused.db*": ("paused",),
}
"""Files with sessions and runs, also of earlier versions and as copies, and the tables that hold them."""


def find_stored_runs(state_dir: Path) -> set[str] | None:
    """Return the ids of all sessions and runs that the vaults of a state folder hold, also in backups.

    They are what foreign text may have gone into that somebody may go on with. None where a file can't be read.
    """
    stored: set[str] = set()
    try:
        for name, tables in _RUN_TABLES.items():
            for path in (state_dir / "vaults").rglob(name):
                if path.name.endswith(("-wal", "-shm", "-journal", ".part")) or private.ASIDE_NAME in path.parts:
                    continue
                with contextlib.closing(storage.connect_to_read(path)) as database:
                    for table in tables:
                        stored.update(str(row[0]) for row in database.execute(f"SELECT id FROM {table}"))  # noqa: S608  # constants
    except (OSError, sqlite3.Error):
        return None
    return stored
