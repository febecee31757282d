"""Explore the vault with a model, and keep the notes that it selected last."""

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage
from pydantic_ai.usage import RunUsage

from knapper.agents import loop, prompting, toolset
from knapper.agents.events import Round
from knapper.agents.loop import EventSink, LoopProgress, LoopTask, Question, StageAgent, StageSpec
from knapper.agents.model.replies import Arguments
from knapper.agents.pipeline import context
from knapper.agents.pipeline.records import (
    CONFIDENCES,
    Confidence,
    NoteSelectionMetadata,
    ScoutEnd,
    ScoutResult,
    ScoutSettings,
    UserQuestion,
)
from knapper.agents.pipeline.scopes import ASK_USER, SCOUT_TOOLS, UPDATE_SELECTION
from knapper.agents.toolset import LOOP_TOOLS, ToolHandler
from knapper.errors import KnapError
from knapper.index.words.fulltext import MatchPlace
from knapper.jsontypes import JSONValue, loads, object_or_empty, objects_in, strings_in
from knapper.tools import notes
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.vault import parser, walk
from knapper.vault.paths import NotePath

_MAX_SUMMARY_STEPS: Final = 40
"""Steps that the summary lists."""
_MAX_REASON: Final = 2_000
_MATCH_PLACES: Final[Mapping[str, MatchPlace]] = {"title": "title", "heading": "heading", "content": "content"}
_SCORING_TOOLS: Final = frozenset({"search_semantic", "search_task_relevant"})


@dataclass(slots=True)
class Exploration:
    """The state of an exploration, which is stored as JSON while the run pauses."""

    known: dict[str, NoteSelectionMetadata] = field(default_factory=dict[str, NoteSelectionMetadata])
    """Metadata of the notes seen so far, by path."""
    selected: list[str] = field(default_factory=list[str])
    reasoning: str = ""
    confidence: Confidence = "exploring"
    trail: list[str] = field(default_factory=list[str])
    question: UserQuestion | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held while a tool's answer is recorded, since tools run in parallel threads."""

    def record(self, name: str, arguments: Arguments, answer: Answer) -> None:
        """Record from a tool's answer why its notes are relevant."""
        with self._lock:
            if answer.get("success") is False:
                self._step(f"{name}: {answer.get('error', 'failed')}")
                return
            rows = objects_in(answer.get("results"))
            for row in rows:
                if path := str(row.get("path", "")):
                    self.known[path] = _add_reasons(self._metadata(path), name, row)
            if name == "fetch_note":
                path = str(answer.get("path", ""))
                self.known[path] = replace(self._metadata(path), fetched=True)
                self._step(f"read {path}")
            else:
                about = next((str(arguments[key]) for key in _SUBJECT_ARGUMENTS if arguments.get(key)), "")
                self._step(f"{name}{f' {about[:80]!r}' if about else ''}: {answer.get('total', len(rows))} found")

    def update(self, context: Context, arguments: Arguments, max_notes: int) -> Answer:
        """Replace the selection; paths that aren't notes are left out and reported.

        Args:
            context: The vault, as the agent sees it.
            arguments: The call's arguments.
            max_notes: How many notes may be selected.
        """
        chosen_paths: list[str] = []
        unknown: list[JSONValue] = []
        value = arguments.get("selected_paths", arguments.get("selectedPaths"))
        for raw in [value] if isinstance(value, str) else strings_in(value):
            try:
                path = context.view.locate(raw)
                if walk.kind_of(path) == "attachment":
                    unknown.append({"path": raw, "error": "it isn't a note"})
                elif path not in chosen_paths:
                    chosen_paths.append(path)
            except KnapError as error:
                unknown.append({"path": raw, "error": error.message, "hint": error.hint})
        self.selected = chosen_paths[:max_notes]
        self.reasoning = str(arguments.get("reasoning", ""))[:_MAX_REASON]
        self.confidence = _read_confidence(arguments.get("confidence"))
        reasons = arguments.get("reasons")
        for path, why in reasons.items() if isinstance(reasons, dict) else ():
            if path in self.selected:
                self.known[path] = replace(self._metadata(path), reason=str(why)[:300])
        self._step(f"notes chosen: {len(self.selected)} ({self.confidence})")
        dropped = len(chosen_paths) - len(self.selected)
        unread: list[JSONValue] = [path for path in self.selected if not self._metadata(path).fetched]
        answer: Answer = {"success": True, "selected": [*self.selected], "confidence": self.confidence}
        if unknown:
            answer["not_there"] = unknown
        if dropped:
            answer["message"] = f"only {max_notes} notes may be chosen: the last {dropped} were left out"
        if unread and self.confidence != "done":
            answer["not_read_yet"] = unread
        return answer

    def ask(self, arguments: Arguments) -> Answer:
        """Record a question to the person.

        Raises:
            BadInput: It is empty, or another one is waiting.
        """
        question, options = toolset.read_question(arguments)
        toolset.check_question(question, is_first=self.question is None)
        self.question = UserQuestion(question=question, options=options)
        self._step(f"asked: {self.question.question}")
        return {"success": True, "message": "The question is put to the person; the answer comes next."}

    def chosen(self) -> tuple[NoteSelectionMetadata, ...]:
        """Return the selection, with the metadata of each note."""
        return tuple(self._metadata(path) for path in self.selected)

    def summary(self) -> str:
        """Return the steps of the exploration in one line."""
        left_out = len(self.trail) - _MAX_SUMMARY_STEPS
        return "; ".join(self.trail[:_MAX_SUMMARY_STEPS]) + (f"; and {left_out} more steps" if left_out > 0 else "")

    def dump(self) -> str:
        """Return the state as JSON."""
        known = {path: asdict(one) for path, one in self.known.items()}
        return json.dumps(
            {
                "known": known,
                "selected": self.selected,
                "reasoning": self.reasoning,
                "confidence": self.confidence,
                "trail": self.trail,
            },
            ensure_ascii=False,
        )

    def _metadata(self, path: str) -> NoteSelectionMetadata:
        return self.known.get(path) or NoteSelectionMetadata(path=NotePath(path))

    def _step(self, text: str) -> None:
        self.trail.append(" ".join(text.split()))


