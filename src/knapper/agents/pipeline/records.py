"""Settings, limits, results and events of the pipeline's agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from pydantic import JsonValue

from knapper.agents.events import BaseEvent, Event
from knapper.agents.pipeline import scopes
from knapper.errors import BadInput, RefusedError, SetupError
from knapper.index.words.fulltext import MatchPlace
from knapper.jsontypes import JSONValue, Record
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

SelectionSource = Literal["current", "linked", "folder", "semantic", "manual"]
"""The open note; reached by links; in the same folder; near in meaning, or found by the scout; added by the person."""
SOURCE_PRIORITY: Final[tuple[SelectionSource, ...]] = ("current", "linked", "folder", "semantic", "manual")
"""Strongest first; where the token limit is reached, notes of the last sources are removed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSelectionMetadata(Record):
    """The reasons why a note was selected."""

    path: NotePath
    sources: tuple[SelectionSource, ...] = ()
    """All its sources, the strongest first."""
    reason: str = ""
    """The reason in words; empty where none was given."""
    semantic_score: float | None = None
    """The cosine to the best query, 0 to 1; None where it wasn't found by a semantic search."""
    keyword_match: MatchPlace | None = None
    """Where the keywords matched: title, heading or content."""
    link_depth: int | None = None
    """Number of links from the open note; None where it wasn't found by links."""
    fetched: bool = False
    """Whether it was read before it was chosen."""

    @property
    def source(self) -> SelectionSource:
        """Return the strongest source, which decides how long the note is kept at the token limit."""
        strongest = min((SOURCE_PRIORITY.index(one) for one in self.sources), default=SOURCE_PRIORITY.index("semantic"))
        return SOURCE_PRIORITY[strongest]

    @property
    def rank(self) -> tuple[int, int, float, NotePath]:
        """Return the sort key for the token limit: source, depth and score; the last notes are removed first."""
        return SOURCE_PRIORITY.index(self.source), self.link_depth or 0, -(self.semantic_score or 0.0), self.path

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        row: dict[str, JSONValue] = {"path": self.path, "sources": [*self.sources], "why": self.why()}
        optional: dict[str, JSONValue] = {
            "reason": self.reason or None,
            "semantic_score": self.semantic_score,
            "keyword_match": self.keyword_match,
            "link_depth": self.link_depth,
            "fetched": self.fetched or None,
        }
        return row | {name: value for name, value in optional.items() if value is not None}

    def why(self) -> str:
        """Return the reasons in a few words: ``semantic 82%, keyword in title, link depth 1``."""
        reasons = ["the open note"] if "current" in self.sources else []
        if self.semantic_score is not None:
            reasons.append(f"semantic {round(100 * self.semantic_score)}%")
        if self.keyword_match is not None:
            reasons.append(f"keyword in {self.keyword_match}")
        if self.link_depth is not None:
            reasons.append(f"link depth {self.link_depth}")
        if "folder" in self.sources:
            reasons.append("same folder")
        if "manual" in self.sources:
            reasons.append("manual")
        return ", ".join(reasons) or "chosen while exploring"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextNote:
    """A note of a context, with the reasons for it."""

    note: Note
    metadata: NoteSelectionMetadata
    foreign: bool = False
    """Whether somebody else than the owner wrote it."""


