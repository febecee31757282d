"""Store presets, agent switches and paused runs of the pipeline in SQLite."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from knapper.agents.pipeline import scopes
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.sessions import store
from knapper.agents.work_store import WorkStore, client_key
from knapper.changes.disk.storage import WorkLocks
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue, Record, object_or_empty

_MAX_PRESET_NAME: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToggles(Record):
    """The agents that are switched on: scout, web search and task.

    Raises:
        BadInput: None would run.
    """

    scout: bool = False
    web: bool = False
    task: bool = True

    def __post_init__(self) -> None:
        """Check that at least one is switched on."""
        if not (self.scout or self.web or self.task):
            raise BadInput("no agent is switched on", hint="switch on scout, web or task", code="no_agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset(Record):
    """A named choice of notes and rules, as every surface shows it and the file stores it."""

    name: str
    scope: ContextScopeConfig = field(default_factory=ContextScopeConfig)
    rules: EditRules = field(default_factory=EditRules)
    added: tuple[str, ...] = ()
    """Notes that the person added by hand."""
    toggles: AgentToggles = field(default_factory=AgentToggles)


class Presets:
    """The presets of a vault, and the switches of a client; threads and processes may share it."""

    def __init__(self, work: WorkStore, client: str = "") -> None:
        """Use an open file.

        Args:
            work: The file.
            client: The client that has the switches; empty for persons, who share them.

        Raises:
            StorageError: An earlier version's file can't be migrated.
        """
        self._ledger = work.database_with("presets", client)
        self._client_key = client_key(client)

    def save(self, preset: Preset) -> None:
        """Store a preset; one with the same name, in upper or lower case, is replaced.

        Raises:
            BadInput: Its name is empty or too long.
        """
        name = " ".join(preset.name.split())
        if not name or len(name) > _MAX_PRESET_NAME:
            raise BadInput("a preset needs a name", hint=f"give 1 to {_MAX_PRESET_NAME} characters")
        data = json.dumps(preset.as_dict() | {"name": name}, ensure_ascii=False)
        with self._ledger.writing() as database:
            database.execute("INSERT OR REPLACE INTO presets VALUES (?, ?, ?)", (name.casefold(), name, data))

    def find(self, name: str) -> Preset:
        """Return a preset.

        Raises:
            NotFound: There is no such preset (code ``no_preset``).
        """
        with self._ledger.reading() as database:
            row = database.execute("SELECT said FROM presets WHERE key = ?", (_preset_key(name),)).fetchone()
            if row is None:
                raise _missing_preset(database, name)
        return read_preset(json.loads(row["said"]))

    def list(self) -> list[Preset]:
        """List presets by name."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT said FROM presets ORDER BY key").fetchall()
        return [read_preset(json.loads(row["said"])) for row in rows]

    def delete(self, name: str) -> None:
        """Delete a preset.

        Raises:
            NotFound: There is none of that name.
        """
        with self._ledger.writing() as database:
            if not database.execute("DELETE FROM presets WHERE key = ?", (_preset_key(name),)).rowcount:
                raise _missing_preset(database, name)

    def toggles(self, usual: AgentToggles) -> AgentToggles:
        """Return the switches as they were last set; *usual* where they never were."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT * FROM switches WHERE client_key = ?", (self._client_key,))
            stored = {row["name"]: bool(row["is_on"]) for row in rows}
        return AgentToggles(**stored) if stored else usual

    def set_toggles(self, toggles: AgentToggles) -> None:
        """Store the switches for the next run."""
        rows = [(self._client_key, name, int(bool(is_on))) for name, is_on in toggles.as_dict().items()]
        with self._ledger.writing() as database:
            database.executemany("INSERT OR REPLACE INTO switches VALUES (?, ?, ?)", rows)


def read_preset(data: Mapping[str, JSONValue]) -> Preset:
    """Read a preset from JSON.

    Raises:
        BadInput: A value is out of its range or unknown.
    """
    rules, switches, added = object_or_empty(data.get("rules")), object_or_empty(data.get("toggles")), data.get("added")
    return Preset(
        name=str(data.get("name", "")),
        scope=scopes.read_scope(data.get("scope", {})),
        rules=EditRules(
            editable=scopes.read_editable_scope(str(rules.get("editable", "context"))),
            can=scopes.read_abilities(rules.get("can", [*scopes.ABILITIES])),
        ),
        added=tuple(map(str, added)) if isinstance(added, list) else (),
        toggles=AgentToggles(
            scout=bool(switches.get("scout", False)),
            web=bool(switches.get("web", False)),
            task=bool(switches.get("task", True)),
        ),
    )


def _preset_key(name: str) -> str:
    return " ".join(name.split()).casefold()


def _missing_preset(database: sqlite3.Connection, name: str) -> NotFound:
    preset_names = [row["name"] for row in database.execute("SELECT name FROM presets ORDER BY key LIMIT 20")]
    hint = f"there are: {', '.join(preset_names)}" if preset_names else "there are none yet"
    return NotFound(f"there is no preset '{name[:_MAX_PRESET_NAME]}'", hint=hint, code="no_preset")


PAUSED_KEPT_DAYS: Final = 30
PAUSED_LOCK_FOLDER: Final = "asked"
"""The folder beside the file with a lock for each run that is being continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedRun:
    """A run that waits for an answer."""

    id: str
    client: str
    """The client on whose behalf it ran."""
    at: datetime
    question: dict[str, JSONValue]
    request: dict[str, JSONValue] = field(repr=False)
    """The original request."""
    state: dict[str, JSONValue] = field(repr=False)
    """The state that it continues from."""


