"""Keep what a person sets for the agents: presets by name, and the switches as they were last."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knapper.agents import scopes
from knapper.agents.scopes import ContextScopeConfig, EditRules
from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue

FILE: Final = "presets.db"
VERSION: Final = 1
_MAX_NAME: Final = 100
_SCHEMA: Final = """
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
    """Hold a choice of notes and rules under a name."""

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
    """Hold the open file; threads and processes may share it."""

    def __init__(self, own: SharedDatabase) -> None:
        """Wrap an open file; `open_presets` makes one."""
        self._ledger = own

    def save(self, preset: Preset) -> None:
        """Keep a preset; one of the same name, in whatever case, is replaced.

        Raises:
            BadInput: It has no name, or too long a one.
        """
        name = " ".join(preset.name.split())
        if not name or len(name) > _MAX_NAME:
            raise BadInput("a preset needs a name", hint=f"give 1 to {_MAX_NAME} characters")
        said = json.dumps(preset.as_dict() | {"name": name}, ensure_ascii=False)
        with self._ledger.writing() as database:
            database.execute("INSERT OR REPLACE INTO presets VALUES (?, ?, ?)", (name.casefold(), name, said))

    def find(self, name: str) -> Preset:
        """Give a preset.

        Raises:
            NotFound: There is none of that name (code ``no_preset``).
        """
        with self._ledger.reading() as database:
            row = database.execute("SELECT said FROM presets WHERE key = ?", (_key(name),)).fetchone()
            if row is None:
                raise _missing(database, name)
        return of(json.loads(row["said"]))

    def list(self) -> list[Preset]:
        """List presets by name."""
        with self._ledger.reading() as database:
            rows = database.execute("SELECT said FROM presets ORDER BY key").fetchall()
        return [of(json.loads(row["said"])) for row in rows]

    def delete(self, name: str) -> None:
        """Delete a preset.

        Raises:
            NotFound: There is none of that name.
        """
        with self._ledger.writing() as database:
            if not database.execute("DELETE FROM presets WHERE key = ?", (_key(name),)).rowcount:
                raise _missing(database, name)

    def toggles(self, usual: AgentToggles) -> AgentToggles:
        """Give the switches as they were last; *usual* where they were never set."""
        with self._ledger.reading() as database:
            known = {row["name"]: bool(row["is_on"]) for row in database.execute("SELECT * FROM switches")}
        return AgentToggles(**known) if known else usual

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
    return Presets(open_shared_database(folder / FILE, _SCHEMA, VERSION))


def of(said: Mapping[str, JSONValue]) -> Preset:
    """Read a preset from JSON.

    Raises:
        BadInput: It can't be one.
    """
    rules, switches, added = _object(said.get("rules")), _object(said.get("toggles")), said.get("added")
    return Preset(
        name=str(said.get("name", "")),
        scope=scopes.normalize(said.get("scope", {})),
        rules=EditRules(
            editable=scopes.editable(str(rules.get("editable", "context"))),
            can=scopes.abilities(rules.get("can", [*scopes.ABILITIES])),
        ),
        added=tuple(map(str, added)) if isinstance(added, list) else (),
        toggles=AgentToggles(
            scout=bool(switches.get("scout", False)),
            web=bool(switches.get("web", False)),
            task=bool(switches.get("task", True)),
        ),
    )


def _object(value: JSONValue) -> dict[str, JSONValue]:
    return value if isinstance(value, dict) else {}


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()


def _missing(database: sqlite3.Connection, name: str) -> NotFound:
    known = [row["name"] for row in database.execute("SELECT name FROM presets ORDER BY key LIMIT 20")]
    hint = f"there are: {', '.join(known)}" if known else "there are none yet"
    return NotFound(f"there is no preset '{name[:_MAX_NAME]}'", hint=hint, code="no_preset")
