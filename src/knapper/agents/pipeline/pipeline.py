"""Run the agents that a task needs, one after another, and hand on what each found."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from pydantic_ai.exceptions import UsageLimitExceeded

from knapper.agents import failures, untrusted
from knapper.agents.contexts.unified import UnifiedContext
from knapper.agents.events import Error
from knapper.agents.pipeline import debugging, gathering, orchestrator, outcomes
from knapper.agents.pipeline.accounts import Accounts
from knapper.agents.pipeline.agents import Agents
from knapper.agents.pipeline.events import Debug, Gathered, Navigate, Notice, Outcome, PipelineEvent, Progress, Selected
from knapper.agents.pipeline.events import Sources as Found
from knapper.agents.pipeline.frozen import Frozen
from knapper.agents.pipeline.orchestrator import Step
from knapper.agents.pipeline.outcomes import Ended
from knapper.agents.pipeline.records import Phase, State
from knapper.agents.pipeline.requests import Request
from knapper.agents.research.records import WebResult
from knapper.agents.research.research import Query, Research
from knapper.agents.scout.records import ScoutResult
from knapper.agents.scout.scout import Errand, Trip
from knapper.agents.task.records import ChatMessage, PipelineContext, TokenAccounting
from knapper.agents.task.task import TaskAgent, TaskAgentInput, TaskAgentResult
from knapper.codemode.model import ModelSpend
from knapper.errors import KnapError
from knapper.tools.context import Context

Tell = Callable[[PipelineEvent], None]
"""Takes an event; called in the run's own task."""
_PHASES: Final[tuple[Phase, ...]] = ("scout", "web", "task", "orchestrator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Say what a run goes on from."""

    history: Sequence[ChatMessage] = ()
    state: Frozen | None = None
    """Where it paused; None for the beginning."""
    answer: str = ""
    """To the question that it paused with."""


class Run:
    """Work on one task; made anew for each."""

    def __init__(self, agents: Agents, context: Context, request: Request, going: Going | None = None) -> None:
        """Take the task.

        Args:
            agents: What works on it.
            context: The vault, as the agents see it, with the run's id.
            request: The task.
            going: What was before.
        """
        going = going or Going()
        self._agents = agents
        self._context = context
        self.request = request.settled()
        self._going = going
        self._mark = untrusted.new_mark()
        self.frozen = going.state or Frozen()
        self._accounts = Accounts(self.frozen.spent)
        self._tell: Tell = _nobody
        self._trip: Trip | None = None
        self._research: Research | None = None
        self._gathered: UnifiedContext | None = None
        self.done: TaskAgentResult | None = None
        self.notices: list[str] = []
        self.error: KnapError | None = None
        self.state: State = "cancelled"
        """How it ended; *cancelled* until it has."""

    async def run(self, tell: Tell) -> None:
        """Work, telling what happens as it does; what it came to is in `outcome`, however it ended.

        Args:
            tell: Takes each event, at once.
        """
        self._tell = tell
        try:
            async with AsyncExitStack() as stack:
                for model in self._agents.models:
                    _ = await stack.enter_async_context(model)
                await self._phases()
            self.state = "asked" if self._is_asked else "complete"
        except failures.CAUGHT as error:
            self._fail(failures.of(error, self._agents.name), limit=isinstance(error, UsageLimitExceeded))
        except KnapError as error:
            self._fail(error, limit=error.code == "budget_spent")

    @property
    def pipeline(self) -> PipelineContext:
        """Give what the agents have found so far."""
        spent = self.spent
        tokens = {f"{phase}_tokens": spent[phase].tokens for phase in _PHASES if phase in spent}
        scout = self._scout_result()
        return PipelineContext(
            scout=scout and replace(scout, tokens_used=tokens.get("scout_tokens", 0)),
            web=self._research.result().after(self.frozen.web) if self._research else self.frozen.web,
            token_accounting=TokenAccounting(**tokens),
        )

    @property
    def spent(self) -> dict[Phase, ModelSpend]:
        """Tell what each phase used, that before a pause included."""
        return self._accounts.total()

    @property
    def spent_now(self) -> dict[Phase, ModelSpend]:
        """Tell what each phase used since the run began or went on."""
        return self._accounts.now()

    def outcome(self) -> Outcome:
        """Sum the run up, as far as it got."""
        ended = Ended(
            state=self.state,
            pipeline=self.pipeline,
            done=self.done,
            gathered=self._gathered,
            question=self.freeze().exploration.question,
            notices=self.notices,
            error=self.error,
            spent=self.spent,
        )
        return outcomes.of(ended, self.request, self._agents.name)

    def freeze(self) -> Frozen:
        """Give all that the run goes on from once its question is answered."""
        trip = self._trip
        return Frozen(
            exploration=trip.state if trip else self.frozen.exploration,
            messages=trip.progress.messages if trip else (),
            rounds=trip.progress.rounds if trip else 0,
            steps=self.frozen.steps,
            web=self.pipeline.web,
            spent=self.spent,
        )

    def _rest(self) -> Agents:
        return self._agents.after(sum(self.spent_now.values(), ModelSpend()))

    @property
    def _is_asked(self) -> bool:
        return self._trip is not None and self._trip.state.question is not None

    async def _phases(self) -> None:
        if self.frozen.messages:  # it paused within its last step
            await self._scout(self.frozen.steps[-1])
            if self._is_asked:
                return
        while (step := await self._next()).phase != "task":
            self.frozen.steps.append(step)
            if step.phase == "scout":
                await self._scout(step)
                if self._is_asked:
                    return
            else:
                await self._web(step)
        if self.request.toggles.task:
            await self._task()

    async def _next(self) -> Step:
        request, steps = self.request, self.frozen.steps
        if not request.orchestrate:
            return orchestrator.following(request.toggles, steps)
        deciding = self._rest().make_orchestrator()
        used = self._accounts.open("orchestrator")
        step = await deciding.next(request.task, request.toggles, steps, self.pipeline, used)
        self._say("orchestrator", f"next: {step.phase}{f' ({step.reason})' if step.reason else ''}")
        return step

    async def _scout(self, step: Step) -> None:
        frozen, request = self.frozen, self.request
        self._say("scout", "looking for notes", state="started")
        resumed = bool(frozen.messages)
        errand = Errand(
            task=_task(request.task, step),
            current=request.current,
            state=frozen.exploration,
            history=frozen.messages,
            rounds=frozen.rounds if resumed else 0,
            answer=self._going.answer,
        )
        self._trip = trip = Trip(self._rest().make_scout(), self._context, errand)
        frozen.messages = ()
        _ = self._accounts.open("scout", trip.usage)
        found = await trip.run(self._tell)
        frozen.exploration = trip.state
        self._gathered = None
        self._tell(Selected(scout=found.as_dict()))
        self._say("scout", f"notes chosen: {len(found.selected_notes)} ({found.confidence})", state="ended")
        if request.debug:
            self._tell(Debug(phase="scout", title="conversation", text=debugging.readable(trip.progress.messages)))

    async def _web(self, step: Step) -> None:
        request = self.request
        self._say("web", "looking whether the web is needed", state="started")
        try:
            _ = self._context.open_web()
        except KnapError as error:
            if not request.toggles.task:
                raise
            self._notice(f"the web wasn't searched: {error.message}")
            self.frozen.web = WebResult(problem=error.message, ended="failed").after(self.frozen.web)
            return
        gathered = await self._gather()
        self.frozen.web = self.pipeline.web  # what an earlier search has found stays
        query = Query(task=_task(request.task, step), notes=gathered.text, mark=self._mark)
        self._research = research = Research(self._rest().make_researcher(), self._context, query)
        _ = self._accounts.open("web", research.usage)
        found = await research.run(self._tell)
        self._tell(Found(web=found.as_dict()))
        self._say("web", outcomes.web_text(found), state="ended")
        if request.debug:
            self._tell(Debug(phase="web", title="conversation", text=debugging.readable(research.progress.messages)))

    async def _task(self) -> None:
        request = self.request
        gathered = await self._gather()
        given = TaskAgentInput(
            task=request.task,
            context=gathered,
            current=request.current,
            chat_history=self._going.history,
            pipeline=self.pipeline,
            mark=self._mark,
        )
        self._say("task", "working on the task", state="started")
        agent = TaskAgent(self._rest().configure_task(request.rules), self._context, given)
        _ = self._accounts.open("task", agent.usage)
        try:
            self.done = await agent.run(lambda text: self._say("task", text))
        finally:
            if request.debug:
                self._tell(Debug(phase="task", title="conversation", text=debugging.readable(agent.messages)))
        for path in self.done.opened:
            self._tell(Navigate(path=path))
        for notice in self.done.notices:
            self._notice(notice)
        self._say("task", outcomes.task_text(self.done), state="ended")

    async def _gather(self) -> UnifiedContext:
        """Write the context that there is by now; it is the same until something else is chosen."""
        if self._gathered is None:
            self._gathered = await asyncio.to_thread(
                gathering.write, self._context, self.request, self._scout_result(), mark=self._mark
            )
            self._tell(Gathered(context=self._gathered.as_dict()))
            for notice in self._gathered.notices:
                self._notice(notice)
        return self._gathered

    def _scout_result(self) -> ScoutResult | None:
        return self._trip.result() if self._trip else None

    def _say(self, phase: Phase, text: str, *, state: str = "going_on") -> None:
        shown = "started" if state == "started" else "ended" if state == "ended" else "going_on"
        self._tell(Progress(phase=phase, state=shown, text=text))

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        self._tell(Notice(text=text))

    def _fail(self, error: KnapError, *, limit: bool) -> None:
        self.state = "limit" if limit else "failed"
        self.error = error
        self._tell(Error(error=error.message, code=error.code, hint=error.hint))


def _nobody(_: PipelineEvent) -> None:
    """Tell nobody."""


def _task(task: str, step: Step) -> str:
    return f"{task}\n\nLook for this now: {untrusted.plain(step.focus)}" if step.focus else task
