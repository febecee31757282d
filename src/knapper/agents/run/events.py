"""Name what happens while a run goes on, in the shapes that every surface streams.

``NodeChanged(...).as_dict()`` gives ``{"type": "node", "node": {"id": "1", "state": "done", …}}``. A run is any number
of these, `knapper.agents.events.Usage` among them, and `RunDone` at the end, always.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from knapper.agents.events import Error, Happening, Usage
from knapper.agents.run.records import RunState
from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Happening):
    """Say that a run begins, or goes on."""

    kind: ClassVar[str] = "run_started"
    run: dict[str, JSONValue]
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanged(Happening):
    """Say how a node stands now."""

    kind: ClassVar[str] = "node"
    node: dict[str, JSONValue]
    """As in a list of nodes."""
    doing: str = ""
    """What it is at: deciding, planning, retrieving, answering, joining; empty where it has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Happening):
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
class RunDone(Happening):
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


RunEvent: TypeAlias = RunStarted | NodeChanged | Checkpoint | Usage | Error | RunDone
TellRun = Callable[[RunEvent], None]
"""Takes an event; called in the run's own event loop."""
