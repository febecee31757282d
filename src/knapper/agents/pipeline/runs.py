"""Keep runs that wait for a person's answer, so that they go on after a restart and from another surface."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from knapper.changes.disk.ledger import Ledger, open_ledger
from knapper.errors import NotFound
from knapper.vault.outline import JSONValue

FILE: Final = "paused.db"
VERSION: Final = 1
KEPT_DAYS: Final = 30
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

    def __init__(self, own: Ledger, now: Callable[[], datetime]) -> None:
        """Wrap an open file; `open_runs` makes one."""
        self._ledger = own
        self._now = now

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
        with self._ledger.reading() as database:
            row = database.execute("SELECT * FROM paused WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            raise missing(run_id)
        return _run(dict(row))

    def take(self, run_id: str, client: str = "") -> PausedRun:
        """Take a run out so that it can go on; nobody else can take it again.

        Args:
            run_id: Its id.
            client: Who takes it, where it may only be its own; empty for a person, who may take any.

        Raises:
            NotFound: No such run waits (code ``no_run``).
        """
        with self._ledger.writing() as database:
            row = database.execute("SELECT * FROM paused WHERE id = ?", (run_id,)).fetchone()
            if row is None or (client and row["client"] != client):
                raise missing(run_id)
            database.execute("DELETE FROM paused WHERE id = ?", (run_id,))
        return _run(dict(row))

    def list(self, client: str = "") -> list[PausedRun]:
        """List the runs that wait, the latest first; *client* as for `take`."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT * FROM paused ORDER BY at DESC, id").fetchall()
        return [_run(dict(row)) for row in rows if not client or row["client"] == client]

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()


def open_runs(folder: Path, now: Callable[[], datetime]) -> Runs:
    """Open the waiting runs in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return Runs(open_ledger(folder / FILE, _SCHEMA, VERSION), now)


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
