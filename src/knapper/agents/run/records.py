"""Say what a run is: a task, how it is to be done, within which limits, and what it came to."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, cast

from pydantic import JsonValue

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools.context import ScriptProfile

RunState = Literal["pending", "running", "complete", "partial", "failed", "cancelled", "interrupted"]
"""*interrupted* is a run whose process ended before it did."""

DEEPEST: Final = 8
MOST_NODES: Final = 500
MOST_CHARS: Final = 50_000
"""Characters of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Say how much a run may take; 0 tokens and cents are no limit.

    Raises:
        BadInput: A number is out of its range.
    """

    depth: int = 3
    """Levels below the task."""
    nodes: int = 50
    """The task's own among them."""
    seconds: float = 1_200.0
    """From its start, or from when it goes on."""
    tokens: int = 1_000_000
    cents: int = 0
    """Of a US dollar, where prices are known."""
    parallel: int = 4
    """Nodes that retrieve or write at the same time."""
    kept: float = 0.25
    """The share that is kept for the answer."""

    def __post_init__(self) -> None:
        """Refuse what can't be a limit."""
        _check("depth", self.depth, 0, DEEPEST)
        _check("nodes", self.nodes, 1, MOST_NODES)
        _check("parallel", self.parallel, 1, 64)
        if not self.seconds > 0:
            raise BadInput(f"the time limit is {self.seconds:g} s", hint="give more than 0")
        if self.tokens < 0 or self.cents < 0:
            raise BadInput("a limit of tokens or cents is below 0", hint="give 0 for no limit")
        if not 0 < self.kept < 1:
            raise BadInput(f"the share kept for the answer is {self.kept:g}", hint="give more than 0 and less than 1")

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "depth": self.depth,
            "nodes": self.nodes,
            "seconds": self.seconds,
            "tokens": self.tokens,
            "cents": self.cents,
            "parallel": self.parallel,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Say what is to be done.

    Raises:
        BadInput: The task is empty or too long.
    """

    task: str
    strategy: str = "auto"
    """``auto`` lets the model choose one."""
    code_mode: bool = True
    """Scripts retrieve; otherwise search does."""
    profile: ScriptProfile = "strict"
    """What else the scripts may read."""
    fresh: bool = False
    """Take nothing from the cache."""
    limits: Limits = field(default_factory=Limits)
    client: str = "cli"
    """On whose behalf; the run sees and changes no more than they may."""
    also: tuple[str, ...] = ()
    """Other vaults that are looked through as well, by name."""

    def __post_init__(self) -> None:
        """Refuse what can't be a task."""
        if not self.task.strip():
            raise BadInput("the task is empty", hint="say what is to be done")
        if len(self.task) > MOST_CHARS:
            raise BadInput(f"the task has {len(self.task):,} characters", hint=f"give at most {MOST_CHARS:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Hold a run without its nodes."""

    id: str
    order: Order
    model: str
    state: RunState
    created: datetime
    updated: datetime
    answer: str = ""
    citations: tuple[dict[str, JsonValue], ...] = ()
    removed: tuple[dict[str, JsonValue], ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it isn't complete."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        citations: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.citations]
        removed: list[JSONValue] = [cast("dict[str, JSONValue]", one) for one in self.removed]
        return {**self.brief(), "answer": self.answer, "citations": citations, "removed": removed}

    def brief(self) -> dict[str, JSONValue]:
        """Shape what a list of runs shows."""
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


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadInput(f"{name} is {value}", hint=f"give {least} to {most}")
