"""Say what a session is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from knapper.jsontypes import JSONValue

Kind = Literal["file", "none", "own"]
"""Found by the open note; the one that is meant where no note is open; found by its id alone."""
VERSION: Final = 1
SCHEMA: Final = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
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
CREATE UNIQUE INDEX sessions_file ON sessions (file) WHERE kind = 'file';
CREATE UNIQUE INDEX sessions_none ON sessions (kind) WHERE kind = 'none';
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
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Describe a session without its turns."""

    id: str
    kind: Kind
    file: str
    """The note that it belongs to, or that it began with; empty for none."""
    name: str
    """The person's, else the beginning of the first question."""
    created: datetime
    updated: datetime
    turns: int
    forked_from: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "active_file": self.file or None,
            "kind": self.kind,
            "created": self.created.isoformat(timespec="seconds"),
            "updated": self.updated.isoformat(timespec="seconds"),
            "turns": self.turns,
            "forked_from": self.forked_from or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Hold one turn: what was asked, and all that came of it."""

    number: int
    """From 1."""
    at: datetime
    question: str
    file: str
    """The note that was open; empty for none."""
    outcome: Mapping[str, JSONValue]
    """`knapper.agents.events.Done` as a dictionary: answer, citations, proposals, changes, usage."""
    messages: str = field(repr=False)
    """pydantic-ai's messages as JSON, shortened."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "number": self.number,
            "at": self.at.isoformat(timespec="seconds"),
            "question": self.question,
            "active_file": self.file or None,
            "outcome": dict(self.outcome),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Hold what stands for the turns up to one, summed up."""

    messages: str = "[]"
    upto: int = 0
    """0 where nothing was summed up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Hold what a conversation goes on from."""

    head: Head
    turns: Sequence[Exchange]
    """Those after the head."""
