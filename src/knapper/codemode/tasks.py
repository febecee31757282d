"""What Code Mode takes and returns: a task, the owner's thresholds, a retrieval, and a model's prompt and reply.

Which model it is, and how it is reached, is decided in a layer above.
"""

import threading
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, Protocol

from knapper.codemode.bridge import NoteRead
from knapper.codemode.evidence import Citation, DroppedCitation
from knapper.codemode.scoring import Score, ScoreTargets, ScoreWeights
from knapper.jsontypes import JSONValue
from knapper.tools.context import ScriptExit, ScriptProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpend:
    """What requests to a model used."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    """None where no price is known; the known part where some are."""

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "ModelSpend") -> "ModelSpend":
        """Return the sum of both."""
        known_costs = [one.cost_usd for one in (self, other) if one.cost_usd is not None]
        return ModelSpend(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(known_costs, Decimal()) if known_costs else None,
        )

    def __sub__(self, before: "ModelSpend") -> "ModelSpend":
        """Return what was used since *before*."""
        return ModelSpend(
            requests=self.requests - before.requests,
            input_tokens=self.input_tokens - before.input_tokens,
            output_tokens=self.output_tokens - before.output_tokens,
            cost_usd=None if self.cost_usd is None else self.cost_usd - (before.cost_usd or 0),
        )

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.tokens,
            "cost_usd": None if self.cost_usd is None else float(self.cost_usd),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptData:
    """A value that is data and never an instruction: names and texts that anybody may have written."""

    source: str
    """What it is, in our own words."""
    value: JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt for a model."""

    instructions: str
    """Our own text, unchanged; the system prompt."""
    request: str
    """Our own text as well: what to do with the data."""
    data: tuple[PromptData, ...] = ()
    """Put after the request, each item marked so that it can't pass for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply and its cost."""

    text: str
    usage: ModelSpend = ModelSpend(requests=1)


class AskModel(Protocol):
    """A function that asks a model and waits for its reply; any thread may call it."""

    def __call__(self, prompt: Prompt) -> Reply:
        """Ask the model.

        Raises:
            KnapError: The model doesn't answer, or may not be asked any more.
        """
        ...


ImpactMark = Literal["security", "data_model", "architecture", "contract"]
"""Why a plan counts a task as important."""
RetrievalTier = Literal["script", "A", "B", "C", "direct"]
"""How far it went: the first script was good enough; another one was written; a broadened direct search was made as
well; a person is asked, or was; a direct search from the start."""
RetrievalState = Literal["ready", "waiting", "stopped"]
"""Whether the context can be used; a person is asked; a person has said to stop."""
AttemptStep = Literal["script", "mended", "again", "direct", "person"]
_HIGH_IMPACT_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalTask:
    """A task that needs context."""

    text: str
    node: str = ""
    """The run's name for it; a person's answer is found again by it."""
    aspects: tuple[str, ...] = ()
    """What it asks about, where the plan says so; otherwise its text is split at its punctuation."""
    depth: int = 0
    marks: tuple[ImpactMark, ...] = ()
    needed_share: float = 0.0
    """Share of the run's other nodes that need this one."""

    @property
    def has_high_impact(self) -> bool:
        """Return whether a person should be asked before the run continues with poor context."""
        return (self.depth <= 1 and bool(self.marks)) or self.needed_share >= _HIGH_IMPACT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What is good enough, and how often to try again."""

    min_context_chars: int = 2_000
    min_citations: int = 2
    low_score: float = 0.45
    low_confidence: float = 0.5
    regens_per_node: int = 1
    regens_per_run: int = 5

    @property
    def targets(self) -> ScoreTargets:
        """Return what the score's coverage is measured against."""
        return ScoreTargets(context_chars=self.min_context_chars, citations=self.min_citations)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """Options of a retrieval."""

    code_mode: bool = True
    """Without it, a direct search is made, and no model is asked."""
    profile: ScriptProfile = "strict"
    timeout_s: float | None = None
    """Time limit of one script; None for what the owner allows."""
    vaults: tuple[str, ...] = ()
    """Vaults for a direct search; empty for the default one. Scripts choose by themselves."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    weights: ScoreWeights = field(default_factory=ScoreWeights)
    most_context_chars: int = 24_000
    """Most characters of a direct search's context."""


