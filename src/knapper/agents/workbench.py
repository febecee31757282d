"""Hold what the tools of one turn share, and what came of their calls."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from anyio import CapacityLimiter

from knapper.agents import untrusted
from knapper.agents.events import Event, Question
from knapper.agents.results import Results
from knapper.jsontypes import JSONValue
from knapper.tools.context import CancelSignal, Context
from knapper.tools.registry import ToolSpec

_THREADS: Final = 4
"""Tools of one turn that run at once."""


@dataclass(slots=True, kw_only=True)
class Workbench:
    """Hold what the tools of one turn share."""

    rows: Mapping[str, ToolSpec]
    context: Context
    results: Results
    listed: set[str]
    """Names of the table's tools that the model is shown; those that it finds are added."""
    brief: bool = False
    """Show only the parameters that a model can't do without."""
    told: list[Event] = field(default_factory=list[Event])
    """What happened that isn't streamed yet."""
    answers: dict[str, Mapping[str, JSONValue]] = field(default_factory=dict[str, Mapping[str, JSONValue]])
    """All that the tools answered, by the calls' ids."""
    cut: set[str] = field(default_factory=set[str])
    """Ids of calls whose arguments end in the middle; they change nothing."""
    used: list[JSONValue] = field(default_factory=list[JSONValue])
    proposals: list[str] = field(default_factory=list[str])
    changes: list[str] = field(default_factory=list[str])
    question: Question | None = None
    """What the person is asked; the turn ends with it."""
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_THREADS))
    """The turn's own, so that slow tools of one turn keep no other one waiting."""
    writing: set["asyncio.Task[str]"] = field(default_factory=set["asyncio.Task[str]"])
    """Calls that may change something; one that has begun is brought to its end, even where the turn is cancelled."""
    cancelling: CancelSignal = field(default_factory=CancelSignal)
    """Tells calls that can be ended at any time, such as scripts, that the turn is cancelled."""
    _last: str = ""

    async def settle(self) -> None:
        """End what can be ended, and wait until no call changes anything any more."""
        self.cancelling.tell()
        if self.writing:
            _ = await asyncio.wait(self.writing)

    def repeats(self, name: str, arguments: Mapping[str, JSONValue]) -> bool:
        """Tell whether a call is the one before it once more."""
        this = json.dumps([name, arguments], sort_keys=True, ensure_ascii=False)
        repeated = this == self._last
        self._last = this
        return repeated


def fresh(rows: Mapping[str, ToolSpec], context: Context, *, max_chars: int, essential: bool = False) -> Workbench:
    """Begin a bench.

    Args:
        rows: The tools that may be called.
        context: The vault, as the agent sees it.
        max_chars: How much of a result the model is given at once.
        essential: Show the essential ones only, until others are found.
    """
    listed = {name for name, row in rows.items() if row.profile == "essential" or not essential}
    results = Results(mark=untrusted.new_mark(), max_chars=max_chars)
    cancelling = CancelSignal()
    held = replace(context, on_cancel=cancelling.on)
    return Workbench(rows=rows, context=held, results=results, listed=listed, brief=essential, cancelling=cancelling)


def summary(answer: Mapping[str, JSONValue]) -> str:
    """Say in a line for a person what a tool answered."""
    if answer.get("success") is False:
        return str(answer.get("error", "it failed"))
    results = answer.get("results")
    if isinstance(results, list):
        total = answer.get("total", len(results))
        return f"{total} result{'' if total == 1 else 's'}"
    told = [str(answer[name]) for name in ("status", "path", "message") if answer.get(name)]
    return ": ".join(told[:2]) or "done"
