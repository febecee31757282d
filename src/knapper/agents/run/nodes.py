"""Say what a node of a run is: a task or a part of one, what was found for it, its answer, and what it cost."""

from dataclasses import dataclass, field
from typing import Final, Literal, cast

from pydantic import JsonValue

from knapper.codemode.model import ModelSpend
from knapper.jsontypes import JSONValue

NodeState = Literal["pending", "running", "done", "partial", "failed", "blocked", "cut"]
"""It waits; it is worked on; it has an answer; it has one though not all below it do; it has none, by an error; because
what it needs failed; because the budget or the person ended it."""
Impact = Literal["none", "security", "data_model", "architecture", "contract"]
"""What a subtask decides on that is dear to change later."""

ROOT: Final = "root"
ANSWERED: Final[frozenset[NodeState]] = frozenset({"done", "partial"})
ENDED: Final[frozenset[NodeState]] = frozenset({"done", "partial", "failed", "blocked", "cut"})
GO_ON: Final = "go on"
SKIP: Final = "skip"
"""What a person can answer, beside saying where to look."""


ALL: Final = "**"
"""In a source's path: all notes of the vault, with a hash over all of theirs.

A node that found none rests on that, as does one whose script called tools.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Name a stretch of a note that was used, and the note's hash then."""

    path: str
    hash: str
    vault: str = ""
    """Empty for the run's own."""
    first: int = 0
    """1-based lines; 0 for the whole note."""
    last: int = 0

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "vault": self.vault,
            "path": self.path,
            "start_line": self.first,
            "end_line": self.last,
            "hash": self.hash,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Hold what was retrieved for a node."""

    context: str
    sources: tuple[Source, ...] = ()
    """Places that can be cited."""
    reads: tuple[Source, ...] = ()
    """Notes that it rests on beside these."""
    others: tuple[str, ...] = ()
    """Other vaults that were looked into."""
    score: float = 0.0
    parts: dict[str, float] = field(default_factory=dict[str, float])
    """What the score is made of."""
    confidence: float = 0.0
    tier: str = ""
    """Empty where the first try was good; A, B or C otherwise."""
    script: str = ""
    attempts: tuple[dict[str, JsonValue], ...] = ()
    """Each script with its outcome and score."""
    notes: tuple[str, ...] = ()
    """What a person should hear of it."""
    checkpoint: str = ""
    """The id of what a person is asked about it."""
    used_tools: bool = False
    """It may rest on any note, since its script called tools."""
    used_outside: bool = False
    """It rests on files or pages beyond the vaults, too; nobody sees whether they change."""

    @property
    def is_empty(self) -> bool:
        """Tell whether no note was found; what a person said in their own words is something."""
        return not self.sources and not (self.context.strip() and (self.reads or self.checkpoint))

    @property
    def all_sources(self) -> tuple[Source, ...]:
        """Give every note that it rests on."""
        return (*self.sources, *self.reads)

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it; the context itself is left out."""
        attempts: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.attempts]
        return {
            "score": round(self.score, 4),
            "parts": {name: round(value, 4) for name, value in self.parts.items()},
            "confidence": self.confidence,
            "tier": self.tier,
            "script": self.script,
            "attempts": attempts,
            "sources": [one.as_dict() for one in self.sources],
            "context_chars": len(self.context),
            "notes": [*self.notes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Hold a question that a node put to a person."""

    question: str
    options: tuple[str, ...] = ()
    answer: str = ""
    """Empty until there is one."""
    unattended: bool = False
    """Nobody was there, and the node went on."""
    settled: bool = False
    """What came of it is done."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "question": self.question,
            "options": [*self.options],
            "answer": self.answer,
            "unattended": self.unattended,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Hold one node of a run, as far as it got."""

    id: str
    """``root``, ``1``, ``1.2``."""
    task: str
    title: str = ""
    depth: int = 0
    hard: tuple[str, ...] = ()
    """Nodes beside it without whose answers it can't be done."""
    soft: tuple[str, ...] = ()
    """Nodes beside it whose answers help."""
    impact: Impact = "none"
    large: bool = False
    """The plan takes it for something that may be split again."""
    high: bool = False
    """Much depends on it, so that a person is asked where nothing is found."""
    state: NodeState = "pending"
    reason: str = ""
    """Why it has no answer, or not a whole one."""
    split: bool | None = None
    """Whether it is split; None until that is decided."""
    why: str = ""
    """Why it is split, or isn't."""
    children: tuple[str, ...] = ()
    found: Found | None = None
    answer: str = ""
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    """Citations that were dropped, each with the reason."""
    sources: tuple[Source, ...] = ()
    """Every note that it read, with the hash it had."""
    inputs: str = ""
    """Identifies what it was answered from, the notes apart."""
    cached: bool = False
    asking: Asking | None = None
    spent: ModelSpend = field(default_factory=ModelSpend)
    """By itself, without what is below it."""
    notes: tuple[str, ...] = ()

    @property
    def parent(self) -> str:
        """Give the id of the node above; empty for the root."""
        if self.id == ROOT:
            return ""
        return self.id.rpartition(".")[0] or ROOT

    @property
    def name(self) -> str:
        """Give what a person calls it."""
        return self.title or " ".join(self.task.split())[:80]

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        citations: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.citations]
        removed: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.removed]
        return {
            **self.brief(),
            "task": self.task,
            "why": self.why,
            "hard": [*self.hard],
            "soft": [*self.soft],
            "impact": self.impact,
            "high_impact": self.high,
            "retrieval": self.found.as_dict() if self.found else None,
            "answer": self.answer,
            "citations": citations,
            "removed": removed,
            "sources": [one.as_dict() for one in self.sources],
            "checkpoint": self.asking.as_dict() if self.asking else None,
            "usage": self.spent.as_dict(),
            "notes": [*self.notes],
        }

    def brief(self) -> dict[str, JSONValue]:
        """Shape what a list of nodes shows."""
        return {
            "id": self.id,
            "parent": self.parent,
            "title": self.name,
            "depth": self.depth,
            "state": self.state,
            "reason": self.reason,
            "cached": self.cached,
            "children": [*self.children],
            "score": round(self.found.score, 4) if self.found else None,
            "tier": self.found.tier if self.found else "",
            "citation_count": len(self.citations),
            "tokens": self.spent.tokens,
        }
