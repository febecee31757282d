"""Answer tasks in sessions: load the history, store the outcome, and resume after questions."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart

from knapper.agents import events
from knapper.agents.events import Error, Notice, TraceRecorder
from knapper.agents.pipeline import context as pipeline_context
from knapper.agents.pipeline import edits, pipeline
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.edits import ChatMessage, EditFailure, EditInstruction, EditResults
from knapper.agents.pipeline.orchestrator import Agents
from knapper.agents.pipeline.pipeline import PipelineEventSink, PipelineRun, ResumePoint
from knapper.agents.pipeline.records import PipelineEvent, PipelineOutcome
from knapper.agents.pipeline.store import PausedRun, PausedRuns
from knapper.agents.sessions import store as sessions_store
from knapper.agents.sessions.store import Exchange, SessionStore
from knapper.changes.proposals.store import Proposals
from knapper.codemode.tasks import ModelSpend
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, StorageError
from knapper.jsontypes import JSONValue, list_or_empty, object_or_empty, objects_in
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.vault.access import Grants

DescribeFate = Callable[[str], str]
"""Returns what became of a proposal, in words."""


def read_chat_messages(turns: Sequence[Exchange], length: int, fate: DescribeFate = lambda _: "") -> list[ChatMessage]:
    """Return the last messages of a session, the oldest first.

    Args:
        turns: The session's turns.
        length: Maximum number of messages, questions and answers counted alike, 0 to 100.
        fate: Returns what became of a proposal.
    """
    if not length:
        return []
    history: list[ChatMessage] = []
    for turn in turns[-(length + 1) // 2 - 1 :]:
        outcome = turn.outcome
        results = object_or_empty(outcome.get("edit_results"))
        success, failures = results.get("success"), objects_in(results.get("failures"))
        edit_results = EditResults(
            success=success if isinstance(success, int) else 0,
            failures=tuple(EditFailure(**_read_texts(row, "file", "error", "code", "position")) for row in failures),
        )
        outcomes = [text for one in list_or_empty(outcome.get("proposals")) if (text := fate(str(one)))]
        history += [
            ChatMessage(
                id=f"{turn.number}-user", role="user", content=turn.question, timestamp=turn.at, active_file=turn.file
            ),
            ChatMessage(
                id=f"{turn.number}-assistant",
                role="assistant",
                content=str(outcome.get("answer", "")),
                timestamp=turn.at,
                active_file=turn.file,
                proposed_edits=tuple(
                    EditInstruction(**_read_texts(row, "file", "position", "content"))
                    for row in objects_in(outcome.get("proposed_edits"))
                ),
                edit_results=edit_results if results else None,
                fate=", ".join(outcomes),
            ),
        ]
    return history[-length:]


def describe_fates(proposals: Proposals) -> DescribeFate:
    """Return a function that looks up what became of a proposal."""

    def fate(proposal: str) -> str:
        try:
            return f"the proposal is {proposals.show(proposal).status.replace('_', ' ')}"
        except KnapError:
            return ""

    return fate


def _read_texts(row: Mapping[str, JSONValue], *names: str) -> dict[str, str]:
    return {name: str(row.get(name, "")) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineService:
    """The tasks of one vault: the agents that carry them out, and the files that store them."""

    agents: Agents
    runs: PausedRuns
    store: SessionStore
    wait_s: float = sessions_store.WAIT_S
    owner: str = ""
    """The client on whose behalf runs wait; empty for the client that the vault is opened for."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the server is stopping; a run that this interrupts keeps waiting for its answer."""

    async def ask(self, request: TaskRequest, context: Context, emit: PipelineEventSink) -> PipelineOutcome:
        """Carry out a task, and store the turn in its session, if it has one.

        A cancelled task stores its partial turn, reports `PipelineOutcome`, and stays cancelled. A task with a question
        for the person waits until `resume` continues it with the answer.

        Args:
            request: The task.
            context: The vault, as the agents see it, with the run's id.
            emit: Receives each event; `PipelineOutcome` comes last.

        Raises:
            NotFound: There is no such session.
            ConflictError: Another message is being answered in it (code ``session_busy``).
        """
        context = answers.within_session(context, request.session_id)
        async with self._lock_session(request.session_id):
            await asyncio.to_thread(answers.begin_run, context)
            history = await asyncio.to_thread(self._history, request, context)
            return await self._carry_out(request, context, ResumePoint(history=history), emit)

    async def resume(
        self, run_id: str, answer: str, context: Context, emit: PipelineEventSink, *, by: Grants | None = None
    ) -> PipelineOutcome:
        """Continue a run that asked a question; a person may continue any run, others only their own.

        A run that fails, reaches a limit or is killed waits again with the same question.

        Args:
            run_id: The run's id.
            answer: The person's answer.
            context: The vault, as the agents see it.
            emit: Receives each event; `PipelineOutcome` comes last.
            by: The grants of whoever answers; None for those of *context*.

        Raises:
            NotFound: No such run is waiting (code ``no_run``).
            BadInput: The answer is empty.
        """
        if not answer.strip():
            raise BadInput("the answer is empty", hint="say something")
        grants = by or context.rights.grants
        async with self.runs.hold(run_id, "" if grants.is_person else grants.client) as paused:
            request = pipeline_context.read_request(paused.request)
            # Its session may have been deleted meanwhile.
            if request.session_id and not await asyncio.to_thread(self.store.has, request.session_id):
                request = replace(request, session_id="")
            context = answers.within_session(context, request.session_id)
            async with self._lock_session(request.session_id):
                await asyncio.to_thread(answers.begin_run, context)
                history = await asyncio.to_thread(self._history, request, context)
                resume_point = ResumePoint(history=history, state=pipeline.load_state(paused.state), answer=answer)
                return await self._carry_out(request, context, resume_point, emit)

    @asynccontextmanager
    async def _lock_session(self, session_id: str) -> AsyncGenerator[None]:
        if not session_id:
            yield
            return
        _ = self.store.get(session_id)
        async with self.store.lock(session_id, wait_s=self.wait_s):
            yield

    def _history(self, request: TaskRequest, context: Context) -> list[edits.ChatMessage]:
        if not request.session_id:
            return []
        turns = self.store.turns(request.session_id)
        return read_chat_messages(turns, request.chat_history_length, describe_fates(context.writer.proposals))

    async def _carry_out(
        self, request: TaskRequest, context: Context, going: ResumePoint, emit: PipelineEventSink
    ) -> PipelineOutcome:
        agents = self.agents.within(request.limits)
        if agents.chat.meter:
            agents = replace(agents, limits=agents.chat.meter.allow(request.run_id))
        run = PipelineRun(agents, context, request, going)
        recorder = TraceRecorder(going.state.trace if going.state else ())

        def hear(event: PipelineEvent) -> None:
            recorder.record(event)
            emit(event)

        is_over = False
        try:
            await run.run(hear)
            is_over = run.state == "complete"
        except asyncio.CancelledError:
            # A cancelled run is over, but one that the stopping server interrupts keeps waiting for its answer.
            is_over = not self.is_stopping()
            raise
        # This block runs for a cancelled task, too. It is shielded, since a second cancellation may follow.
        finally:
            outcome = await asyncio.shield(asyncio.to_thread(run.outcome))
            has_ended = is_over and going.state is not None
            storing = asyncio.to_thread(self._keep, run, outcome, recorder.entries(), has_ended=has_ended)
            outcome, late_events = await asyncio.shield(storing)
            for event in (*late_events, outcome):
                emit(event)
        return outcome

    def _keep(
        self, run: PipelineRun, outcome: PipelineOutcome, trace: Sequence[JSONValue], *, has_ended: bool
    ) -> tuple[PipelineOutcome, Sequence[PipelineEvent]]:
        """Store a run's outcome; what can't be stored is reported, and the rest is stored all the same."""
        events: list[PipelineEvent] = []
        writes: list[Callable[[], None]] = [lambda: answers.end_run(run.context)]
        if outcome.state == "asked":
            try:
                self.runs.pause(
                    PausedRun(
                        id=run.request.run_id,
                        client=self.owner or run.context.rights.grants.client,
                        at=self.agents.chat.now(),
                        question=outcome.question or {},
                        request=run.request.as_dict(),
                        state=pipeline.dump_state(replace(run.paused_state(), trace=trace)),
                    )
                )
            except StorageError as error:
                # Without the stored run nobody could answer the question, so the run has failed.
                failure = Error.of(error)
                events.append(failure)
                error_row: dict[str, JSONValue] = {"error": failure.error, "code": failure.code, "hint": failure.hint}
                outcome = replace(outcome, state="failed", question=None, error=error_row)
        elif run.request.session_id:
            writes.append(lambda: self._append(run.request, outcome, trace))
        if has_ended:
            writes.append(lambda: self.runs.end(run.request.run_id))
        writes.append(lambda: self._spend(run))
        notices: list[Notice] = []
        for write in writes:
            try:
                write()
            except StorageError as error:
                notices.append(Notice(text=f"not everything was stored: {error.message}"))
        return replace(outcome, notices=[*outcome.notices, *(one.text for one in notices)]), [*events, *notices]

    def _spend(self, run: PipelineRun) -> None:
        if not self.agents.chat.meter:
            return
        spending: dict[str, ModelSpend] = {}
        for phase, spent in run.spent_now.items():
            chat = (self.agents.scout_chat if phase == "scout" else None) or self.agents.chat
            spending[chat.name] = spending.get(chat.name, ModelSpend()) + spent
        self.agents.chat.meter.record_models(run.request.run_id, spending)

    def _append(self, request: TaskRequest, outcome: PipelineOutcome, entries: Sequence[JSONValue]) -> None:
        messages = [
            ModelRequest(parts=[UserPromptPart(content=request.task)]),
            ModelResponse(parts=[TextPart(content=outcome.answer or "(nothing)")]),
        ]
        exchange = Exchange(
            number=0,
            at=self.agents.chat.now(),
            question=request.task,
            file=request.current,
            # Where it is reviewed depends on the server that runs then, and is told anew.
            outcome=events.add_trace(replace(outcome, waiting=[]).as_dict(), entries),
            messages=ModelMessagesTypeAdapter.dump_json(messages).decode(),
        )
        # The session may be deleted or continued elsewhere meanwhile; the answer was sent in any case.
        with suppress(NotFound, ConflictError):
            _ = self.store.append(request.session_id, self.store.last(request.session_id), exchange)