Confidence = Literal["exploring", "confident", "done"]
CONFIDENCES: Final[tuple[Confidence, ...]] = get_args(Confidence)
ROUND_RANGE: Final = (2, 10)
NOTE_RANGE: Final = (3, 50)
KEYWORD_RANGE: Final = (3, 20)
ScoutEnd = Literal["done", "said", "rounds", "timeout", "asked", "cancelled", "failed"]
"""Confident; ended by itself; out of rounds or time; with a question; ended by the person or an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutSettings:
    """Limits of the scout's exploration.

    Raises:
        BadInput: A number is out of its range, or there is no such tool.
    """

    rounds: int = 5
    """Rounds of tool calls, 2 to 10."""
    notes: int = 20
    """Maximum number of selected notes, 3 to 50."""
    keyword_limit: int = 10
    """Maximum number of results of a keyword search, 3 to 20."""
    tools: frozenset[str] = frozenset(scopes.SCOUT_TOOLS)
    """The tools that are switched on."""
    show_tags: bool = False
    """Whether the model is shown all tags of the vault at the beginning."""
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Check the ranges and the tools' names."""
        check_range("rounds", self.rounds, ROUND_RANGE)
        check_range("notes", self.notes, NOTE_RANGE)
        check_range("keyword_limit", self.keyword_limit, KEYWORD_RANGE)
        if unknown := sorted(self.tools - set(scopes.SCOUT_TOOLS)):
            raise BadInput(f"the scout has no tool '{unknown[0]}'", hint=f"it has {', '.join(scopes.SCOUT_TOOLS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutResult(Record):
    """The result of an exploration."""

    selected_notes: tuple[NoteSelectionMetadata, ...] = ()
    """The agent's last selection, in its order."""
    reasoning: str = ""
    confidence: Confidence = "exploring"
    exploration_summary: str = ""
    """The steps of the exploration, in order."""
    rounds: int = 0
    tokens_used: int = 0
    ended: ScoutEnd = "said"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserQuestion:
    """A question of the agent to the person."""

    question: str
    options: tuple[str, ...] = ()


def check_range(name: str, value: int, allowed: tuple[int, int]) -> None:
    """Check that a number is in its range.

    Raises:
        BadInput: It isn't (code ``out_of_range``).
    """
    least, most = allowed
    if not least <= value <= most:
        raise BadInput(f"{name} is {value}", hint=f"give {least} to {most}", code="out_of_range")


EVALUATE_TOOL: Final = "evaluate_context"
SEARCH_TOOL: Final = "web_search"
SELECT_TOOL: Final = "select_pages"
FINALIZE_TOOL: Final = "finalize_web_context"
SNIPPET_RANGE: Final = (3, 15)
PAGE_RANGE: Final = (1, 5)
TOKEN_RANGE: Final = (2_000, 20_000)
WebEnd = Literal["done", "said", "rounds", "timeout", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchSettings:
    """Limits of the web search.

    Raises:
        BadInput: A number is out of its range.
    """

    snippet_limit: int = 8
    """Maximum number of results of a search, 3 to 15."""
    fetch_limit: int = 3
    """Maximum number of pages that are read, 1 to 5."""
    token_budget: int = 8_000
    """Maximum number of tokens of pages, 2,000 to 20,000."""
    auto_search: bool = True
    """Whether to search where the notes don't answer the task; otherwise only to report that it is needed."""
    rounds: int = 8
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_range("snippet_limit", self.snippet_limit, SNIPPET_RANGE)
        check_range("fetch_limit", self.fetch_limit, PAGE_RANGE)
        check_range("token_budget", self.token_budget, TOKEN_RANGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnhancedWebSource(Record):
    """A web page that was used; all of its text is untrusted."""

    title: str
    url: str
    date: str = ""
    """The page's own date of publication; empty where it has none."""
    extracted: str = ""
    """What matters for the task, as the agent extracted it; empty for nothing."""
    snippet: str = ""
    tokens: int = 0
    """Tokens of the page's text that were read."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {**Record.as_dict(self), "date": self.date or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResult(Record):
    """The result of a web search."""

    search_performed: bool = False
    search_needed: bool = False
    evaluation_reasoning: str = ""
    """The reason why the web was searched, or wasn't."""
    search_queries: tuple[str, ...] = ()
    sources: tuple[EnhancedWebSource, ...] = ()
    findings: str = ""
    """The findings in the agent's words."""
    tokens_used: int = 0
    ended: WebEnd = "said"
    problem: str = ""
    """The reason why it failed; empty where it didn't."""

    def after(self, before: WebResult | None) -> WebResult:
        """Return this result merged with the earlier one; the end state is this one's."""
        if before is None:
            return self
        sources = {one.url: one for one in (*before.sources, *self.sources)}
        return replace(
            self,
            search_performed=before.search_performed or self.search_performed,
            evaluation_reasoning=self.evaluation_reasoning or before.evaluation_reasoning,
            search_queries=(*before.search_queries, *self.search_queries),
            sources=tuple(sources.values()),
            findings="\n\n".join(filter(None, (before.findings, self.findings))),
            tokens_used=before.tokens_used + self.tokens_used,
        )

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        row = Record.as_dict(self)
        if not self.problem:
            del row["problem"]
        return row


Phase = Literal["scout", "web", "task", "orchestrator"]
PipelineState = Literal["complete", "asked", "cancelled", "failed", "limit"]
"""How a run ended: complete; with a question; by the person; by an error; at a limit of the owner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccounting(Record):
    """Token counts by phase; the orchestrator's own tokens count only into the total."""

    scout_tokens: int = 0
    web_tokens: int = 0
    task_tokens: int = 0
    orchestrator_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Return the sum of all phases."""
        return self.scout_tokens + self.web_tokens + self.task_tokens + self.orchestrator_tokens

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {**Record.as_dict(self), "total_tokens": self.total_tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineContext:
    """What the agents have found so far, with the tokens that they used."""

    scout: ScoutResult | None = None
    web: WebResult | None = None
    token_accounting: TokenAccounting = field(default_factory=TokenAccounting)

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        row: dict[str, JSONValue] = {"token_accounting": self.token_accounting.as_dict()}
        if self.scout is not None:
            row["scout"] = self.scout.as_dict()
        if self.web is not None:
            row["web"] = self.web.as_dict()
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseProgress(BaseEvent):
    """The progress of a phase, in words."""

    kind: ClassVar[str] = "progress"
    phase: Phase
    state: Literal["started", "going_on", "ended"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionEvent(BaseEvent):
    """The notes that the scout selected, with the reason for each."""

    kind: ClassVar[str] = "selection"
    scout: dict[str, JsonValue]
    """As `knapper.agents.pipeline.records.ScoutResult` returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesEvent(BaseEvent):
    """The results of the web search."""

    kind: ClassVar[str] = "sources"
    web: dict[str, JsonValue]
    """As `knapper.agents.pipeline.records.WebResult` returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEvent(BaseEvent):
    """The context of the task: its notes, the reason for each, and the notes that the token limit left out."""

    kind: ClassVar[str] = "context"
    context: dict[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(BaseEvent):
    """A request to open a note for the person; it changes nothing."""

    kind: ClassVar[str] = "navigate"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome(BaseEvent):
    """The end of a run, with its whole outcome."""

    kind: ClassVar[str] = "outcome"
    run_id: str
    state: PipelineState
    answer: str
    """The task's answer, or the other agents' findings where the task agent is switched off."""
    pipeline: dict[str, JsonValue]
    """What scout and web found, and tokens by agent."""
    context: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The notes that the task was done with, as /ask/context shows them."""
    proposed_edits: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])
    edit_results: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """How many edits could be made, and why others couldn't."""
    proposals: list[str] = field(default_factory=list[str])
    """Ids of the new proposal and of those whose pending blocks were changed; see /proposals."""
    waiting: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])
    """The same, each with ``proposal_id``, ``message``, ``review_command`` and, from a server, ``review_url``."""
    opened: list[str] = field(default_factory=list[str])
    """Notes to be opened for the person."""
    citations: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])
    removed: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])
    """Citations that were removed, each with the reason."""
    question: dict[str, JsonValue] | None = None
    """The question to the person; the run continues with the answer."""
    notices: list[str] = field(default_factory=list[str])
    usage: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    model: str = ""
    session_id: str = ""
    error: dict[str, JsonValue] | None = None

    def check(self) -> None:
        """Check that the run has not failed.

        Raises:
            RefusedError: It reached a limit.
            SetupError: A model failed, or something else that it needs.
        """
        if self.error is not None and self.state in {"failed", "limit"}:
            kind = RefusedError if self.state == "limit" else SetupError
            raise kind(str(self.error["error"]), hint=str(self.error["hint"]), code=str(self.error["code"]))


