"""Say what answers in a chat, and what it is asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model

from knapper.agents.events import Event
from knapper.agents.prompting import Clock, Prompts
from knapper.agents.results import MAX_CHARS
from knapper.agents.usage import Meter
from knapper.tools.registry import ToolSpec

MAX_ITERATIONS: Final = 20
"""Rounds of tool calls in a turn."""
Tell = Callable[[Event], None]
"""Takes an event; called in the turn's own task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Hold what answers: a model, and how it is led."""

    model: Model
    name: str
    """The model's, as the person wrote it."""
    rows: Sequence[ToolSpec]
    """The tools that the model may call."""
    prompts: Prompts
    now: Clock
    """The local time."""
    meter: Meter | None = None
    max_iterations: int = MAX_ITERATIONS
    result_chars: int = MAX_CHARS
    context_tokens: int = 24_000
    """How long a conversation may get before it is summed up."""
    essential: bool = False
    """Show the model the essential tools only, until it finds others."""
    may_write: bool = True
    telemetry: bool = False
    """Trace with OpenTelemetry, without what is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Hold what the person says, and what it goes on from."""

    text: str
    run: str
    """The session's or run's id."""
    active_file: str = ""
    """The note that the person looks at; empty for none."""
    history: Sequence[ModelMessage] = field(default=(), repr=False)
