"""Run the agents that a task needs, one after another, and summarize how the run ended."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields, replace
from typing import Final, Literal

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
)
from pydantic_ai.usage import RunUsage

from knapper.agents import events, prompting
from knapper.agents.events import Debug, Error, Notice
from knapper.agents.model import replies, usage
from knapper.agents.pipeline import context, orchestrator, scout
from knapper.agents.pipeline.context import TaskRequest, UnifiedContext
from knapper.agents.pipeline.edits import ChatMessage
from knapper.agents.pipeline.orchestrator import ORCHESTRATOR, Agents, PipelineStep
from knapper.agents.pipeline.records import (
    ContextEvent,
    Navigate,
    Phase,
    PhaseProgress,
    PipelineContext,
    PipelineEvent,
    PipelineOutcome,
    PipelineState,
    ScoutResult,
    SelectionEvent,
    SourcesEvent,
    TokenAccounting,
    UserQuestion,
    WebResult,
)
from knapper.agents.pipeline.scout import Exploration, ScoutRun, ScoutTask
from knapper.agents.pipeline.task import TASK, TaskAgentInput, TaskAgentResult, TaskRun
from knapper.agents.pipeline.web import WEB, WebResearch
from knapper.codemode.tasks import ModelSpend
from knapper.errors import KnapError, StorageError
from knapper.jsontypes import JSONValue, object_or_empty
from knapper.tools import answers
from knapper.tools.context import Context


@dataclass(slots=True, kw_only=True)
class PausedState:
    """The state of a run between two steps."""

    exploration: Exploration = field(default_factory=Exploration)
    messages: Sequence[ModelMessage] = ()
    """The scout's conversation; empty where it doesn't continue."""
    rounds: int = 0
    steps: list[PipelineStep] = field(default_factory=list[PipelineStep])
    web: WebResult | None = None
    spent: dict[Phase, ModelSpend] = field(default_factory=dict[Phase, ModelSpend])
    trace: Sequence[JSONValue] = ()
    """What the agents did before the pause, in order; see `knapper.agents.events`."""


_STEPS_ADAPTER = TypeAdapter(list[PipelineStep])
_SPENT_ADAPTER = TypeAdapter(dict[Phase, ModelSpend])
_SPEND_FIELDS: Final = tuple(one.name for one in fields(ModelSpend))
_WEB_ADAPTER = TypeAdapter(WebResult | None)


def dump_state(state: PausedState) -> dict[str, JSONValue]:
    """Return a state as JSON."""
    return {
        "exploration": state.exploration.dump(),
        "messages": ModelMessagesTypeAdapter.dump_json(list(state.messages)).decode(),
        "rounds": state.rounds,
        "steps": _STEPS_ADAPTER.dump_python(state.steps, mode="json"),
        "web": _WEB_ADAPTER.dump_python(state.web, mode="json"),
        "spent": _SPENT_ADAPTER.dump_python(state.spent, mode="json"),
        "trace": [*state.trace],
    }


def load_state(data: Mapping[str, JSONValue]) -> PausedState:
    """Read a state that `dump_state` wrote.

    Raises:
        StorageError: It holds something else, or a count of what was used is missing: none is assumed to be 0.
    """
    rows = object_or_empty(data.get("spent"))
    try:
        counts = {phase: object_or_empty(rows[phase]) for phase in _COUNTED_PHASES if phase in rows}
        spent = {phase: {name: row[name] for name in _SPEND_FIELDS} for phase, row in counts.items()}
        return PausedState(
            exploration=scout.load_exploration(str(data["exploration"])),
            messages=ModelMessagesTypeAdapter.validate_json(str(data["messages"])),
            rounds=int(str(data["rounds"])),
            steps=_STEPS_ADAPTER.validate_python(data["steps"]),
            web=_WEB_ADAPTER.validate_python(data["web"]),
            spent=_SPENT_ADAPTER.validate_python(spent),
            trace=events.entries_of(data),
        )
    except (LookupError, ValueError) as error:
        raise StorageError(
            f"the paused task can't be read ({type(error).__name__})", hint="start the task again", code="paused_task"
        ) from error


def describe_web(result: WebResult) -> str:
    """Return a web search's result in one line."""
    if result.search_performed:
        return f"{len(result.sources)} sources from {len(result.search_queries)} searches"
    if result.search_needed:
        return f"the web would have to be searched: {result.evaluation_reasoning}"
    return (
        f"no search was needed: {result.evaluation_reasoning}"
        if result.evaluation_reasoning
        else "nothing was searched"
    )


