"""Name what happens in a run of several agents, beside what happens in one."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from knapper.agents.events import Event, Happening
from knapper.agents.pipeline.records import Phase, State
from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Happening):
    """Say in words how far a phase is."""

    kind: ClassVar[str] = "progress"
    phase: Phase
    state: Literal["started", "going_on", "ended"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Happening):
    """Show what exploring chose, with the reason for each note."""

    kind: ClassVar[str] = "selection"
    scout: dict[str, JSONValue]
    """As `knapper.agents.scout.records.ScoutResult` shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources(Happening):
    """Show what the web gave."""

    kind: ClassVar[str] = "sources"
    web: dict[str, JSONValue]
    """As `knapper.agents.research.records.WebResult` shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered(Happening):
    """Show the context that the task is done with: its notes, why each, and what the limit left out."""

    kind: ClassVar[str] = "context"
    context: dict[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(Happening):
    """Ask the surface to open a note for the person; nothing is changed by it."""

    kind: ClassVar[str] = "navigate"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Happening):
    """Tell the person something that they should know."""

    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Debug(Happening):
    """Show what a model was given and said, for whoever asked to see it."""

    kind: ClassVar[str] = "debug"
    phase: Phase
    title: str
    text: str
    """Readable: JSON over several lines, prompts as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Happening):
    """End a run, with all that it came to."""

    kind: ClassVar[str] = "outcome"
    run_id: str
    state: State
    answer: str
    """Of the task; of the other agents where the task wasn't to be done."""
    pipeline: dict[str, JSONValue]
    """As `knapper.agents.task.records.PipelineContext` shows it."""
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
