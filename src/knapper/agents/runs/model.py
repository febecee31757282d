"""Records of task runs: the run, its nodes, their limits, and the events that are streamed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import JsonValue
from typing_extensions import TypedDict

from knapper.agents.events import BaseEvent, Error, Notice, Usage
from knapper.agents.model import usage
from knapper.codemode.tasks import ModelSpend
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue, Record, ShownAs
from knapper.tools.context import ScriptProfile

NodeState = Literal["pending", "running", "done", "partial", "failed", "blocked", "cut"]
"""Waiting; being worked on; answered; answered in part; without an answer because of an error; because a node that it
needs failed; because the budget or a person ended it."""
Impact = Literal["none", "security", "data_model", "architecture", "contract"]
"""What a subtask decides on that is expensive to change later."""

ROOT: Final = "root"
ANSWERED: Final[frozenset[NodeState]] = frozenset({"done", "partial"})
ENDED: Final[frozenset[NodeState]] = frozenset({"done", "partial", "failed", "blocked", "cut"})
GO_ON: Final = "go on"
SKIP: Final = "skip"
"""Fixed answers that a person can give, besides naming notes to use."""


ALL_NOTES: Final = "**"
"""The path of a source that stands for all notes of a vault, with a hash over all of theirs.

A node that found nothing depends on it, and so does one whose script called tools.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRef(Record):
    """A range of lines of a note that was used, with the note's hash at that time."""

    shown = ("vault", "path", "start_line", "end_line", "hash")
    path: str
    hash: str
    vault: str = ""
    """Empty for the run's own vault."""
    first: int = 0
    """1-based lines; 0 for the whole note."""
    last: int = 0

    @property
    def start_line(self) -> int:
        """Return the first line, from 1; 0 for the whole note."""
        return self.first

    @property
    def end_line(self) -> int:
        """Return the last line."""
        return self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext(Record):
    """The result of the retrieval for a node, which is shown without the context's text."""

    shown = (
        "score",
        "parts",
        "confidence",
        "tier",
        "script",
        "attempts",
        "sources",
        "context_chars",
        "notes",
    )
    context: str
    sources: tuple[SourceRef, ...] = ()
    """Passages that can be cited."""
    reads: tuple[SourceRef, ...] = ()
    """Further notes that the result depends on."""
    others: tuple[str, ...] = ()
    """Other vaults that were searched."""
    score: float = 0.0
    parts: dict[str, float] = field(default_factory=dict[str, float])
    """The components of the score."""
    confidence: float = 0.0
    tier: str = ""
    """Empty where the first attempt was good enough; A, B or C otherwise."""
    script: str = ""
    attempts: tuple[dict[str, JsonValue], ...] = ()
    """Each script with its outcome: step, kind, error, score, calls, wall_s, usage, script."""
    notes: tuple[str, ...] = ()
    """Notes for the person about the retrieval."""
    checkpoint: str = ""
    """The id of the question to the person about it."""
    used_tools: bool = False
    """Whether its script called tools, so that it may depend on any note."""
    used_outside: bool = False
    """Whether it also depends on files or pages outside of the vaults, whose changes can't be detected."""
    limited: str = ""
    """Why Code Mode broke off before it found enough; empty where it didn't."""

    @property
    def is_empty(self) -> bool:
        """Return whether no note was found; a person's own words count as a find."""
        return not self.sources and not (self.context.strip() and (self.reads or self.checkpoint))

    @property
    def all_sources(self) -> tuple[SourceRef, ...]:
        """Return every note that the result depends on."""
        return (*self.sources, *self.reads)

    @property
    def context_chars(self) -> int:
        """Return how long the context is."""
        return len(self.context)

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        parts: dict[str, JSONValue] = {name: round(value, 4) for name, value in self.parts.items()}
        return {**Record.as_dict(self), "score": round(self.score, 4), "parts": parts}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuestion(Record):
    """A question to a person about a node."""

    shown = ("question", "options", "answer", "unattended")
    question: str
    options: tuple[str, ...] = ()
    answer: str = ""
    """Empty until it is answered."""
    unattended: bool = False
    """Whether nobody was there to answer, so that the node continued without."""
    settled: bool = False
    """Whether the answer was acted on."""


class SpanRow(TypedDict):
    """A time in which a node was at one activity, as every surface shows it."""

    doing: str
    started: str
    ended: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpan:
    """A time in which a node was at one activity."""

    doing: str
    """As in `NodeChanged`."""
    started: datetime
    ended: datetime | None = None
    """None while it lasts."""

    def as_dict(self) -> SpanRow:
        """Return it in the shape that every surface shows."""
        ended = self.ended.isoformat(timespec="milliseconds") if self.ended else None
        return {"doing": self.doing, "started": self.started.isoformat(timespec="milliseconds"), "ended": ended}


