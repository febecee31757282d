"""Records of task runs: the run, its nodes, their limits, and the events that it streams."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final, Literal, TypeAlias, cast

from pydantic import JsonValue

from knapper.agents.events import BaseEvent, Error, Usage
from knapper.agents.model import usage
from knapper.codemode.model import ModelSpend
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools.context import ScriptProfile

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


ALL_NOTES: Final = "**"
"""In a source's path: all notes of the vault, with a hash over all of theirs.

A node that found none rests on that, as does one whose script called tools.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRef:
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
class RetrievedContext:
    """What was retrieved for a node."""

    context: str
    sources: tuple[SourceRef, ...] = ()
    """Places that can be cited."""
    reads: tuple[SourceRef, ...] = ()
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
        """Return whether no note was found; what a person said in their own words is something."""
        return not self.sources and not (self.context.strip() and (self.reads or self.checkpoint))

    @property
    def all_sources(self) -> tuple[SourceRef, ...]:
        """Return every note that it rests on."""
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
class NodeQuestion:
    """A question that a node put to a person."""

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
class RunNode:
    """One node of a run, as far as it got."""

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
    found: RetrievedContext | None = None
    answer: str = ""
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    """Citations that were dropped, each with the reason."""
    sources: tuple[SourceRef, ...] = ()
    """Every note that it read, with the hash it had."""
    inputs: str = ""
    """Identifies what it was answered from, the notes apart."""
    cached: bool = False
    asking: NodeQuestion | None = None
    spent: ModelSpend = field(default_factory=ModelSpend)
    """By itself, without what is below it."""
    notes: tuple[str, ...] = ()

    @property
    def parent(self) -> str:
        """Return the id of the node above; empty for the root."""
        if self.id == ROOT:
            return ""
        return self.id.rpartition(".")[0] or ROOT

    @property
    def name(self) -> str:
        """Return what a person calls it."""
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


RunState = Literal["pending", "running", "complete", "partial", "failed", "cancelled", "interrupted"]
"""*interrupted* is a run whose process ended before it did."""

MAX_DEPTH: Final = 8
MAX_NODES: Final = 500
MAX_TASK_CHARS: Final = 50_000
"""Characters of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Say how much a run may take; 0 tokens and cents are no limit.

    Raises:
        BadInput: A number is out of its range.
    """

    depth: int = 3
    """Levels below the task."""
    nodes: int = 50
    """The task's own among them."""
    seconds: float = 1_200.0
    """From its start, or from when it goes on."""
    tokens: int = 1_000_000
    cents: int = 0
    """Of a US dollar, where prices are known."""
    parallel: int = 4
    """Nodes that retrieve or write at the same time."""
    kept: float = 0.25
    """The share that is kept for the answer."""

    def __post_init__(self) -> None:
        """Refuse what can't be a limit."""
        _check_range("depth", self.depth, 0, MAX_DEPTH)
        _check_range("nodes", self.nodes, 1, MAX_NODES)
        _check_range("parallel", self.parallel, 1, 64)
        if not self.seconds > 0:
            raise BadInput(f"the time limit is {self.seconds:g} s", hint="give more than 0")
        if self.tokens < 0 or self.cents < 0:
            raise BadInput("a limit of tokens or cents is below 0", hint="give 0 for no limit")
        if not 0 < self.kept < 1:
            raise BadInput(f"the share kept for the answer is {self.kept:g}", hint="give more than 0 and less than 1")

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "depth": self.depth,
            "nodes": self.nodes,
            "seconds": self.seconds,
            "tokens": self.tokens,
            "cents": self.cents,
            "parallel": self.parallel,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Say what is to be done.

    Raises:
        BadInput: The task is empty or too long.
    """

    task: str
    strategy: str = "auto"
    """``auto`` lets the model choose one."""
    code_mode: bool = True
    """Scripts retrieve; otherwise search does."""
    profile: ScriptProfile = "strict"
    """What else the scripts may read."""
    fresh: bool = False
    """Take nothing from the cache."""
    limits: RunLimits = field(default_factory=RunLimits)
    client: str = "cli"
    """On whose behalf; the run sees and changes no more than they may."""
    also: tuple[str, ...] = ()
    """Other vaults that are looked through as well, by name."""

    def __post_init__(self) -> None:
        """Refuse what can't be a task."""
        if not self.task.strip():
            raise BadInput("the task is empty", hint="say what is to be done")
        if len(self.task) > MAX_TASK_CHARS:
            raise BadInput(f"the task has {len(self.task):,} characters", hint=f"give at most {MAX_TASK_CHARS:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run without its nodes."""

    id: str
    order: RunOrder
    model: str
    state: RunState
    created: datetime
    updated: datetime
    answer: str = ""
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it isn't complete."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        citations: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.citations]
        removed: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.removed]
        return {**self.brief(), "answer": self.answer, "citations": citations, "removed": removed}

    def brief(self) -> dict[str, JSONValue]:
        """Shape what a list of runs shows."""
        return {
            "id": self.id,
            "task": self.order.task,
            "strategy": self.order.strategy,
            "code_mode": self.order.code_mode,
            "model": self.model,
            "client": self.order.client,
            "also": [*self.order.also],
            "state": self.state,
            "reasons": [*self.reasons],
            "limits": self.order.limits.as_dict(),
            "created": self.created.isoformat(timespec="seconds"),
            "updated": self.updated.isoformat(timespec="seconds"),
        }


