"""Answer tasks in sessions: with what was said before, keeping what came of it, and going on after questions."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart

from knapper.agents.events import Error
from knapper.agents.pipeline import frozen, histories, requests
from knapper.agents.pipeline.agents import Agents
from knapper.agents.pipeline.events import Notice, Outcome, PipelineEvent
from knapper.agents.pipeline.pipeline import Going, Run, Tell
from knapper.agents.pipeline.requests import Request
from knapper.agents.pipeline.runs import PausedRun, Runs
from knapper.agents.sessions import locks
from knapper.agents.sessions.records import Exchange
from knapper.agents.sessions.store import Store
from knapper.agents.task import records
from knapper.agents.usage import Meter
from knapper.errors import BadInput, ConflictError, NotFound, StorageError
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault.access import Grants


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Hold what one vault's tasks are answered with and kept in."""

    agents: Agents
    runs: Runs
    store: Store
    folder: Path
    """The vault's state folder."""
    now: Callable[[], datetime]
    meter: Meter | None = None
    wait_s: float = locks.WAIT_S
    owner: str = ""
    """On whose behalf runs wait; empty for whom the vault is opened for."""
    stops: Callable[[], bool] = lambda: False
    """Tells whether whatever goes on is being stopped: a question whose answer that cuts short waits again."""

    async def ask(self, request: Request, context: Context, tell: Tell) -> Outcome:
        """Do a task, and keep the turn in its session, if it has one.

        A cancelled task keeps what there is, tells `Outcome`, and stays cancelled. One that asks the person something
        waits: `resume` goes on with the answer.

        Args:
            request: The task.
            context: The vault, as the agents see it, with the run's id.
            tell: Takes each event; `Outcome` comes last.

        Raises:
            NotFound: There is no such session.
            ConflictError: Another message is being answered in it (code ``session_busy``).
        """
        async with self._held(request.session_id):
            history = await asyncio.to_thread(self._history, request, context)
            return await self._carry_out(request, context, Going(history=history), tell)

    async def resume(
        self, run_id: str, answer: str, context: Context, tell: Tell, *, by: Grants | None = None
    ) -> Outcome:
        """Go on with a run that asked something; a person may go on with any, others with their own.

        Where it fails, reaches a limit or is killed, it waits again, as it did.

        Args:
            run_id: The run's.
            answer: What the person says.
            context: The vault, as the agents see it.
            tell: Takes each event; `Outcome` comes last.
            by: Who answers; None for whom the agents act for.

        Raises:
            NotFound: No such run waits (code ``no_run``).
            BadInput: The answer is empty.
        """
        if not answer.strip():
            raise BadInput("the answer is empty", hint="say something")
        grants = by or context.writer.grants
        async with self.runs.hold(run_id, "" if grants.is_person else grants.client) as paused:
            request = await asyncio.to_thread(self._placed, requests.of(paused.request))
            async with self._held(request.session_id):
                history = await asyncio.to_thread(self._history, request, context)
                going = Going(history=history, state=frozen.read(paused.state), answer=answer)
                return await self._carry_out(request, context, going, tell)

    @asynccontextmanager
    async def _held(self, session_id: str) -> AsyncGenerator[None]:
        if not session_id:
            yield
            return
        _ = self.store.get(session_id)
        async with locks.hold(self.folder, session_id, wait_s=self.wait_s):
            yield

    def _placed(self, request: Request) -> Request:
        """Go on without a session that is gone meanwhile."""
        if request.session_id:
            try:
                _ = self.store.get(request.session_id)
            except NotFound:
                return replace(request, session_id="")
        return request

    def _history(self, request: Request, context: Context) -> list[records.ChatMessage]:
        if not request.session_id:
            return []
        turns = self.store.turns(request.session_id)
        return histories.messages(turns, request.chat_history_length, histories.fates(context.writer.proposals))

    async def _carry_out(self, request: Request, context: Context, going: Going, tell: Tell) -> Outcome:
        agents = self.agents
        if self.meter:
            agents = replace(agents, limits=self.meter.allow(request.run_id))
        run = Run(agents, context, request, going)
        is_over = False
        try:
            await run.run(tell)
            is_over = run.state == "complete"
        except asyncio.CancelledError:
            is_over = not self.stops()
            raise
        finally:  # also where the task is cancelled
            outcome = await asyncio.shield(asyncio.to_thread(run.outcome))
            has_ended = is_over and going.state is not None
            keeping = asyncio.to_thread(self._keep, run, context, outcome, has_ended=has_ended)
            outcome, happened = await asyncio.shield(keeping)
            for event in (*happened, outcome):
                tell(event)
        return outcome

    def _keep(
        self, run: Run, context: Context, outcome: Outcome, *, has_ended: bool
    ) -> tuple[Outcome, Sequence[PipelineEvent]]:
        """Keep what came of a run; what can't be kept is told, and keeps nothing else from being kept."""
        happened: list[PipelineEvent] = []
        works: list[Callable[[], None]] = []
        if outcome.state == "asked":
            try:
                self._pause(run, context, outcome)
            except StorageError as error:  # nobody could answer it
                told = Error(error=error.message, code=error.code, hint=error.hint)
                happened.append(told)
                shown: dict[str, JSONValue] = {"error": told.error, "code": told.code, "hint": told.hint}
                outcome = replace(outcome, state="failed", question=None, error=shown)
        elif run.request.session_id:
            works.append(lambda: self._append(run.request, outcome))
        if has_ended:
            works.append(lambda: self.runs.end(run.request.run_id))
        notices = _tried([*works, lambda: self._spend(run)])
        texts: list[JSONValue] = [notice.text for notice in notices]
        return replace(outcome, notices=[*outcome.notices, *texts]), [*happened, *notices]

    def _spend(self, run: Run) -> None:
        for phase, spent in run.spent_now.items():
            if self.meter:
                name = self.agents.scout_name if phase == "scout" and self.agents.scout_name else self.agents.name
                self.meter.record(run.request.run_id, name, spent)

    def _pause(self, run: Run, context: Context, outcome: Outcome) -> None:
        self.runs.pause(
            PausedRun(
                id=run.request.run_id,
                client=self.owner or context.writer.grants.client,
                at=self.now(),
                question=outcome.question or {},
                request=run.request.as_dict(),
                state=frozen.write(run.freeze()),
            )
        )

    def _append(self, request: Request, outcome: Outcome) -> None:
        said = [
            ModelRequest(parts=[UserPromptPart(content=request.task)]),
            ModelResponse(parts=[TextPart(content=outcome.answer or "(nothing)")]),
        ]
        exchange = Exchange(
            number=0,
            at=self.now(),
            question=request.task,
            file=request.current,
            outcome=outcome.as_dict(),
            messages=ModelMessagesTypeAdapter.dump_json(said).decode(),
        )
        with suppress(
            NotFound, ConflictError
        ):  # deleted, or gone on elsewhere meanwhile: the answer was told all the same
            _ = self.store.append(request.session_id, self.store.last(request.session_id), exchange)


def _tried(works: Sequence[Callable[[], None]]) -> list[Notice]:
    """Do one after another, and tell what couldn't be done."""
    told: list[Notice] = []
    for work in works:
        try:
            work()
        except StorageError as error:
            told.append(Notice(text=f"not all of it was kept: {error.message}"))
    return told
