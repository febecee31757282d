"""Run the pipeline over a small vault with scripted models."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.orchestrator import Agents
from knapper.agents.pipeline.pipeline import PipelineRun, ResumePoint
from knapper.agents.pipeline.records import (
    NoteSelectionMetadata,
    PipelineEvent,
    PipelineOutcome,
)
from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from tests.agents import scripted
from tests.agents.scripts import Cast
from tests.tools.opened import Opener


@dataclass
class Ended:
    outcome: PipelineOutcome
    run: PipelineRun
    events: list[PipelineEvent] = field(default_factory=list[PipelineEvent])

    @property
    def codes(self) -> list[str]:
        """Give the codes of the edits that couldn't be made."""
        return [one.code for one in self.run.done.results.failures] if self.run.done else []

    @property
    def chosen(self) -> tuple[NoteSelectionMetadata, ...]:
        """Give what the scout chose."""
        assert self.run.pipeline.scout is not None
        return self.run.pipeline.scout.selected_notes

    @property
    def paths(self) -> list[str]:
        """Give the paths that the scout chose."""
        return [one.path for one in self.chosen]

    def of(self, kind: str) -> list[PipelineEvent]:
        return [event for event in self.events if event.kind == kind]


def agents(cast: Cast, **more: Any) -> Agents:  # noqa: ANN401 - any of the settings
    own = {name: more.pop(name) for name in ("rewriter", "meter") if name in more}
    return replace(Agents(chat=scripted.chat(cast.open(), **own)), **more)


def context(opener: Opener, client: str | ClientSettings = "agent") -> Context:
    return opener.open(client, SubmitOptions(run="run-1"))


def run(given: Agents, context: Context, request: TaskRequest, going: ResumePoint | None = None) -> Ended:
    made = PipelineRun(given, context, request, going)
    events: list[PipelineEvent] = []
    asyncio.run(made.run(events.append))
    return Ended(outcome=made.outcome(), run=made, events=events)


def do(opener: Opener, cast: Cast, task: str = "do it", /, **more: Any) -> Ended:  # noqa: ANN401 - any of a request's fields
    """Run a request as the agent; settings of the agents under ``agents_``."""
    own = {name.removeprefix("agents_"): more.pop(name) for name in list(more) if name.startswith("agents_")}
    client = more.pop("client", "agent")
    with context(opener, client) as opened:
        return run(agents(cast, **own), opened, TaskRequest(task=task, **more))


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def listed(given: JSONValue) -> list[JSONValue]:
    return given if isinstance(given, list) else []


def rows(given: Sequence[JSONValue]) -> list[dict[str, JSONValue]]:
    return [one for one in given if isinstance(one, dict)]


def texts(rows: Sequence[object]) -> str:
    return "\n".join(map(str, rows))
