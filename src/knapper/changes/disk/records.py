"""Name what the journal holds about a change, and shape it from its rows."""

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Literal

from knapper.changes.disk import steps as step_results
from knapper.changes.disk.steps import FileResult, Step

Phase = Literal["staging", "ready", "applied", "done"]
"""How far a change came: its temp files are being written; its names are being changed; it holds, and its leftovers
are being removed; it is finished."""

STEP_COLUMNS = "kind, source, target, source_at, target_at, before, after, mode, temp, inode, is_folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Hold one change as the journal tells it."""

    id: str
    phase: Phase
    at: datetime
    """When it began, in UTC."""
    client: str
    run: str
    reason: str
    proposal: str
    undone: bool
    """Whether a later undo took it back (and wasn't taken back itself)."""
    undoes: tuple[str, ...]
    """Ids of the changes that this one took back; empty for any change but an undo."""
    steps: tuple[Step, ...]

    @property
    def files(self) -> tuple[FileResult, ...]:
        """What became of each file."""
        return step_results.results(self.steps)


def change(row: sqlite3.Row, *, undoes: Iterable[str], steps: Iterable[Step]) -> Change:
    """Shape a change from its row, and from what the other tables hold of it."""
    return Change(
        id=row["id"],
        phase=row["phase"],
        at=datetime.fromisoformat(row["at"]),
        client=row["client"],
        run=row["run"],
        reason=row["reason"],
        proposal=row["proposal"],
        undone=bool(row["undone"]),
        undoes=tuple(undoes),
        steps=tuple(steps),
    )


def step(row: sqlite3.Row) -> Step:
    """Shape a step from its row."""
    facts = {name: row[name] for name in STEP_COLUMNS.split(", ")}
    facts["is_folder"] = bool(facts["is_folder"])
    return Step(**facts)


def step_row(one: Step) -> tuple[object, ...]:
    """Give a step's values in the order of ``STEP_COLUMNS``."""
    return astuple(one)
