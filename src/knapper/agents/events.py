"""Name what happens while a model answers, in the shapes that every surface streams.

``Text(text="Hi", step=1).as_dict()`` gives ``{"type": "text", "text": "Hi", "step": 1}``. A turn is any number of
these, and `Done` at the end, always; `Error` comes before it where something went wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias, cast

from knapper.jsontypes import JSONValue

TurnState = Literal["complete", "limit", "asked", "cancelled", "failed"]
"""How a turn ended: answered; stopped at a limit; with a question; by its person; by an error."""


class BaseEvent:
    """Give every kind of event one shape."""

    __slots__ = ()
    kind: ClassVar[str]

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape the event as every surface shows it."""
        shape: dict[str, JSONValue] = {"type": self.kind}
        for one in fields(self):  # pyright: ignore[reportArgumentType] - subclasses are dataclasses
            value = cast("JSONValue | tuple[JSONValue, ...]", getattr(self, one.name))
            shape[one.name] = list(value) if isinstance(value, tuple) else value
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(BaseEvent):
    """Add to what the model says."""

    kind: ClassVar[str] = "text"
    text: str
    step: int
    """Which of the turn's replies it belongs to, from 1; the last one holds the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(BaseEvent):
    """Say that the model calls a tool."""

    kind: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: dict[str, JSONValue]
    """As they are used, after repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(BaseEvent):
    """Say what a tool answered."""

    kind: ClassVar[str] = "tool_result"
    id: str
    name: str
    success: bool
    summary: str
    """One line for a person: ``5 results``, or the error."""
    answer: Mapping[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    """All that the tool answered; the model may have been given less."""
    chars: int = 0
    truncated: bool = False

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape the event as every surface shows it."""
        return {**BaseEvent.as_dict(self), "answer": dict(self.answer)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalEvent(BaseEvent):
    """Hand over a proposal that the turn made; a person can accept it by its id and digest."""

    kind: ClassVar[str] = "proposal"
    proposal: dict[str, JSONValue]
    """As `knapper.tools.proposals.show_proposal` gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionEvent(BaseEvent):
    """Ask the person; their next message in the session is the answer."""

    kind: ClassVar[str] = "question"
    id: str
    question: str
    options: list[JSONValue] = field(default_factory=list[JSONValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(BaseEvent):
    """Tell what the turn has used so far."""

    kind: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    requests: int
    cost_usd: float | None
    """None where the model's price isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(BaseEvent):
    """Say what went wrong."""

    kind: ClassVar[str] = "error"
    error: str
    code: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(BaseEvent):
    """End the turn, with all that it came to."""

    kind: ClassVar[str] = "done"
    state: TurnState
    answer: str
    """With citations that hold only; what was streamed may differ from it."""
    citations: list[JSONValue] = field(default_factory=list[JSONValue])
    removed: list[JSONValue] = field(default_factory=list[JSONValue])
    """Citations that were dropped, each with the reason."""
    tools: list[JSONValue] = field(default_factory=list[JSONValue])
    proposals: list[JSONValue] = field(default_factory=list[JSONValue])
    """Ids."""
    changes: list[JSONValue] = field(default_factory=list[JSONValue])
    """Ids of what was applied."""
    usage: dict[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    model: str = ""
    session_id: str = ""
    notes: list[JSONValue] = field(default_factory=list[JSONValue])


Event: TypeAlias = Text | ToolCall | ToolResult | ProposalEvent | QuestionEvent | Usage | Error | Done