class PausedRuns:
    """The waiting runs of a vault in an open file; threads and processes may share it."""

    def __init__(self, work: WorkStore, now: Callable[[], datetime]) -> None:
        """Use an open file.

        Raises:
            StorageError: An earlier version's file of them can't be migrated.
        """
        self._ledger = work.database_with("paused")
        self._now = now
        self._locks = WorkLocks(work.folder / PAUSED_LOCK_FOLDER)

    def pause(self, run: PausedRun) -> None:
        """Store a run, and delete those that have waited too long."""
        oldest = (self._now() - timedelta(days=PAUSED_KEPT_DAYS)).astimezone(UTC).isoformat()
        values = [json.dumps(one, ensure_ascii=False) for one in (run.question, run.request, run.state)]
        with self._ledger.writing() as database:
            database.execute("DELETE FROM paused WHERE at < ?", (oldest,))
            database.execute(
                "INSERT OR REPLACE INTO paused VALUES (?, ?, ?, ?, ?, ?)",
                (run.id, run.client, run.at.astimezone(UTC).isoformat(), *values),
            )

    def find(self, run_id: str) -> PausedRun:
        """Return a run, which keeps waiting.

        Raises:
            NotFound: No such run is waiting (code ``no_run``).
        """
        run = self._find_stored(run_id)
        if run is None or self._locks.is_held(run_id):
            raise missing_paused_run(run_id)
        return run

    @asynccontextmanager
    async def hold(self, run_id: str, client: str = "") -> AsyncGenerator[PausedRun]:
        """Lock a run, so that only one caller can continue it.

        Afterwards it waits again, unless it was ended; a process that is killed ends nothing.

        Args:
            run_id: The run's id.
            client: The client, which may continue only its own runs; empty for a person, who may continue any.

        Raises:
            NotFound: No such run is waiting (code ``no_run``).
        """
        _ = self._require(run_id, client)
        lock = await store.acquire_lock(self._locks, run_id)
        if lock is None:
            raise missing_paused_run(run_id)
        try:
            # Read again under the lock: another process may have ended the run meanwhile.
            yield self._require(run_id, client)
        finally:
            # Unlinked while the lock is held, so that no other process can have opened the old file as its lock.
            # Windows doesn't unlink an open file; there the file stays until the lock is released.
            with suppress(PermissionError):
                self._locks.path(run_id).unlink(missing_ok=True)
            lock.release()

    def end(self, run_id: str) -> None:
        """Delete a run that was locked and has ended."""
        with self._ledger.writing() as database:
            database.execute("DELETE FROM paused WHERE id = ?", (run_id,))

    def list(self, client: str = "") -> list[PausedRun]:
        """List the waiting runs, the latest first; *client* as for `hold`."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT * FROM paused ORDER BY at DESC, id").fetchall()
        visible = [_read_paused_run(dict(row)) for row in rows if not client or row["client"] == client]
        return [run for run in visible if not self._locks.is_held(run.id)]

    def _find_stored(self, run_id: str) -> PausedRun | None:
        with self._ledger.reading() as database:
            row = database.execute("SELECT * FROM paused WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else _read_paused_run(dict(row))

    def _require(self, run_id: str, client: str) -> PausedRun:
        run = self._find_stored(run_id)
        if run is None or (client and run.client != client):
            raise missing_paused_run(run_id)
        return run


def missing_paused_run(run_id: str) -> NotFound:
    """Return the error for a run that doesn't wait, or that isn't the client's."""
    hint = "it was answered already, or waited for too long: ask again"
    return NotFound(f"no run '{run_id[:80]}' waits for an answer", hint=hint, code="no_run")


def _read_paused_run(row: dict[str, str]) -> PausedRun:
    return PausedRun(
        id=row["id"],
        client=row["client"],
        at=datetime.fromisoformat(row["at"]),
        question=json.loads(row["question"]),
        request=json.loads(row["request"]),
        state=json.loads(row["state"]),
    )
