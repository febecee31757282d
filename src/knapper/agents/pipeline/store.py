"""Store presets, agent switches and paused runs of the pipeline in SQLite."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from filelock import FileLock

from knapper.agents.pipeline import scopes
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.sessions import locks
from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue

PRESETS_FILE: Final = "presets.db"
PRESETS_VERSION: Final = 1
_MAX_PRESET_NAME: Final = 100
_PRESETS_SCHEMA: Final = """
CREATE TABLE presets (key TEXT PRIMARY KEY, name TEXT NOT NULL, said TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE switches (name TEXT PRIMARY KEY, is_on INTEGER NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToggles:
    """Say which agents run: what explores the vault, what searches the web, what does the task.

    Raises:
        BadInput: None would run.
    """

    scout: bool = False
    web: bool = False
    task: bool = True

    def __post_init__(self) -> None:
        """Refuse to run none."""
        if not (self.scout or self.web or self.task):
            raise BadInput("no agent is switched on", hint="switch on scout, web or task", code="no_agent")

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape them as every surface shows them."""
        return {"scout": self.scout, "web": self.web, "task": self.task}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A choice of notes and rules under a name."""

    name: str
    scope: ContextScopeConfig = field(default_factory=ContextScopeConfig)
    rules: EditRules = field(default_factory=EditRules)
    added: tuple[str, ...] = ()
    """Notes that are added by hand."""
    toggles: AgentToggles = field(default_factory=AgentToggles)

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it, and as it is kept."""
        added: list[JSONValue] = [*self.added]
        return {
            "name": self.name,
            "scope": self.scope.as_dict(),
            "rules": self.rules.as_dict(),
            "added": added,
            "toggles": self.toggles.as_dict(),
        }


class Presets:
    """The open file; threads and processes may share it."""

    def __init__(self, ledger: SharedDatabase) -> None:
        """Wrap an open file; `open_presets` makes one."""
        self._ledger = ledger

    def save(self, preset: Preset) -> None:
        """Keep a preset; one of the same name, in whatever case, is replaced.

        Raises:
            BadInput: It has no name, or too long a one.
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
            NotFound: There is none of that name (code ``no_preset``).
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
        """Return the switches as they were last; *usual* where they were never set."""
        with self._ledger.reading() as database:
            stored = {row["name"]: bool(row["is_on"]) for row in database.execute("SELECT * FROM switches")}
        return AgentToggles(**stored) if stored else usual

    def set_toggles(self, toggles: AgentToggles) -> None:
        """Keep the switches for the next run."""
        rows = [(name, int(bool(is_on))) for name, is_on in toggles.as_dict().items()]
        with self._ledger.writing() as database:
            database.executemany("INSERT OR REPLACE INTO switches VALUES (?, ?)", rows)

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()


def open_presets(folder: Path) -> Presets:
    """Open the presets in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return Presets(open_shared_database(folder / PRESETS_FILE, _PRESETS_SCHEMA, PRESETS_VERSION))


def read_preset(data: Mapping[str, JSONValue]) -> Preset:
    """Read a preset from JSON.

    Raises:
        BadInput: It can't be one.
    """
    rules, switches, added = _as_object(data.get("rules")), _as_object(data.get("toggles")), data.get("added")
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


def _as_object(value: JSONValue) -> dict[str, JSONValue]:
    return value if isinstance(value, dict) else {}


def _preset_key(name: str) -> str:
    return " ".join(name.split()).casefold()


def _missing_preset(database: sqlite3.Connection, name: str) -> NotFound:
    preset_names = [row["name"] for row in database.execute("SELECT name FROM presets ORDER BY key LIMIT 20")]
    hint = f"there are: {', '.join(preset_names)}" if preset_names else "there are none yet"
    return NotFound(f"there is no preset '{name[:_MAX_PRESET_NAME]}'", hint=hint, code="no_preset")


PAUSED_FILE: Final = "paused.db"
PAUSED_VERSION: Final = 1
PAUSED_KEPT_DAYS: Final = 30
PAUSED_LOCK_FOLDER: Final = "asked"
"""Holds a lock for each run that goes on, beside the file."""
_LOCK_WAIT_S: Final = 0.3
"""Whoever looks whether a run goes on holds it for a moment, too."""
_PAUSED_SCHEMA: Final = """
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
    """A run that waits."""

    id: str
    client: str
    """On whose behalf it ran."""
    at: datetime
    question: dict[str, JSONValue]
    request: dict[str, JSONValue] = field(repr=False)
    """What was asked for, as it was asked."""
    state: dict[str, JSONValue] = field(repr=False)
    """All that it goes on from."""


class PausedRuns:
    """The open file; threads and processes may share it."""

    def __init__(self, ledger: SharedDatabase, now: Callable[[], datetime]) -> None:
        """Wrap an open file; `open_runs` makes one."""
        self._ledger = ledger
        self._now = now
        self._folder = ledger.path.parent / PAUSED_LOCK_FOLDER

    def pause(self, run: PausedRun) -> None:
        """Keep a run; what waited for too long goes."""
        oldest = (self._now() - timedelta(days=PAUSED_KEPT_DAYS)).astimezone(UTC).isoformat()
        values = [json.dumps(one, ensure_ascii=False) for one in (run.question, run.request, run.state)]
        with self._ledger.writing() as database:
            database.execute("DELETE FROM paused WHERE at < ?", (oldest,))
            database.execute(
                "INSERT OR REPLACE INTO paused VALUES (?, ?, ?, ?, ?, ?)",
                (run.id, run.client, run.at.astimezone(UTC).isoformat(), *values),
            )

    def find(self, run_id: str) -> PausedRun:
        """Return a run, which goes on waiting.

        Raises:
            NotFound: No such run waits (code ``no_run``).
        """
        run = self._kept(run_id)
        if run is None or self._goes_on(run_id):
            raise missing_paused_run(run_id)
        return run

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
        if not await locks.acquire_lock(lock, wait_s=_LOCK_WAIT_S):
            raise missing_paused_run(run_id)
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
        visible = [_read_paused_run(dict(row)) for row in rows if not client or row["client"] == client]
        return [run for run in visible if not self._goes_on(run.id)]

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _kept(self, run_id: str) -> PausedRun | None:
        with self._ledger.reading() as database:
            row = database.execute("SELECT * FROM paused WHERE id = ?", (run_id,)).fetchone()
        return None if row is None else _read_paused_run(dict(row))

    def _own(self, run_id: str, client: str) -> PausedRun:
        run = self._kept(run_id)
        if run is None or (client and run.client != client):
            raise missing_paused_run(run_id)
        return run

    def _tidy(self, run_id: str) -> None:
        with suppress(PermissionError):  # on Windows, where it goes with the lock
            self._place(run_id).unlink(missing_ok=True)

    def _goes_on(self, run_id: str) -> bool:
        return self._place(run_id).exists() and locks.is_lock_taken(self._lock(run_id))

    def _lock(self, run_id: str) -> FileLock:
        self._folder.mkdir(exist_ok=True)
        return FileLock(self._place(run_id), thread_local=False)

    def _place(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.lock"


def open_paused_runs(folder: Path, now: Callable[[], datetime]) -> PausedRuns:
    """Open the waiting runs in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return PausedRuns(open_shared_database(folder / PAUSED_FILE, _PAUSED_SCHEMA, PAUSED_VERSION), now)


def missing_paused_run(run_id: str) -> NotFound:
    """Return that no such run waits, or none of the client's."""
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