PipelineEvent: TypeAlias = (
    Event | PhaseProgress | SelectionEvent | SourcesEvent | ContextEvent | Navigate | PipelineOutcome
)


def set_fields(record: object, *names: str) -> dict[str, Any]:
    """Return those of a record's fields that are set, by name; None leaves what is usual."""
    return {name: value for name in names if (value := getattr(record, name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Limits of one task; None leaves what is configured.

    ``TaskLimits(rounds=2)`` gives the scout two rounds and leaves all else.
    """

    rounds: int | None = None
    """Of the scout's tool calls."""
    notes: int | None = None
    """How many notes the scout may select."""
    linked_notes: int | None = None
    """How many notes go with the open one for links alone."""
    semantic_notes: int | None = None
    """How many notes go with the open one for being near it in meaning."""
    semantic_similarity: int | None = None
    """How near they have to be, in percent of the cosine."""
    keyword_limit: int | None = None
    tools: tuple[str, ...] | None = None
    """The scout's optional tools that are switched on."""
    show_tags: bool | None = None
    timeout_s: int | None = None
    """How long the scout may take."""
    snippet_limit: int | None = None
    """How many results a search of the web gives."""
    fetch_limit: int | None = None
    """How many pages are read."""
    token_budget: int | None = None
    """How many tokens of pages are read."""
    auto_search: bool | None = None
    orchestrator_steps: int | None = None
    orchestrator_tokens: int | None = None
    """0 for no limit."""

    def for_scout(self, usual: ScoutSettings) -> ScoutSettings:
        """Return the scout's settings with these limits.

        Raises:
            BadInput: A number is out of its range, or there is no such tool.
        """
        tools = usual.tools if self.tools is None else frozenset({scopes.UPDATE_SELECTION, *self.tools})
        numbers = set_fields(self, "rounds", "notes", "keyword_limit", "show_tags", "timeout_s")
        return replace(usual, tools=tools, **numbers)

    def for_web(self, usual: ResearchSettings) -> ResearchSettings:
        """Return the web search's settings with these limits.

        Raises:
            BadInput: A number is out of its range.
        """
        return replace(usual, **set_fields(self, "snippet_limit", "fetch_limit", "token_budget", "auto_search"))

    def as_dict(self) -> dict[str, JSONValue]:
        """Return those that are set, by name."""
        given = set_fields(self, *TASK_LIMIT_NAMES)
        return given if self.tools is None else {**given, "tools": [*self.tools]}


TASK_LIMIT_NAMES = tuple(one.name for one in fields(TaskLimits))
"""Of all limits."""


def read_task_limits(data: Mapping[str, Any]) -> TaskLimits:
    """Read limits by their names; unknown ones are left out."""
    numbers: dict[str, Any] = {name: data.get(name) for name in TASK_LIMIT_NAMES if name != "tools"}
    tools = data.get("tools")
    return TaskLimits(tools=None if tools is None else tuple(map(str, tools)), **numbers)
