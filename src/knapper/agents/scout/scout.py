"""Let a model explore the vault, and keep what it chose last."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import rounds, toolbox, untrusted
from knapper.agents.contexts import unified
from knapper.agents.events import Event
from knapper.agents.repair import Arguments
from knapper.agents.rounds import Progress, Work
from knapper.agents.scout.exploration import Exploration
from knapper.agents.scout.names import ASK_USER, TOOLS, UPDATE_SELECTION
from knapper.agents.scout.records import Ended, ScoutResult, ScoutSettings
from knapper.agents.synthetic import DEFINITIONS
from knapper.agents.toolbox import Tool
from knapper.errors import KnapError
from knapper.tools import notes
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.shapes import Answer
from knapper.vault import parser

MAX_CHARS: Final = 16_000
"""Characters of a tool's answer that the model is given at once."""
_READ: Final = 12_000
_LISTED: Final = 100
_TAGS: Final = 300
_CURRENT_LINES: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Say what notes are looked for, and go on where a pause was."""

    task: str
    current: str = ""
    """The open note; empty for none."""
    state: Exploration = field(default_factory=Exploration)
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    """The conversation so far."""
    rounds: int = 0
    """Used already."""
    answer: str = ""
    """What the person said to the question that it paused with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scout:
    """Hold what explores."""

    model: Model
    prompt: str
    """The system prompt's beginning."""
    rows: Mapping[str, ToolSpec]
    """The table's rows, by name."""
    settings: ScoutSettings
    limits: UsageLimits


class Trip:
    """Explore for one errand; made anew for each."""

    def __init__(self, scout: Scout, context: Context, errand: Errand) -> None:
        """Take the errand.

        Args:
            scout: What explores.
            context: The vault, as the agent sees it.
            errand: What is looked for.
        """
        self._scout = scout
        self._context = context.together()
        self._errand = errand
        self.state = errand.state
        self.state.question = None
        if self.state.confidence == "done":  # it asked with its last breath; the answer may change its mind
            self.state.confidence = "confident"
        self.progress = Progress(rounds=errand.rounds, messages=list(errand.history))
        self.usage = RunUsage()
        self.ended: Ended = "cancelled"
        """How it ended; *cancelled* until it has."""

    async def run(self, tell: Callable[[Event], None]) -> ScoutResult:
        """Explore, telling what happens; a cancelled trip leaves its last selection in `result`.

        Args:
            tell: Hears each event.
        """
        try:
            async with asyncio.timeout(self._scout.settings.timeout_s):
                work = await asyncio.to_thread(self._work)
                ended = await rounds.carry_out(work, self.progress, self.usage, tell)
            self.ended = "asked" if self.state.question else ended
        except TimeoutError:
            self.ended = "timeout"
        return self.result()

    def result(self) -> ScoutResult:
        """Give what there is: the agent's last selection."""
        return ScoutResult(
            selected_notes=self.state.chosen(),
            reasoning=self.state.reasoning,
            confidence=self.state.confidence,
            exploration_summary=self.state.summary(),
            rounds=self.progress.rounds,
            tokens_used=self.usage.input_tokens + self.usage.output_tokens,
            ended=self.ended,
        )

    def _work(self) -> Work:
        _ = self._context.freshen()
        errand, mark = self._errand, untrusted.new_mark()
        prompt = f"The person answers: {errand.answer}" if errand.history else self._prompt(mark)
        return Work(
            model=self._scout.model,
            system=self._system(),
            prompt=prompt,
            box=toolbox.box(self._tools(), mark=mark, max_chars=MAX_CHARS),
            rounds=self._scout.settings.rounds,
            is_done=lambda: self.state.question is not None or self.state.confidence == "done",
            uncounted=frozenset({ASK_USER}),
            history=errand.history,
            limits=self._scout.limits,
        )

    def _system(self) -> str:
        settings = self._scout.settings
        limits = f"You have {settings.rounds} rounds of tool calls, and may choose at most {settings.notes} notes."
        parts = [self._scout.prompt.strip(), f"## Limits\n\n{limits}"]
        if settings.show_tags:
            found = notes.list_tags(self._context, limit=_TAGS)
            parts.append(f"## All tags\n\n{untrusted.escape(found['results'])}")
        return "\n\n".join(parts)

    def _prompt(self, mark: str) -> str:
        parts = [f"The task: {self._errand.task}"]
        if self._errand.current:
            try:
                note = self._context.view.read(self._errand.current)
            except KnapError:
                return parts[0]
            lines = unified.numbered(parser.decode_text(note.raw))[:_CURRENT_LINES]
            head = f"the open note: {untrusted.escape(str(note.path))}\n\n"
            parts.append(untrusted.enclose("note", head + "\n".join(lines), mark))
        return "\n\n".join(parts)

    def _tools(self) -> list[Tool]:
        settings = self._scout.settings
        made = [Tool(definition=_UPDATE, handle=lambda given: self.state.update(self._context, given, settings.notes))]
        made += [self._of_row(name) for name in TOOLS if name in settings.tools and name in self._scout.rows]
        if ASK_USER in settings.tools:
            asking = next(one for one in DEFINITIONS if one.name == ASK_USER)
            made.append(Tool(definition=asking, handle=self.state.ask))
        return made

    def _of_row(self, name: str) -> Tool:
        def heard(arguments: Arguments, answer: Answer) -> None:
            self.state.hear(name, arguments, answer)

        return toolbox.from_row(self._scout.rows[name], self._context, heard=heard, most=self._most(name))

    def _most(self, name: str) -> dict[str, int]:
        """Tell how much a tool gives at once."""
        if name == "search_keyword":
            return {"limit": self._scout.settings.keyword_limit}
        if name == "fetch_note":
            return {"length": _READ}
        return {"limit": _LISTED} if name in _LONG else {}


_LONG: Final = frozenset({"list_notes", "view_all_notes", "explore_vault", "list_all_tags", "get_links"})
_PROPERTIES: Final[dict[str, Any]] = {
    "selected_paths": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Every note that the task needs, the most needed first; replaces the last selection.",
    },
    "reasoning": {"type": "string", "description": "Why these, in a sentence or two."},
    "confidence": {
        "type": "string",
        "enum": ["exploring", "confident", "done"],
        "description": "done ends the search.",
    },
    "reasons": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Why each is there, by path, where that isn't plain.",
    },
}
_UPDATE: Final = ToolDefinition(
    name=UPDATE_SELECTION,
    description="Say which notes you would hand over now. Call it in every round.",
    parameters_json_schema={
        "type": "object",
        "properties": _PROPERTIES,
        "required": ["selected_paths", "reasoning", "confidence"],
        "additionalProperties": False,
    },
    sequential=True,
)
