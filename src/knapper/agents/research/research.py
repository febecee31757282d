"""Let a model search the web where the notes don't answer the task."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import rounds, toolbox, untrusted
from knapper.agents.events import Event
from knapper.agents.research.definitions import DEFINITIONS
from knapper.agents.research.desk import Desk
from knapper.agents.research.records import EVALUATE, FINALIZE, SEARCH, SELECT, Ended, ResearchSettings, WebResult
from knapper.agents.rounds import Progress, Work
from knapper.agents.toolbox import Tool
from knapper.tools.context import Context

MAX_CHARS: Final = 90_000
"""Characters of a tool's answer that the model is given at once: pages are cut to their budget before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Researcher:
    """Hold what searches the web."""

    model: Model
    prompt: str
    settings: ResearchSettings
    limits: UsageLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Say what is looked for, and what is known of it."""

    task: str
    notes: str
    """The notes as blocks; empty for none."""
    mark: str


class Research:
    """Search for one task; made anew for each."""

    def __init__(self, researcher: Researcher, context: Context, query: Query) -> None:
        """Take the task.

        Args:
            researcher: What searches.
            context: The vault, as the agent sees it; its web is used.
            query: What is looked for.
        """
        self._researcher = researcher
        self._query = query
        self.desk = Desk(context=context, settings=researcher.settings)
        self.progress = Progress()
        self.usage = RunUsage()
        self.ended: Ended = "cancelled"
        """How it ended; *cancelled* until it has."""

    async def run(self, tell: Callable[[Event], None]) -> WebResult:
        """Search, telling what happens; a cancelled search leaves what it has in `result`.

        Args:
            tell: Hears each event.
        """
        try:
            async with asyncio.timeout(self._researcher.settings.timeout_s):
                self.ended = await rounds.carry_out(self._work(), self.progress, self.usage, tell)
        except TimeoutError:
            self.ended = "timeout"
        return self.result()

    def result(self) -> WebResult:
        """Give what there is."""
        desk = self.desk
        return WebResult(
            search_performed=bool(desk.queries),
            evaluation_reasoning=desk.reasoning or ("" if desk.evaluated else self.progress.text[:2_000]),
            search_needed=desk.needed,
            search_queries=tuple(desk.queries),
            sources=desk.sources(),
            findings=desk.findings,
            tokens_used=self.usage.input_tokens + self.usage.output_tokens,
            ended=self.ended,
        )

    def _work(self) -> Work:
        desk, mark = self.desk, self._query.mark or untrusted.new_mark()
        handles = {EVALUATE: desk.evaluate, SEARCH: desk.search, SELECT: desk.select, FINALIZE: desk.finalize}
        tools = [Tool(definition=DEFINITIONS[name], handle=handle) for name, handle in handles.items()]
        settings = self._researcher.settings
        limits = (
            f"A search gives at most {settings.snippet_limit} results. You may read at most {settings.fetch_limit} "
            f"pages, {settings.token_budget:,} tokens in all."
        )
        notes = self._query.notes or "(There are no notes for it.)"
        return Work(
            model=self._researcher.model,
            system=f"{self._researcher.prompt.strip()}\n\n## Limits\n\n{limits}",
            prompt=f"The notes:\n\n{notes}\n\nThe task: {self._query.task}",
            box=toolbox.box(tools, mark=mark, max_chars=MAX_CHARS),
            rounds=settings.rounds,
            is_done=lambda: desk.is_done,
            limits=self._researcher.limits,
        )