class RegenerationBudget:
    """The number of scripts that a whole run may have written anew; any thread may use it."""

    def __init__(self, most: int, used: int = 0) -> None:
        """Allow *most*, of which a run that is resumed has *used* some."""
        self._most = most
        self._used = used
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Return how many were taken."""
        with self._lock:
            return self._used

    def try_take(self) -> bool:
        """Take one, if one is left."""
        # Compared and counted under one lock, so that threads can't exceed the budget together.
        with self._lock:
            if self._used >= self._most:
                return False
            self._used += 1
            return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt, for a later look at the run."""

    step: AttemptStep
    score: Score = field(default_factory=Score)
    confidence: float | None = None
    """As the script reports it."""
    script: str = ""
    kind: ScriptExit | Literal[""] = ""
    """How the script ended; empty where none ran."""
    error: str = ""
    calls: int = 0
    wall_s: float = 0.0
    walls: tuple[str, ...] = ()
    """Parts of the second wall that stood around the script."""
    usage: ModelSpend = field(default_factory=ModelSpend)

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it."""
        return {
            "step": self.step,
            "score": self.score.total,
            "parts": self.score.parts(),
            "confidence": self.confidence,
            "script": self.script,
            "kind": self.kind,
            "error": self.error,
            "calls": self.calls,
            "wall_s": self.wall_s,
            "walls": list(self.walls),
            "usage": self.usage.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """The context for a task, where it comes from, and how good it seems."""

    context: str
    citations: tuple[Citation, ...] = ()
    dropped: tuple[DroppedCitation, ...] = ()
    """The script's citations that failed the check."""
    score: float = 0.0
    parts: Score = field(default_factory=Score)
    confidence: float | None = None
    """As the script reports it."""
    tier: RetrievalTier = "direct"
    state: RetrievalState = "ready"
    script: str = ""
    """The one that the context comes from; empty for a search."""
    queries: tuple[str, ...] = ()
    why: str = ""
    reads: tuple[NoteRead, ...] = ()
    """Notes that the context rests on, cited or not, as they were: if one changes, the context is stale."""
    others: tuple[str, ...] = ()
    """Other vaults that were searched or read, whether or not anything was found there."""
    used_tools: bool = False
    """Whether it may rest on other notes as well, since the script has called tools."""
    used_outside: bool = False
    """Whether it rests on files or pages beyond the vaults, whose changes aren't tracked."""
    attempts: tuple[Attempt, ...] = ()
    usage: ModelSpend = field(default_factory=ModelSpend)
    checkpoint: str = ""
    """Id of the question to a person, if there is one."""
    notes: tuple[str, ...] = ()
    """What the reader of the answer should know."""
    broken_off: str = ""
    """Why scripts ended at a limit, or with the model, before one of them was good enough; empty where none did."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it."""
        queries: list[JSONValue] = [*self.queries]
        notes: list[JSONValue] = [*self.notes]
        reads: list[JSONValue] = [{"vault": one.vault, "path": one.path, "hash": one.hash} for one in self.reads]
        return {
            "context": self.context,
            "citations": [one.as_dict() for one in self.citations],
            "dropped": [one.as_dict() for one in self.dropped],
            "score": self.score,
            "parts": self.parts.parts(),
            "confidence": self.confidence,
            "tier": self.tier,
            "state": self.state,
            "script": self.script,
            "queries": queries,
            "why": self.why,
            "reads": reads,
            "used_tools": self.used_tools,
            "used_outside": self.used_outside,
            "attempts": [one.as_dict() for one in self.attempts],
            "usage": self.usage.as_dict(),
            "checkpoint": self.checkpoint,
            "notes": notes,
            "broken_off": self.broken_off,
        }
