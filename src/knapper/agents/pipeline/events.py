"""Name what happens in a run of several agents, beside what happens in one."""

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias

from knapper.agents.events import Event
from knapper.agents.pipeline.records import Phase, State
from knapper.vault.outline import JSONValue


class _Event:
    """Give every kind of event one shape."""

    __slots__ = ()
    kind: ClassVar[str]

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape the event as every surface shows it."""
        return {"type": self.kind, **{one.name: getattr(self, one.name) for one in fields(self)}}  # pyright: ignore[reportArgumentType] - subclasses are dataclasses


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(_Event):
    """Say in words how far a phase is."""

    kind: ClassVar[str] = "progress"
    phase: Phase
    state: Literal["started", "going_on", "ended"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(_Event):
    """Show what exploring chose, with the reason for each note."""

    kind: ClassVar[str] = "selection"
    scout: dict[str, JSONValue]
    """As `knapper.agents.scout.records.ScoutResult` shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources(_Event):
    """Show what the web gave."""

    kind: ClassVar[str] = "sources"
    web: dict[str, JSONValue]
    """As `knapper.agents.research.records.WebResult` shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(_Event):
    """Show the context that the task is done with: its notes, why each, and what the limit left out."""

    kind: ClassVar[str] = "context"
    context: dict[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(_Event):
    """Ask the surface to open a note for the person; nothing is changed by it."""

    kind: ClassVar[str] = "navigate"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(_Event):
    """Tell the person something that they should know."""

    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Debug(_Event):
    """Show what a model was given and said, for whoever asked to see it."""

    kind: ClassVar[str] = "debug"
    phase: Phase
    title: str
    text: str
    """Readable: JSON over several lines, prompts as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(_Event):
    """End a run, with all that it came to."""

    kind: ClassVar[str] = "outcome"
    run_id: str
    state: State
    answer: str
    """Of the task; of the other agents where the task wasn't to be done."""
    pipeline: dict[str, JSONValue]
    """As `knapper.agents.pipeline.records.PipelineContext` shows it."""
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


PipelineEvent: TypeAlias = Event | Progress | Selected | Sources | Gathered | Navigate | Notice | Debug | Outcome
