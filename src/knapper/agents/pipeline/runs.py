"""Keep runs that wait for a person's answer, so that they go on after a restart and from another surface."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from filelock import FileLock

from knapper.agents.sessions import locks
from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.errors import NotFound
from knapper.jsontypes import JSONValue

FILE: Final = "paused.db"
VERSION: Final = 1
KEPT_DAYS: Final = 30
FOLDER: Final = "asked"
"""Holds a lock for each run that goes on, beside the file."""
_PATIENCE_S: Final = 0.3
"""Whoever looks whether a run goes on holds it for a moment, too."""
_SCHEMA: Final = """
CREATE TABLE paused (
    id TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    at TEXT NOT NULL,
    question TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedRun:
    """Hold a run that waits."""

    id: str
    client: str
    """On whose behalf it ran."""
    at: datetime
    question: dict[str, JSONValue]
    request: dict[str, JSONValue] = field(repr=False)
    """What was asked for, as it was asked."""
    state: dict[str, JSONValue] = field(repr=False)
    """All that it goes on from."""


class Runs:
    """Hold the open file; threads and processes may share it."""

    def __init__(self, own: SharedDatabase, now: Callable[[], datetime]) -> None:
        """Wrap an open file; `open_runs` makes one."""
        self._ledger = own
        self._now = now
        self._folder = own.path.parent / FOLDER

    def pause(self, run: PausedRun) -> None:
        """Keep a run; what waited for too long goes."""
        oldest = (self._now() - timedelta(days=KEPT_DAYS)).astimezone(UTC).isoformat()
        values = [json.dumps(one, ensure_ascii=False) for one in (run.question, run.request, run.state)]
        with self._ledger.writing() as database:
            database.execute("DELETE FROM paused WHERE at < ?", (oldest,))
            database.execute(
                "INSERT OR REPLACE INTO paused VALUES (?, ?, ?, ?, ?, ?)",
                (run.id, run.client, run.at.astimezone(UTC).isoformat(), *values),
            )

    def find(self, run_id: str) -> PausedRun:
        """Give a run, which goes on waiting.

        Raises:
            NotFound: No such run waits (code ``no_run``).
        """
        found = self._kept(run_id)
        if found is None or self._goes_on(run_id):
            raise missing(run_id)
        return found

    @asynccontextmanager
    async def hold(self, run_id: str, client: str = "") -> AsyncGenerator[PausedRun]:
        """Hold a run so that it can go on; nobody else can go on with it meanwhile.

        It waits again afterwards unless it was ended, also where the process doesn't live to say so.

        Args:
            run_id: Its id.
            client: Who goes on with it, where it may only be its own; empty for a person, who may go on with any.

        Raises:
            NotFound: No such run waits (code ``no_run``).
        """
        _ = self._own(run_id, client)
        lock = self._lock(run_id)
        if not await locks.acquire(lock, wait_s=_PATIENCE_S):
            raise missing(run_id)
        try:
            yield self._own(run_id, client)  # as it is by now
        finally:
            self._tidy(run_id)
            lock.release()

    def end(self, run_id: str) -> None:
        """Forget a run that is held and has ended."""
        with self._ledger.writing() as database:
            database.execute("DELETE FROM paused WHERE id = ?", (run_id,))

    def list(self, client: str = "") -> list[PausedRun]:
        """List the runs that wait, the latest first; *client* as for `hold`."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT * FROM paused ORDER BY at DESC, id").fetchall()
        own = [_run(dict(row)) for row in rows if not client or row["client"] == client]
        return [run for run in own if not self._goes_on(run.id)]

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _kept(self, run_id: str) -> PausedRun | None:
        with self._ledger.reading() as database:
            row = database.execute("SELECT * FROM paused WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else _run(dict(row))

    def _own(self, run_id: str, client: str) -> PausedRun:
        found = self._kept(run_id)
        if found is None or (client and found.client != client):
            raise missing(run_id)
        return found

    def _tidy(self, run_id: str) -> None:
        with suppress(PermissionError):  # on Windows, where it goes with the lock
            self._place(run_id).unlink(missing_ok=True)

    def _goes_on(self, run_id: str) -> bool:
        return self._place(run_id).exists() and locks.is_taken(self._lock(run_id))

    def _lock(self, run_id: str) -> FileLock:
        self._folder.mkdir(exist_ok=True)
        return FileLock(self._place(run_id), thread_local=False)

    def _place(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.lock"


def open_runs(folder: Path, now: Callable[[], datetime]) -> Runs:
    """Open the waiting runs in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return Runs(open_shared_database(folder / FILE, _SCHEMA, VERSION), now)


def missing(run_id: str) -> NotFound:
    """Say that no such run waits, or none of the client's."""
    hint = "it was answered already, or waited for too long: ask again"
    return NotFound(f"no run '{run_id[:80]}' waits for an answer", hint=hint, code="no_run")


def _run(row: dict[str, str]) -> PausedRun:
    return PausedRun(
        id=row["id"],
        client=row["client"],
        at=datetime.fromisoformat(row["at"]),
        question=json.loads(row["question"]),
        request=json.loads(row["request"]),
        state=json.loads(row["state"]),
    )
