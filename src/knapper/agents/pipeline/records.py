"""Settings, results and events of the pipeline's agents."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from knapper.agents.events import BaseEvent, Event
from knapper.agents.pipeline import scopes
from knapper.errors import BadInput
from knapper.index.fulltext import MatchPlace
from knapper.jsontypes import JSONValue
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

SelectionSource = Literal["current", "linked", "folder", "semantic", "manual"]
"""The open note; reached by links; in the same folder; chosen by exploring; added by the person."""
SOURCE_PRIORITY: Final[tuple[SelectionSource, ...]] = ("current", "linked", "folder", "semantic", "manual")
"""Where a limit is reached, the last of these goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSelectionMetadata:
    """Say why a note was chosen."""

    path: NotePath
    sources: tuple[SelectionSource, ...] = ()
    """All that speak for it, the strongest first."""
    reason: str = ""
    """In words; empty where none were given."""
    semantic_score: float | None = None
    """0 to 1; None where it wasn't found by meaning."""
    keyword_match: MatchPlace | None = None
    """Where the words stood: title, heading or content."""
    link_depth: int | None = None
    """Links from the open note; None where it wasn't found by links."""
    fetched: bool = False
    """Whether it was read before it was chosen."""

    @property
    def source(self) -> SelectionSource:
        """Return what holds it longest where a limit is reached."""
        strongest = min((SOURCE_PRIORITY.index(one) for one in self.sources), default=SOURCE_PRIORITY.index("semantic"))
        return SOURCE_PRIORITY[strongest]

    @property
    def rank(self) -> tuple[int, int, float, NotePath]:
        """Order notes by how easily they can be done without, the last first: by kind, then by depth and score."""
        return SOURCE_PRIORITY.index(self.source), self.link_depth or 0, -(self.semantic_score or 0.0), self.path

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        sources: list[JSONValue] = [*self.sources]
        row: dict[str, JSONValue] = {"path": self.path, "sources": sources, "why": self.why()}
        optional: dict[str, JSONValue] = {
            "reason": self.reason or None,
            "semantic_score": self.semantic_score,
            "keyword_match": self.keyword_match,
            "link_depth": self.link_depth,
            "fetched": self.fetched or None,
        }
        return row | {name: value for name, value in optional.items() if value is not None}

    def why(self) -> str:
        """Return in a few words why it is there: ``semantic 82%, keyword in title, link depth 1``."""
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
    """A note of a context."""

    note: Note
    metadata: NoteSelectionMetadata
    foreign: bool = False
    """Whether others wrote it."""