_SUBJECT_ARGUMENTS: Final = ("query", "task", "path", "folder", "tag", "prefix")


_KNOWN_ADAPTER: Final = TypeAdapter(dict[str, NoteSelectionMetadata])


def _add_reasons(known: NoteSelectionMetadata, tool: str, row: Mapping[str, JSONValue]) -> NoteSelectionMetadata:
    """Return a note's metadata with the reasons that a row of a tool's answer adds."""
    cosine, match, depth = row.get("cosine"), row.get("match"), row.get("depth")
    # Not the score, which is relative: the best of a search has always the same.
    if tool in _SCORING_TOOLS and isinstance(cosine, int | float):
        known = replace(known, semantic_score=max(known.semantic_score or 0.0, min(float(cosine), 1.0)))
    if tool == "search_keyword" and isinstance(match, str) and match in _MATCH_PLACES:
        known = replace(known, keyword_match=_MATCH_PLACES[match])
    if tool == "get_links":
        depth = 1
    if isinstance(depth, int):
        known = replace(known, link_depth=min(known.link_depth or depth, depth))
    return known


def load_exploration(text: str) -> Exploration:
    """Read a state that `Exploration.dump` wrote."""
    state = object_or_empty(loads(text))
    return Exploration(
        known=_KNOWN_ADAPTER.validate_python(state["known"]),
        selected=strings_in(state["selected"]),
        reasoning=str(state["reasoning"]),
        confidence=_read_confidence(state["confidence"]),
        trail=strings_in(state["trail"]),
    )


def _read_confidence(value: object) -> Confidence:
    word = str(value).strip().lower()
    return word if word in CONFIDENCES else "exploring"