def _check_range(name: str, value: int, minimum: int, maximum: int) -> None:
    if not minimum <= value <= maximum:
        raise BadInput(f"{name} is {value}", hint=f"give {minimum} to {maximum}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(BaseEvent):
    """Say that a run begins, or goes on."""

    kind: ClassVar[str] = "run_started"
    run: dict[str, JSONValue]
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged(BaseEvent):
    """Say how a node stands now."""

    kind: ClassVar[str] = "node"
    node: dict[str, JSONValue]
    """As in a list of nodes."""
    doing: str = ""
    """What it is at: deciding, planning, retrieving, answering, joining; empty where it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEvent(BaseEvent):
    """Ask the person about a node on which much depends."""

    kind: ClassVar[str] = "checkpoint"
    node_id: str
    id: str = ""
    """Of the question, by which any surface can answer it; empty where it can't be answered elsewhere."""
    question: str
    options: tuple[str, ...] = ()
    answer: str = ""
    """Empty while it is asked."""
    unattended: bool = False
    """Nobody is there, and the run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDone(BaseEvent):
    """End the run, with all that it came to."""

    kind: ClassVar[str] = "run_done"
    run_id: str
    state: RunState
    answer: str
    reasons: tuple[str, ...] = ()
    failed: list[JSONValue] = field(default_factory=list[JSONValue])
    """Nodes without an answer, in brief."""
    citations: list[JSONValue] = field(default_factory=list[JSONValue])
    removed: list[JSONValue] = field(default_factory=list[JSONValue])
    nodes: int = 0
    cached: int = 0
    usage: dict[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    model: str = ""


RunEvent: TypeAlias = RunStarted | NodeChanged | CheckpointEvent | Usage | Error | RunDone
RunEventSink = Callable[[RunEvent], None]
"""Takes an event; called in the run's own event loop."""


def total_spent(nodes: Iterable[RunNode]) -> ModelSpend:
    """Add up what nodes cost: each counts itself alone, so nothing counts twice."""
    return sum((node.spent for node in nodes), ModelSpend())


def make_usage_event(nodes: Iterable[RunNode]) -> Usage:
    """Return the event that tells what nodes cost."""
    return usage.make_usage_event(total_spent(nodes))


def list_unanswered(nodes: Iterable[RunNode]) -> list[RunNode]:
    """List the nodes below the root without an answer, or with half of one for a reason of their own."""
    return [
        node
        for node in nodes
        if node.id != ROOT and (node.state not in ANSWERED or (node.state == "partial" and not node.children))
    ]


def make_done_event(run: RunRecord, nodes: Sequence[RunNode]) -> RunDone:
    """Return the event that ends a run."""
    return RunDone(
        run_id=run.id,
        state=run.state,
        answer=run.answer,
        reasons=run.reasons,
        failed=[node.brief() for node in list_unanswered(nodes)],
        citations=[cast("JSONValue", one) for one in run.citations],
        removed=[cast("JSONValue", one) for one in run.removed],
        nodes=len(nodes),
        cached=sum(node.cached for node in nodes),
        usage=total_spent(nodes).as_dict(),
        model=run.model,
    )