def describe_task(done: TaskAgentResult) -> str:
    """Return a task's result in one line."""
    results = done.results
    if not done.edits:
        return "answered"
    failed = f", {results.failed} can't be made" if results.failed else ""
    return f"edits proposed: {results.success}{failed}"


def _fallback_answer(pipeline: PipelineContext, asked: UserQuestion | None) -> str:
    """Return the question or the findings of a run whose task wasn't carried out."""
    if asked is not None:
        return asked.question
    parts: list[str] = []
    if pipeline.scout is not None:
        chosen = (f"- [[{one.path}]]: {one.reason or one.why()}" for one in pipeline.scout.selected_notes)
        parts += [pipeline.scout.reasoning, *chosen]
    if pipeline.web is not None:
        parts += [pipeline.web.findings or pipeline.web.evaluation_reasoning]
        parts += [f"- {one.title}: {one.url}" for one in pipeline.web.sources]
    return prompting.sanitize_answer("\n".join(filter(None, parts)))[0]


PipelineEventSink = Callable[[PipelineEvent], None]
"""Receives an event; called in the run's own task."""
_COUNTED_PHASES: Final[tuple[Phase, ...]] = ("scout", "web", "task", "orchestrator")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """What a run continues from."""

    history: Sequence[ChatMessage] = ()
    state: PausedState | None = None
    """The state at the pause; None for a new run."""
    answer: str = ""
    """The answer to the question that it paused with."""