_MAX_NOTE_CHARS: Final = 12_000
_MAX_LISTED: Final = 100
_MAX_TAGS: Final = 300
_MAX_CURRENT_LINES: Final = 120
_LISTING_TOOLS: Final = frozenset({"list_notes", "view_all_notes", "explore_vault", "list_all_tags", "get_links"})
_UPDATE_PROPERTIES: Final[dict[str, Any]] = {
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
_UPDATE_DEFINITION: Final = toolset.define_tool(
    UPDATE_SELECTION,
    "Say which notes you would hand over now. Call it in every round.",
    _UPDATE_PROPERTIES,
    "selected_paths",
    "reasoning",
    "confidence",
)
SCOUT: Final = StageSpec(
    prompt="scout",
    tools=SCOUT_TOOLS,
    gives=(_UPDATE_DEFINITION, *(one for one in LOOP_TOOLS if one.name == ASK_USER)),
    limits="You have {0.rounds} rounds of tool calls, and may choose at most {0.notes} notes.",
    answer_chars=16_000,
    spared=frozenset({ASK_USER}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutTask:
    """A search for notes, or the continuation of one after a pause."""

    task: str
    current: str = ""
    """The open note; empty for none."""
    state: Exploration = field(default_factory=Exploration)
    history: Sequence[ModelMessage] = field(default=(), repr=False)
    """The conversation so far."""
    rounds: int = 0
    """Rounds that are used already."""
    answer: str = ""
    """The person's answer to the question that it paused with."""


class ScoutRun:
    """The exploration for one task; made anew for each."""

    def __init__(self, agent: StageAgent[ScoutSettings], context: Context, task: ScoutTask) -> None:
        """Prepare the exploration.

        Args:
            agent: The model and its settings.
            context: The vault, as the agent sees it.
            task: The task, or the state to continue from.
        """
        self._agent = agent
        # Calls that run in parallel or in a row then share one refresh of the index.
        self._context = context.with_shared_refresh()
        self._task = task
        self.state = task.state
        self.state.question = None
        # It asked a question in the same round in which it was done; the answer may change the selection.
        if self.state.confidence == "done":
            self.state.confidence = "confident"
        self.progress = LoopProgress(rounds=task.rounds, messages=list(task.history))
        self.usage = RunUsage()
        self.ended: ScoutEnd = "cancelled"
        """How the exploration ended; *cancelled* until it has."""

    async def run(self, emit: EventSink) -> ScoutResult:
        """Explore and report events; a cancelled exploration leaves its last selection in `result`.

        Args:
            emit: Receives each event.
        """
        work = await asyncio.to_thread(self._work, emit)
        scout, task = self._agent, self._task
        # What the rewritten task finds is shown beforehand, where that is wanted and the exploration just begins.
        if scout.rewriter is not None and not task.history:
            question = Question(text=task.task)
            answer = await loop.find_by_rewriting(scout.rewriter, scout, self.usage, question, self._context, emit)
            self.state.record(loop.STEP, {"query": task.task}, answer)
            found = loop.describe(answer, work.session.results.mark)
            work = replace(work, system="\n\n".join(filter(None, (work.system, found))))
        ended = await loop.run_loop(work, self.progress, self.usage, emit)
        if self.state.question and ended != "timeout":
            self.ended = "asked"
        else:
            self.ended = "rounds" if ended == "calls" else ended  # a scout has no limit of calls besides
        return self.result()

    def result(self) -> ScoutResult:
        """Return the result so far: the agent's last selection."""
        return ScoutResult(
            selected_notes=self.state.chosen(),
            reasoning=self.state.reasoning,
            confidence=self.state.confidence,
            exploration_summary=self.state.summary(),
            rounds=self.progress.rounds,
            tokens_used=self.usage.input_tokens + self.usage.output_tokens,
            ended=self.ended,
        )

    def _work(self, emit: EventSink) -> LoopTask:
        settings, state = self._agent.settings, self.state
        _ = self._context.freshen()
        history, mark = self._task.history, prompting.new_mark()
        handles: dict[str, ToolHandler] = {
            UPDATE_SELECTION: lambda arguments: state.update(self._context, arguments, settings.notes)
        }
        if ASK_USER in settings.tools:
            handles[ASK_USER] = state.ask
        work = self._agent.make_task(
            f"The person answers: {self._task.answer}" if history else self._prompt(mark),
            self._context,
            mark,
            handles,
            lambda: state.question is not None or state.confidence == "done",
        )
        work.session.on_answer = state.record
        work.session.argument_limits = {
            **{name: {"limit": _MAX_LISTED} for name in _LISTING_TOOLS},
            "search_keyword": {"limit": settings.keyword_limit},
            "fetch_note": {"length": _MAX_NOTE_CHARS},
        }

        def tell_round(number: int) -> None:
            emit(Round(phase="scout", number=number, limit=settings.rounds))

        system = work.system
        if settings.show_tags:
            listing = notes.list_tags(self._context, limit=_MAX_TAGS)
            system += f"\n\n## All tags\n\n{prompting.escape(listing['results'])}"
        return replace(work, system=system, on_round=tell_round, history=history)

    def _prompt(self, mark: str) -> str:
        """Return the task, with the beginning of the open note where that can be read."""
        task = f"The task: {self._task.task}"
        if not self._task.current:
            return task
        try:
            note = self._context.view.read(self._context.view.locate(self._task.current))
        except KnapError:
            return task
        lines = context.number_lines(parser.decode_text(note.raw))[:_MAX_CURRENT_LINES]
        head = f"the open note: {prompting.escape(str(note.path))}\n\n"
        return f"{task}\n\n" + prompting.enclose("note", head + "\n".join(lines), mark)
