"""Questions that only a person may answer: whether to continue where the notes gave little for an important task.

The questions persist: a resumed run finds its question again, answered or not.
"""

import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, cast

from knapper.changes.disk.storage import SharedDatabase, open_shared_database
from knapper.errors import BadInput, ConflictError, NotFound, RefusedError
from knapper.jsontypes import JSONValue
from knapper.vault.access import Grants

CHECKPOINTS_FILE: Final = "checkpoints.db"
SCHEMA_VERSION: Final = 1
CheckpointChoice = Literal["continue", "use", "stop"]
"""Continue with what was found; use what the person names or writes; stop this task."""
_CHOICES: Final[tuple[CheckpointChoice, ...]] = ("continue", "use", "stop")
_MAX_NOTES: Final = 50
_MAX_TEXT: Final = 100_000
_SCHEMA: Final = """
CREATE TABLE checkpoints (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    node TEXT NOT NULL,
    task TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    found TEXT NOT NULL,
    answered_at TEXT,
    answered_by TEXT,
    answer TEXT,
    UNIQUE (run, node, task)
);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAnswer:
    """A person's decision."""

    choice: CheckpointChoice
    notes: tuple[str, ...] = ()
    """Paths of notes to use."""
    text: str = ""
    """The person's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A question to a person."""

    id: str
    run: str
    node: str
    task: str
    asked_at: str
    """ISO time, as is ``answered_at``."""
    found: Mapping[str, JSONValue]
    """The best retrieval so far, as `knapper.codemode.tasks.Retrieval` shows it."""
    answer: CheckpointAnswer | None = None
    answered_at: str = ""
    answered_by: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it."""
        answer: dict[str, JSONValue] | None = None
        if self.answer is not None:
            named: list[JSONValue] = [*self.answer.notes]
            answer = {"choice": self.answer.choice, "notes": named, "text": self.answer.text}
        return {
            "id": self.id,
            "run": self.run,
            "node": self.node,
            "task": self.task,
            "asked_at": self.asked_at,
            "found": dict(self.found),
            "answer": answer,
            "answered_at": self.answered_at,
            "answered_by": self.answered_by,
        }


class CheckpointStore:
    """The questions of one vault's runs; threads and processes may share the file."""

    def __init__(self, ledger: SharedDatabase, now: Callable[[], datetime]) -> None:
        """Wrap an open file; `open_checkpoints` makes one."""
        self._ledger = ledger
        self._now = now

    def ask(self, run: str, node: str, task: str, found: Mapping[str, JSONValue]) -> Checkpoint:
        """Record a question, once for a run's node and task; return the existing one if there is one."""
        values = (secrets.token_hex(8), run, node, task, self._time(), json.dumps(dict(found), ensure_ascii=False))
        with self._ledger.writing() as database:
            # Of two processes that ask at once, the UNIQUE key lets both return the first one's question.
            database.execute(
                "INSERT OR IGNORE INTO checkpoints (id, run, node, task, asked_at, found) VALUES (?, ?, ?, ?, ?, ?)",
                values,
            )
            cursor = database.execute(
                "SELECT * FROM checkpoints WHERE run = ? AND node = ? AND task = ?", (run, node, task)
            )
            return _checkpoint_from_row(cast("sqlite3.Row", cursor.fetchone()))

    def find(self, run: str, node: str, task: str) -> Checkpoint | None:
        """Return the question of a run's node, if there is one."""
        with self._ledger.reading() as database:
            row = database.execute(
                "SELECT * FROM checkpoints WHERE run = ? AND node = ? AND task = ?", (run, node, task)
            ).fetchone()
        return _checkpoint_from_row(row) if row else None

    def get(self, checkpoint: str) -> Checkpoint:
        """Return a question by its id.

        Raises:
            NotFound: There is none (code ``no_checkpoint``).
        """
        with self._ledger.reading() as database:
            row = database.execute("SELECT * FROM checkpoints WHERE id = ?", (checkpoint,)).fetchone()
        if row is None:
            raise no_checkpoint_error(checkpoint)
        return _checkpoint_from_row(row)

    def waiting(self, run: str = "") -> tuple[Checkpoint, ...]:
        """List the unanswered questions of one run or of all, the oldest first."""
        with self._ledger.reading() as database:
            rows = database.execute(
                "SELECT * FROM checkpoints WHERE answer IS NULL AND (run = ? OR ? = '') ORDER BY asked_at, rowid",
                (run, run),
            ).fetchall()
        return tuple(map(_checkpoint_from_row, rows))

    def answer(self, checkpoint: str, answer: CheckpointAnswer, grants: Grants) -> Checkpoint:
        """Record a person's decision; it can't be changed afterwards.

        Args:
            checkpoint: The question's id.
            answer: The decision.
            grants: Those of the client that answers.

        Raises:
            RefusedError: The client isn't a person.
            BadInput: The choice isn't valid, or names nothing to use.
            NotFound: There is no such question.
            ConflictError: It is answered already.
        """
        if not grants.is_person:
            hint = "a person answers it, at the command line or on the page"
            raise RefusedError("only a person may answer that", hint=hint, code="needs_person")
        if answer.choice not in _CHOICES:
            raise BadInput(f"'{str(answer.choice)[:100]}' is no choice", hint=f"choose one of {', '.join(_CHOICES)}")
        if answer.choice == "use" and not (answer.notes or answer.text.strip()):
            raise BadInput("nothing is named that could be used", hint="name notes, or say it in your own words")
        if len(answer.notes) > _MAX_NOTES or len(answer.text) > _MAX_TEXT:
            raise BadInput(
                "that is too much to be used", hint=f"{_MAX_NOTES} notes and {_MAX_TEXT:,} characters are the most"
            )
        stored_answer = {"choice": answer.choice, "notes": [*answer.notes], "text": answer.text}
        with self._ledger.writing() as database:
            # The condition on the answer decides between two answers at once: the first one stays.
            changed = database.execute(
                "UPDATE checkpoints SET answer = ?, answered_at = ?, answered_by = ? WHERE id = ? AND answer IS NULL",
                (json.dumps(stored_answer, ensure_ascii=False), self._time(), grants.client, checkpoint),
            ).rowcount
            row = database.execute("SELECT * FROM checkpoints WHERE id = ?", (checkpoint,)).fetchone()
        if row is None:
            raise no_checkpoint_error(checkpoint)
        if not changed:
            raise ConflictError("that is answered already", hint="start the run again to be asked again")
        return _checkpoint_from_row(row)

    def forget(self, run: str) -> int:
        """Delete a run's questions; return how many there were."""
        with self._ledger.writing() as database:
            return database.execute("DELETE FROM checkpoints WHERE run = ?", (run,)).rowcount

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _time(self) -> str:
        return self._now().isoformat(timespec="seconds")


def open_checkpoints(folder: Path, now: Callable[[], datetime]) -> CheckpointStore:
    """Open the questions in a vault's state folder, which exists.

    Raises:
        StorageError: The file can't be used.
    """
    return CheckpointStore(open_shared_database(folder / CHECKPOINTS_FILE, _SCHEMA, SCHEMA_VERSION), now)


def no_checkpoint_error(checkpoint: str) -> NotFound:
    """Return the error for an unknown question."""
    return NotFound(f"there is no question '{checkpoint[:100]}'", code="no_checkpoint")


def _checkpoint_from_row(row: sqlite3.Row) -> Checkpoint:
    stored_answer = json.loads(row["answer"]) if row["answer"] else None
    return Checkpoint(
        id=row["id"],
        run=row["run"],
        node=row["node"],
        task=row["task"],
        asked_at=row["asked_at"],
        found=json.loads(row["found"]),
        answer=CheckpointAnswer(
            choice=stored_answer["choice"], notes=tuple(stored_answer["notes"]), text=stored_answer["text"]
        )
        if stored_answer
        else None,
        answered_at=row["answered_at"] or "",
        answered_by=row["answered_by"] or "",
    )