class PipelineRun:
    """The run for one task; made anew for each."""

    def __init__(
        self, agents: Agents, context: Context, request: TaskRequest, going: ResumePoint | None = None
    ) -> None:
        """Prepare the run.

        Args:
            agents: The agents.
            context: The vault, as the agents see it, with the run's id.
            request: The task.
            going: What it continues from; None for a new run.
        """
        going = going or ResumePoint()
        self._agents = agents
        self.context = context
        self.request = request.settled()
        self._resume_point = going
        self._mark = prompting.new_mark()
        self.paused = going.state or PausedState()
        self._used: list[tuple[Phase, RunUsage]] = []
        """The usage of each agent since the run began or was resumed; an agent at work adds to its own."""
        self._emit: PipelineEventSink = lambda _: None
        """Where events go; nowhere, before the run has a listener."""
        self._scout_run: ScoutRun | None = None
        self._research: WebResearch | None = None
        self._gathered: UnifiedContext | None = None
        self.done: TaskAgentResult | None = None
        self.notices: list[str] = []
        self.error: KnapError | None = None
        self.state: PipelineState = "cancelled"
        """How the run ended; *cancelled* until it has."""

    async def run(self, emit: PipelineEventSink) -> None:
        """Run the agents and report events; `outcome` returns the result however the run ended.

        Args:
            emit: Receives each event at once.
        """
        self._emit = emit
        self._agents = self._agents.reporting_retries(lambda text: emit(Notice(text=text)))
        try:
            async with AsyncExitStack() as stack:
                for model in self._agents.models:
                    _ = await stack.enter_async_context(model)
                await self._phases()
            self.state = "asked" if self._is_asked else "complete"
        except (*usage.MODEL_ERRORS, KnapError) as error:
            self.error = usage.convert_model_error(error, self._agents.chat.name)
            self.state = "limit" if self.error.code == "budget_spent" else "failed"
            self._emit(Error.of(self.error))

    @property
    def pipeline(self) -> PipelineContext:
        """Return what the agents have found so far."""
        spent = self.spent
        tokens = {f"{phase}_tokens": spent[phase].tokens for phase in _COUNTED_PHASES if phase in spent}
        scout = self._scout_result()
        return PipelineContext(
            scout=scout and replace(scout, tokens_used=tokens.get("scout_tokens", 0)),
            web=self._research.result().after(self.paused.web) if self._research else self.paused.web,
            token_accounting=TokenAccounting(**tokens),
        )

    @property
    def spent(self) -> dict[Phase, ModelSpend]:
        """Return each phase's usage, with that before a pause."""
        return self._spent_after(self.paused.spent)

    @property
    def spent_now(self) -> dict[Phase, ModelSpend]:
        """Return each phase's usage since the run began or was resumed."""
        return self._spent_after({})

    def _spent_after(self, before: Mapping[Phase, ModelSpend]) -> dict[Phase, ModelSpend]:
        total = dict(before)
        for phase, used in self._used:
            total[phase] = total.get(phase, ModelSpend()) + usage.read_usage(used)
        return total

    def outcome(self) -> PipelineOutcome:
        """Return the outcome so far, however far the run got."""
        pipeline, done, error, request = self.pipeline, self.done, self.error, self.request
        asked = self.paused_state().exploration.question if self.state == "asked" else None
        spent = self.spent
        total = sum(spent.values(), ModelSpend())
        outcome = PipelineOutcome(
            run_id=request.run_id,
            state=self.state,
            answer=done.summary if done else _fallback_answer(pipeline, asked),
            pipeline=pipeline.as_dict(),
            context=self._gathered.as_dict() if self._gathered else {},
            question={"question": asked.question, "options": [*asked.options]} if asked else None,
            notices=[*self.notices],
            usage={**total.as_dict(), "phases": {phase: one.as_dict() for phase, one in spent.items()}},
            model=self._agents.chat.name,
            session_id=request.session_id,
            error={"error": error.message, "code": error.code, "hint": error.hint} if error else None,
        )
        if done is None:
            return outcome
        proposals = [done.proposal.proposal_id] if done.proposal else []
        proposals += done.changed_blocks
        return replace(
            outcome,
            proposed_edits=[one.instruction.as_dict() for one in done.edits],
            edit_results=done.results.as_dict() if done.edits else {},
            proposals=[*proposals],
            waiting=[
                answers.as_json({"proposal_id": one, **answers.review_fields(self.context, one)}) for one in proposals
            ],
            opened=[*done.opened],
            citations=[one.as_dict() for one in done.checked.citations],
            removed=[one.as_dict() for one in done.checked.failures],
        )

    def paused_state(self) -> PausedState:
        """Return the state to continue from once the question is answered."""
        scout_run = self._scout_run
        return PausedState(
            exploration=scout_run.state if scout_run else self.paused.exploration,
            messages=scout_run.progress.messages if scout_run else (),
            rounds=scout_run.progress.rounds if scout_run else 0,
            steps=self.paused.steps,
            web=self.pipeline.web,
            spent=self.spent,
        )

    def _agents_left(self) -> Agents:
        return self._agents.after(sum(self.spent_now.values(), ModelSpend()))

    @property
    def _is_asked(self) -> bool:
        return self._scout_run is not None and self._scout_run.state.question is not None

    async def _phases(self) -> None:
        request, steps = self.request, self.paused.steps
        # The run paused in the middle of its last step, which is continued first.
        if self.paused.messages:
            await self._scout(steps[-1])
            if self._is_asked:
                return
        while True:
            if not request.orchestrate:
                step = orchestrator.default_step(request.toggles, steps)
            else:
                used = RunUsage()
                self._used.append(("orchestrator", used))
                agents = self._agents_left()
                step = await orchestrator.choose_step(
                    agents.make_stage(ORCHESTRATOR, agents.orchestrator), request, steps, self.pipeline, used
                )
                self._report("orchestrator", f"next: {step.phase}{f' ({step.reason})' if step.reason else ''}")
            if step.phase == "task":
                break
            steps.append(step)
            if step.phase == "scout":
                await self._scout(step)
                if self._is_asked:
                    return
            else:
                await self._web(step)
        if request.toggles.task:
            await self._task()

    async def _scout(self, step: PipelineStep) -> None:
        paused, request = self.paused, self.request
        self._report("scout", "looking for notes", state="started")
        resumed = bool(paused.messages)
        scout_task = ScoutTask(
            task=_focused_task(request.task, step),
            current=request.current,
            state=paused.exploration,
            history=paused.messages,
            rounds=paused.rounds if resumed else 0,
            answer=self._resume_point.answer,
        )
        self._scout_run = scout_run = ScoutRun(self._agents_left().make_scout(), self.context, scout_task)
        # The scout run has the conversation now; a later step of the scout begins a new one.
        paused.messages = ()
        self._used.append(("scout", scout_run.usage))
        result = await scout_run.run(self._emit)
        paused.exploration = scout_run.state
        # The selection has changed, so the context must be built again.
        self._gathered = None
        self._emit(SelectionEvent(scout=result.as_dict()))
        self._report("scout", f"notes chosen: {len(result.selected_notes)} ({result.confidence})", state="ended")
        self._tell_conversation("scout", scout_run.progress.messages)

    async def _web(self, step: PipelineStep) -> None:
        request = self.request
        self._report("web", "checking whether the web is needed", state="started")
        try:
            _ = self.context.open_web()
        except KnapError as error:
            if not request.toggles.task:
                raise
            self._notice(f"the web wasn't searched: {error.message}")
            self.paused.web = WebResult(problem=error.message, ended="failed").after(self.paused.web)
            return
        gathered = await self._gather()
        # A second search starts anew, so the findings of the first one are kept.
        self.paused.web = self.pipeline.web
        agents, task = self._agents_left(), _focused_task(request.task, step)
        self._research = research = WebResearch(
            agents.make_stage(WEB, agents.web), self.context, task, notes=gathered.text, mark=self._mark
        )
        self._used.append(("web", research.usage))
        result = await research.run(self._emit)
        self._emit(SourcesEvent(web=result.as_dict()))
        self._report("web", describe_web(result), state="ended")
        self._tell_conversation("web", research.progress.messages)

    async def _task(self) -> None:
        request = self.request
        gathered = await self._gather()
        task_input = TaskAgentInput(
            task=request.task,
            context=gathered,
            current=request.current,
            chat_history=self._resume_point.history,
            pipeline=self.pipeline,
            mark=self._mark,
            repair=self._agents.chat.prompts.load("repair"),
        )
        self._report("task", "working on the task", state="started")
        task_run = TaskRun(self._agents_left().make_stage(TASK, request.rules), self.context, task_input)
        self._used.append(("task", task_run.usage))
        try:
            self.done = await task_run.run(lambda text: self._report("task", text))
        finally:
            self._tell_conversation("task", task_run.messages)
        for path in self.done.opened:
            self._emit(Navigate(path=path))
        for notice in self.done.notices:
            self._notice(notice)
        self._report("task", describe_task(self.done), state="ended")

    async def _gather(self) -> UnifiedContext:
        """Return the context of the notes selected so far; it is reused until the selection changes."""
        if self._gathered is None:
            self._gathered = await asyncio.to_thread(
                context.gather_context, self.context, self.request, self._scout_result(), mark=self._mark
            )
            self._emit(ContextEvent(context=self._gathered.as_dict()))
            for notice in self._gathered.notices:
                self._notice(notice)
        return self._gathered

    def _scout_result(self) -> ScoutResult | None:
        return self._scout_run.result() if self._scout_run else None

    def _report(self, phase: Phase, text: str, *, state: Literal["started", "going_on", "ended"] = "going_on") -> None:
        self._emit(PhaseProgress(phase=phase, state=state, text=text))

    def _tell_conversation(self, phase: Phase, messages: Sequence[ModelMessage]) -> None:
        if self.request.debug:
            self._emit(Debug(phase=phase, title="conversation", text=replies.format_conversation(messages)))

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        self._emit(Notice(text=text))


def _focused_task(task: str, step: PipelineStep) -> str:
    return f"{task}\n\nLook for this now: {prompting.escape_plain(step.focus)}" if step.focus else task