def continue_spans(spans: Sequence[NodeSpan], doing: str, now: datetime, *, has_ended: bool) -> tuple[NodeSpan, ...]:
    """Return a node's spans after it changed.

    Args:
        spans: Its spans so far.
        doing: Its activity from now on; empty where that stays as it was.
        now: The time.
        has_ended: Whether nothing more is done for it.
    """
    last = spans[-1] if spans else None
    is_open = last is not None and last.ended is None
    if not (doing or has_ended) or (last is not None and is_open and last.doing == doing and not has_ended):
        return (*spans,)
    closed = (*spans[:-1], replace(last, ended=now)) if last is not None and is_open else (*spans,)
    return closed if has_ended else (*closed, NodeSpan(doing=doing, started=now))


class NodeRow(TypedDict):
    """A node in brief, as every surface shows it."""

    id: str
    """`root`, `1`, `1.2`."""
    parent: str
    title: str
    depth: int
    state: NodeState
    reason: str
    """Why it has no answer, or a part of one."""
    cached: bool
    children: list[str]
    score: float | None
    """Of what was found, 0 to 1; null before."""
    tier: str
    """Empty where the first attempt did; A, B, C or direct otherwise."""
    citation_count: int
    tokens: int
    cost_usd: float | None
    """Its own, without its children's; null where unknown."""
    spans: list[SpanRow]
    """When it was at what, in order; `ended` is null while it lasts."""


class NodeDetails(NodeRow):
    """Everything that a node did, as every surface shows it."""

    task: str
    why: str
    """Why it is split, or isn't."""
    hard: list[str]
    """Nodes whose answers it needs."""
    soft: list[str]
    """Nodes whose answers help it."""
    impact: Impact
    high_impact: bool
    retrieval: Annotated[dict[str, JsonValue], ShownAs(RetrievedContext)] | None
    answer: str
    citations: list[dict[str, JsonValue]]
    removed: list[dict[str, JsonValue]]
    sources: list[Annotated[dict[str, JsonValue], ShownAs(SourceRef)]]
    checkpoint: Annotated[dict[str, JsonValue], ShownAs(NodeQuestion)] | None
    usage: dict[str, JsonValue]
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNode:
    """One node of a run, with its results so far."""

    id: str
    """``root``, ``1``, ``1.2``."""
    task: str
    title: str = ""
    depth: int = 0
    hard: tuple[str, ...] = ()
    """Sibling nodes whose answers it needs."""
    soft: tuple[str, ...] = ()
    """Sibling nodes whose answers help it."""
    impact: Impact = "none"
    large: bool = False
    """Whether the plan allows it to be split again."""
    high: bool = False
    """Whether much depends on it, so that a person is asked where little is found."""
    state: NodeState = "pending"
    reason: str = ""
    """Why it has no answer, or only a part of one."""
    split: bool | None = None
    """Whether it is split; None until that is decided."""
    why: str = ""
    """The reason why it is split, or isn't."""
    limited: str = ""
    """Why it isn't split although it was to be; empty where that is as planned."""
    children: tuple[str, ...] = ()
    found: RetrievedContext | None = None
    answer: str = ""
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    """Citations that were removed, each with the reason."""
    sources: tuple[SourceRef, ...] = ()
    """Every note that it read, with the hash at that time."""
    inputs: str = ""
    """A digest of everything but the notes that its answer was written from."""
    cached: bool = False
    asking: NodeQuestion | None = None
    spent: ModelSpend = field(default_factory=ModelSpend)
    """Its own cost, without that of its children."""
    spans: tuple[NodeSpan, ...] = ()
    """When it was at what, in order."""
    notes: tuple[str, ...] = ()

    @property
    def parent(self) -> str:
        """Return the parent's id; empty for the root."""
        if self.id == ROOT:
            return ""
        return self.id.rpartition(".")[0] or ROOT

    @property
    def limits(self) -> tuple[str, ...]:
        """Return what broke off while it was worked on, so that its answer may be less than was asked."""
        return tuple(filter(None, (self.limited, self.found.limited if self.found else "")))

    @property
    def name(self) -> str:
        """Return the title, or the beginning of the task."""
        return self.title or " ".join(self.task.split())[:80]

    def as_dict(self) -> NodeDetails:
        """Return it in the shape that every surface shows."""
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
            "citations": [*self.citations],
            "removed": [*self.removed],
            "sources": [one.as_dict() for one in self.sources],
            "checkpoint": self.asking.as_dict() if self.asking else None,
            "usage": self.spent.as_dict(),
            "notes": [*self.notes],
        }

    def brief(self) -> NodeRow:
        """Return it in the shape of a list of nodes."""
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
            "cost_usd": None if self.spent.cost_usd is None else float(self.spent.cost_usd),
            "spans": [span.as_dict() for span in self.spans],
        }


