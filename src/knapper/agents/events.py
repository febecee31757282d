"""Define the events of a model's answer, in the shapes that every surface streams.

``Text(text="Hi", step=1).as_dict()`` gives ``{"type": "text", "text": "Hi", "step": 1}``. A turn is any number of
these, and always ends with `Done`; `Error` comes before it where something went wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias, cast

from knapper.jsontypes import JSONValue

TurnState = Literal["complete", "limit", "asked", "cancelled", "failed"]
"""How a turn ended: answered; stopped at a limit; with a question; by its person; by an error."""


class BaseEvent:
    """The shape that all kinds of events share."""

    __slots__ = ()
    kind: ClassVar[str]

    def as_dict(self) -> dict[str, JSONValue]:
        """Return the event in the shape that every surface shows."""
        shape: dict[str, JSONValue] = {"type": self.kind}
        for one in fields(self):  # pyright: ignore[reportArgumentType] - subclasses are dataclasses
            value = cast("JSONValue | tuple[JSONValue, ...]", getattr(self, one.name))
            shape[one.name] = list(value) if isinstance(value, tuple) else value
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(BaseEvent):
    """Text that the model adds to a reply."""

    kind: ClassVar[str] = "text"
    text: str
    step: int
    """The number of the reply that it belongs to, from 1; the last one holds the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(BaseEvent):
    """A call of a tool by the model."""

    kind: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: dict[str, JSONValue]
    """The arguments after repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(BaseEvent):
    """The answer of a tool."""

    kind: ClassVar[str] = "tool_result"
    id: str
    name: str
    success: bool
    summary: str
    """One line for a person: ``5 results``, or the error."""
    answer: Mapping[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    """The tool's full answer; the model may have been shown less."""
    chars: int = 0
    truncated: bool = False

    def as_dict(self) -> dict[str, JSONValue]:
        """Return the event in the shape that every surface shows."""
        return {**BaseEvent.as_dict(self), "answer": dict(self.answer)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(BaseEvent):
    """The beginning of a round of tool calls; those that follow belong to it."""

    kind: ClassVar[str] = "round"
    phase: str
    """Which agent's."""
    number: int
    """From 1; a question to the person, or reading on, begins none."""
    limit: int
    """How many there may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalEvent(BaseEvent):
    """A proposal of the turn, which a person can accept by its id and digest."""

    kind: ClassVar[str] = "proposal"
    proposal: dict[str, JSONValue]
    """As `knapper.tools.proposals.show_proposal` returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionEvent(BaseEvent):
    """A question to the person; their next message in the session answers it."""

    kind: ClassVar[str] = "question"
    id: str
    question: str
    options: list[JSONValue] = field(default_factory=list[JSONValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(BaseEvent):
    """What the turn has used so far."""

    kind: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    requests: int
    cost_usd: float | None
    """None where the model's price isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(BaseEvent):
    """An error that ended the turn."""

    kind: ClassVar[str] = "error"
    error: str
    code: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(BaseEvent):
    """The end of the turn, with its whole outcome."""

    kind: ClassVar[str] = "done"
    state: TurnState
    answer: str
    """The answer with verified citations only; the streamed text may differ from it."""
    citations: list[JSONValue] = field(default_factory=list[JSONValue])
    removed: list[JSONValue] = field(default_factory=list[JSONValue])
    """Citations that were removed, each with the reason."""
    tools: list[JSONValue] = field(default_factory=list[JSONValue])
    proposals: list[JSONValue] = field(default_factory=list[JSONValue])
    """Ids of the turn's proposals."""
    changes: list[JSONValue] = field(default_factory=list[JSONValue])
    """Ids of the changes that were applied."""
    usage: dict[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    model: str = ""
    session_id: str = ""
    notes: list[JSONValue] = field(default_factory=list[JSONValue])


Event: TypeAlias = Text | ToolCall | ToolResult | Round | ProposalEvent | QuestionEvent | Usage | Error | Done