Confidence = Literal["exploring", "confident", "done"]
CONFIDENCES: Final[tuple[Confidence, ...]] = get_args(Confidence)
ROUND_RANGE: Final = (2, 10)
NOTE_RANGE: Final = (3, 50)
KEYWORD_RANGE: Final = (3, 20)
ScoutEnd = Literal["done", "said", "rounds", "timeout", "asked", "cancelled", "failed"]
"""It was sure; it stopped by itself; no rounds or no time were left; it asked; the person or an error ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutSettings:
    """Say how an exploration goes.

    Raises:
        BadInput: A number is out of its range, or there is no such tool.
    """

    rounds: int = 5
    """2 to 10."""
    notes: int = 20
    """That are chosen at most, 3 to 50."""
    keyword_limit: int = 10
    """Results of a search by words at most, 3 to 20."""
    tools: frozenset[str] = frozenset(scopes.SCOUT_TOOLS)
    """Those that are switched on."""
    show_tags: bool = False
    """Tell the model all tags of the vault at the beginning."""
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check_range("rounds", self.rounds, ROUND_RANGE)
        check_range("notes", self.notes, NOTE_RANGE)
        check_range("keyword_limit", self.keyword_limit, KEYWORD_RANGE)
        if unknown := sorted(self.tools - set(scopes.SCOUT_TOOLS)):
            raise BadInput(f"the scout has no tool '{unknown[0]}'", hint=f"it has {', '.join(scopes.SCOUT_TOOLS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutResult:
    """What an exploration came to."""

    selected_notes: tuple[NoteSelectionMetadata, ...] = ()
    """The last selection, in the agent's order; never one that it didn't make."""
    reasoning: str = ""
    confidence: Confidence = "exploring"
    exploration_summary: str = ""
    """What it did, step by step."""
    rounds: int = 0
    tokens_used: int = 0
    ended: ScoutEnd = "said"

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        notes: list[JSONValue] = [one.as_dict() for one in self.selected_notes]
        return {
            "selected_notes": notes,
            "reasoning": self.reasoning,
            "confidence": self.confidence,
            "exploration_summary": self.exploration_summary,
            "rounds": self.rounds,
            "tokens_used": self.tokens_used,
            "ended": self.ended,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UserQuestion:
    """What the agent asks the person."""

    question: str
    options: tuple[str, ...] = ()


def check_range(name: str, value: int, allowed: tuple[int, int]) -> None:
    """Refuse a number that is out of its range.

    Raises:
        BadInput: It is.
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
    """Say how the web is searched.

    Raises:
        BadInput: A number is out of its range.
    """

    snippet_limit: int = 8
    """Results of a search at most, 3 to 15."""
    fetch_limit: int = 3
    """Pages that are read at most, 1 to 5."""
    token_budget: int = 8_000
    """Tokens of pages that are taken in at most, 2,000 to 20,000."""
    auto_search: bool = True
    """Search by itself where the notes don't answer; else only say that a search is needed."""
    rounds: int = 8
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check_range("snippet_limit", self.snippet_limit, SNIPPET_RANGE)
        check_range("fetch_limit", self.fetch_limit, PAGE_RANGE)
        check_range("token_budget", self.token_budget, TOKEN_RANGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnhancedWebSource:
    """A page that something was taken from; strangers wrote all of it."""

    title: str
    url: str
    date: str = ""
    """When it was published, as it says; empty where it doesn't."""
    extracted: str = ""
    """What of it matters for the task; empty where the agent took nothing."""
    snippet: str = ""
    tokens: int = 0
    """Of its text that was read."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "title": self.title,
            "url": self.url,
            "date": self.date or None,
            "extracted": self.extracted,
            "snippet": self.snippet,
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResult:
    """What a search of the web came to."""

    search_performed: bool = False
    evaluation_reasoning: str = ""
    """Why the web was searched, or why not."""
    search_needed: bool = False
    search_queries: tuple[str, ...] = ()
    sources: tuple[EnhancedWebSource, ...] = ()
    findings: str = ""
    """What was found, in the agent's words."""
    tokens_used: int = 0
    ended: WebEnd = "said"
    problem: str = ""
    """Why it failed; empty where it didn't."""

    def after(self, before: "WebResult | None") -> "WebResult":
        """Return what this search and those before it came to; how the last one ended counts."""
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
        """Shape it as every surface shows it."""
        queries: list[JSONValue] = [*self.search_queries]
        sources: list[JSONValue] = [one.as_dict() for one in self.sources]
        return {
            "search_performed": self.search_performed,
            "search_needed": self.search_needed,
            "evaluation_reasoning": self.evaluation_reasoning,
            "search_queries": queries,
            "sources": sources,
            "findings": self.findings,
            "tokens_used": self.tokens_used,
            "ended": self.ended,
            **({"problem": self.problem} if self.problem else {}),
        }


Phase = Literal["scout", "web", "task", "orchestrator"]
PipelineState = Literal["complete", "asked", "cancelled", "failed", "limit"]
"""How a run ended: done; with a question; by its person; by an error; at a limit of the owner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseProgress(BaseEvent):
    """Say in words how far a phase is."""

    kind: ClassVar[str] = "progress"
    phase: Phase
    state: Literal["started", "going_on", "ended"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionEvent(BaseEvent):
    """Show what exploring chose, with the reason for each note."""

    kind: ClassVar[str] = "selection"
    scout: dict[str, JSONValue]
    """As `knapper.agents.pipeline.records.ScoutResult` shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesEvent(BaseEvent):
    """Show what the web gave."""

    kind: ClassVar[str] = "sources"
    web: dict[str, JSONValue]
    """As `knapper.agents.pipeline.records.WebResult` shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEvent(BaseEvent):
    """Show the context that the task is done with: its notes, why each, and what the limit left out."""

    kind: ClassVar[str] = "context"
    context: dict[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(BaseEvent):
    """Ask the surface to open a note for the person; nothing is changed by it."""

    kind: ClassVar[str] = "navigate"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(BaseEvent):
    """Tell the person something that they should know."""

    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Debug(BaseEvent):
    """Show what a model was given and said, for whoever asked to see it."""

    kind: ClassVar[str] = "debug"
    phase: Phase
    title: str
    text: str
    """Readable: JSON over several lines, prompts as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome(BaseEvent):
    """End a run, with all that it came to."""

    kind: ClassVar[str] = "outcome"
    run_id: str
    state: PipelineState
    answer: str
    """Of the task; of the other agents where the task wasn't to be done."""
    pipeline: dict[str, JSONValue]
    """As `knapper.agents.pipeline.edits.PipelineContext` shows it."""
    context: dict[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    proposed_edits: list[JSONValue] = field(default_factory=list[JSONValue])
    edit_results: dict[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    proposals: list[JSONValue] = field(default_factory=list[JSONValue])
    """Ids: the one that was made, and those whose waiting blocks were changed."""
    opened: list[JSONValue] = field(default_factory=list[JSONValue])
    citations: list[JSONValue] = field(default_factory=list[JSONValue])
    removed: list[JSONValue] = field(default_factory=list[JSONValue])
    """Citations that were dropped, each with the reason."""
    question: dict[str, JSONValue] | None = None
    """What the person is asked; the run goes on with the answer."""
    notices: list[JSONValue] = field(default_factory=list[JSONValue])
    usage: dict[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    model: str = ""
    session_id: str = ""
    error: dict[str, JSONValue] | None = None


PipelineEvent: TypeAlias = (
    Event | PhaseProgress | SelectionEvent | SourcesEvent | ContextEvent | Navigate | Notice | Debug | PipelineOutcome
)