NoteUse = Literal["cited", "found", "read"]
"""What a note was to a run, the closest first: an answer cites it, a retrieval returned it, or it was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedNote(Record):
    """A note that a run used."""

    vault: str
    """Empty for the run's own vault."""
    path: str
    use: NoteUse
    """Cited by an answer, found by a retrieval, or looked at: the closest of them."""
    nodes: tuple[str, ...]
    """The nodes that used it so."""


def list_used_notes(nodes: Iterable[RunNode]) -> list[UsedNote]:
    """Return the notes that a run's nodes used, each once, by the closest use: cited ones first.

    Args:
        nodes: The run's nodes, in the order of its plan.
    """
    by_use: dict[NoteUse, dict[tuple[str, str], list[str]]] = {"cited": {}, "found": {}, "read": {}}
    for node in nodes:
        cited = [(str(one.get("vault") or ""), str(one.get("path") or "")) for one in node.citations]
        source_keys = [(one.vault, one.path) for one in node.found.sources] if node.found else []
        read = [(one.vault, one.path) for one in node.sources]
        uses: dict[NoteUse, list[tuple[str, str]]] = {"cited": cited, "found": source_keys, "read": read}
        for use, notes in uses.items():
            for note in dict.fromkeys(notes):
                by_use[use].setdefault(note, []).append(node.id)
    known: dict[tuple[str, str], UsedNote] = {}
    for use, notes_of in by_use.items():
        for (vault, path), ids in notes_of.items():
            if path and path != ALL_NOTES and (vault, path) not in known:
                known[vault, path] = UsedNote(path=path, vault=vault, use=use, nodes=tuple(ids))
    return list(known.values())


RunState = Literal["pending", "running", "complete", "partial", "failed", "cancelled", "interrupted"]
"""*interrupted* is a run whose process ended before the run did."""

MAX_DEPTH: Final = 8
MAX_NODES: Final = 500
MAX_TASK_CHARS: Final = 50_000
"""Characters of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits(Record):
    """Limits of a run; 0 tokens or cents are no limit.

    Raises:
        BadInput: A number is out of its range.
    """

    shown = ("depth", "nodes", "seconds", "tokens", "cents", "parallel")
    depth: int = 3
    """Levels below the task."""
    nodes: int = 50
    """All nodes, the root included."""
    seconds: float = 1_200.0
    """Counted from the start, or from when the run is resumed."""
    tokens: int = 1_000_000
    cents: int = 0
    """In cents of a US dollar, where prices are known."""
    parallel: int = 4
    """Nodes that retrieve or write at the same time."""
    kept: float = 0.25
    """The share of the limits that is reserved for the run's answer."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_range("depth", self.depth, 0, MAX_DEPTH)
        _check_range("nodes", self.nodes, 1, MAX_NODES)
        _check_range("parallel", self.parallel, 1, 64)
        if not self.seconds > 0:
            raise BadInput(f"the time limit is {self.seconds:g} s", hint="give more than 0")
        if self.tokens < 0 or self.cents < 0:
            raise BadInput("a limit of tokens or cents is below 0", hint="give 0 for no limit")
        if not 0 < self.kept < 1:
            raise BadInput(f"the share kept for the answer is {self.kept:g}", hint="give more than 0 and less than 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """What a run is to do.

    Raises:
        BadInput: The task is empty or too long.
    """

    task: str
    strategy: str = "auto"
    """The strategy's name; with ``auto`` the model chooses one."""
    code_mode: bool = True
    """Whether scripts retrieve notes; otherwise a search does."""
    profile: ScriptProfile = "strict"
    """What scripts may read besides the vaults."""
    fresh: bool = False
    """Whether the cache is ignored."""
    limits: RunLimits = field(default_factory=RunLimits)
    client: str = "cli"
    """The client on whose behalf it runs, with no more rights than that client has."""
    also: tuple[str, ...] = ()
    """Names of other vaults to search as well."""

    def __post_init__(self) -> None:
        """Check the task's length."""
        if not self.task.strip():
            raise BadInput("the task is empty", hint="say what is to be done")
        if len(self.task) > MAX_TASK_CHARS:
            raise BadInput(f"the task has {len(self.task):,} characters", hint=f"give at most {MAX_TASK_CHARS:,}")


class RunRow(TypedDict):
    """A run in brief, as every surface shows it."""

    id: str
    task: str
    strategy: str
    code_mode: bool
    model: str
    client: str
    """On whose behalf it is."""
    also: list[str]
    """Other vaults that it looks through."""
    state: RunState
    reasons: list[str]
    """Why it isn't complete."""
    limits: Annotated[dict[str, JsonValue], ShownAs(RunLimits)]
    created: str
    updated: str


class AnsweredRun(RunRow):
    """A run with its answer, as every surface shows it."""

    answer: str
    citations: list[dict[str, JsonValue]]
    removed: list[dict[str, JsonValue]]


class RunWithNodes(AnsweredRun):
    """A run with its nodes, as every surface shows it."""

    usage: dict[str, JsonValue]
    cached: int
    node_count: int
    nodes: list[NodeRow]
    """In brief, parents before their parts."""


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

    def as_dict(self) -> AnsweredRun:
        """Return it in the shape that every surface shows."""
        return {
            **self.brief(),
            "answer": self.answer,
            "citations": [*self.citations],
            "removed": [*self.removed],
        }

    def brief(self) -> RunRow:
        """Return it in the shape of a list of runs."""
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
    """The start of a run, or its continuation."""

    kind: ClassVar[str] = "run_started"
    run: RunRow
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged(BaseEvent):
    """A change of a node."""

    kind: ClassVar[str] = "node"
    node: NodeRow
    doing: str = ""
    """The current activity: deciding, planning, retrieving, answering, joining; empty where the node has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEvent(BaseEvent):
    """A question to the person about a node on which much depends."""

    kind: ClassVar[str] = "checkpoint"
    node_id: str
    id: str = ""
    """The question's id, with which any surface can answer it; empty where others can't."""
    question: str
    options: tuple[str, ...] = ()
    answer: str = ""
    """Empty while the question is open."""
    unattended: bool = False
    """Whether nobody is there to answer, so that the run continues without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDone(BaseEvent):
    """The end of the run, with its whole outcome."""

    kind: ClassVar[str] = "run_done"
    run_id: str
    state: RunState
    answer: str
    reasons: tuple[str, ...] = ()
    failed: list[NodeRow] = field(default_factory=list[NodeRow])
    """Nodes without an answer."""
    citations: list[JsonValue] = field(default_factory=list[JsonValue])
    removed: list[JsonValue] = field(default_factory=list[JsonValue])
    nodes: int = 0
    cached: int = 0
    usage: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    model: str = ""


RunEvent: TypeAlias = RunStarted | NodeChanged | CheckpointEvent | Notice | Usage | Error | RunDone
RunEventSink = Callable[[RunEvent], None]
"""Receives an event; called in the run's own event loop."""


def total_spent(nodes: Iterable[RunNode]) -> ModelSpend:
    """Return the total cost of nodes; each counts only its own cost."""
    return sum((node.spent for node in nodes), ModelSpend())


def make_usage_event(nodes: Iterable[RunNode]) -> Usage:
    """Return the event that reports what nodes cost."""
    return usage.make_usage_event(total_spent(nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """A run with its nodes."""

    run: RunRecord
    nodes: Sequence[RunNode]

    def as_dict(self) -> RunWithNodes:
        """Return it in the shape that every surface shows."""
        return {
            **self.run.as_dict(),
            "usage": total_spent(self.nodes).as_dict(),
            "cached": sum(node.cached for node in self.nodes),
            "node_count": len(self.nodes),
            "nodes": [node.brief() for node in self.nodes],
        }


def list_unanswered(nodes: Iterable[RunNode]) -> list[RunNode]:
    """List the nodes below the root without an answer, or with a part of one for a reason of their own."""
    return [
        node
        for node in nodes
        if node.id != ROOT and (node.state not in ANSWERED or (node.state == "partial" and not node.children))
    ]


def make_checkpoint_event(node: RunNode, asking: NodeQuestion) -> CheckpointEvent:
    """Return the event of a node's question, with the answer where there is one."""
    return CheckpointEvent(
        node_id=node.id,
        id=node.found.checkpoint if node.found else "",
        question=asking.question,
        options=asking.options,
        answer=asking.answer,
        unattended=asking.unattended,
    )


def make_done_event(run: RunRecord, nodes: Sequence[RunNode]) -> RunDone:
    """Return the event that ends a run."""
    return RunDone(
        run_id=run.id,
        state=run.state,
        answer=run.answer,
        reasons=run.reasons,
        failed=[node.brief() for node in list_unanswered(nodes)],
        citations=[*run.citations],
        removed=[*run.removed],
        nodes=len(nodes),
        cached=sum(node.cached for node in nodes),
        usage=total_spent(nodes).as_dict(),
        model=run.model,
    )
