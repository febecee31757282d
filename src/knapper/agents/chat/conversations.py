"""Continue conversations: find the session, load its history, answer, and store the turn."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic_ai.exceptions import FallbackExceptionGroup, ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.usage import RunUsage

from knapper.agents import events
from knapper.agents.chat import turn as chat_turn
from knapper.agents.chat.turn import ChatConfig, ChatTurn, Message, TurnCaps
from knapper.agents.events import Done, Error, Event, Notice, TraceRecorder
from knapper.agents.loop import EventSink
from knapper.agents.model import replies, usage
from knapper.agents.sessions import store as sessions_store
from knapper.agents.sessions.store import Exchange, HistorySummary, Session, SessionStore
from knapper.agents.stages import Stage, Stages
from knapper.codemode.tasks import ModelSpend
from knapper.errors import Ambiguous, BadInput, ConflictError, KnapError, NotFound, RefusedError, StorageError
from knapper.tools import answers
from knapper.tools.context import Context

BEGINNING_LEFT_OUT: Final = "the beginning of this conversation is left out, since no summary of it could be had"
MAX_MESSAGE_CHARS = 200_000
"""Characters of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """The chat sessions of one vault."""

    store: SessionStore
    context_of: Callable[[str], Context]
    """Opens the vault as the agent of a run sees it; cheap."""
    stages: Stages = field(default_factory=Stages)
    """The agents that a message may name."""
    wait_s: float = sessions_store.WAIT_S
    """How long a message waits for another one in its session."""

    def route(self, active_file: str | None) -> Session:
        """Return the session of an open note, or the default session where none is open; it is created if need be.

        A note that doesn't exist or is hidden from the agent has a session under the path as given.

        Raises:
            Ambiguous: Several notes have the name that is given.
        """
        path = self.locate(active_file or "")
        if not path:
            return self.store.without_file()
        context = self.context_of("")
        identity_now = sessions_store.identify_file(context.view, path)
        earlier_paths = (
            sessions_store.list_earlier_paths(context, identity_now.path)
            if identity_now.hash or identity_now.node
            else ()
        )
        return self.store.by_file(
            identity_now, earlier_paths, lambda path: sessions_store.is_file_gone(context.view, path)
        )

    def locate(self, active_file: str) -> str:
        """Return the path of the open note, which may be named as in Obsidian; as given where the agent sees none.

        Raises:
            Ambiguous: Several notes have the name; they are listed.
        """
        name = active_file.strip()
        try:
            return self.context_of("").view.locate(name) if name else ""
        except Ambiguous:
            raise
        except KnapError:
            return name

    async def reply(self, chat: ChatConfig, session_id: str, message: Message, emit: EventSink) -> Done:
        """Answer a message in a session, and store the turn however it ends.

        A cancelled task stores its partial turn, reports `Done`, and stays cancelled.

        Args:
            chat: The model and its settings.
            session_id: The session's id.
            message: The message.
            emit: Receives each event.

        Raises:
            NotFound: There is no such session.
            ConflictError: Another message is being answered in it (code ``session_busy``).
            BadInput: The message is empty or too long.
        """
        if not message.text.strip():
            raise BadInput("the message is empty", hint="say something")
        if len(message.text) > MAX_MESSAGE_CHARS:
            raise BadInput(
                f"the message has {len(message.text):,} characters", hint=f"give at most {MAX_MESSAGE_CHARS:,}"
            )
        session, stage = self.store.get(session_id), await asyncio.to_thread(self.stages.named_by, message.text)
        if stage is not None and not await asyncio.to_thread(stage.write_task, self.context_of(session_id)):
            raise NotFound(stage.nothing.rstrip(".").lower(), hint="name it again when there is", code="nothing_to_do")
        async with self.store.lock(session.id, wait_s=self.wait_s):
            return await self._answer(chat, session.id, message, stage, emit)

    def begin_stage(self, chat: ChatConfig, stage: Stage) -> Session | None:
        """Create the session in which an agent works on its own task; None where there is nothing to do.

        Raises:
            SetupError: The agent's file names tools that no agent has.
            StorageError: The session can't be stored.
        """
        _ = chat_turn.configure_stage(chat, stage)  # first, so that nothing is begun for a file with a mistake
        return self.store.begin(name=stage.title) if stage.write_task(self.context_of("")) else None

    async def run_stage(
        self, chat: ChatConfig, stage: Stage, emit: EventSink, *, may_apply: bool = False, caps: TurnCaps | None = None
    ) -> Done:
        """Set an agent to work on its own task, in a new session; without anything to do no model is asked.

        Args:
            chat: The model and its settings.
            stage: The agent.
            emit: Receives each event.
            may_apply: Whether it may apply changes, as far as the rules allow; otherwise it only proposes.
            caps: Limits that only lower the chat's; None for none.

        Raises:
            StorageError: The session can't be stored.
        """
        session = await asyncio.to_thread(self.begin_stage, chat, stage)
        if session is None:
            done = Done(state="complete", answer=stage.nothing, model=chat.name)
            emit(done)
            return done
        message = Message(text=f"/{stage.name}", may_apply=may_apply, caps=caps or TurnCaps())
        return await self.reply(chat, session.id, message, emit)

    async def _answer(
        self,
        chat: ChatConfig,
        session_id: str,
        message: Message,
        stage: Stage | None,
        emit: EventSink,
    ) -> Done:
        spent, context = RunUsage(), self.context_of(session_id)
        await asyncio.to_thread(answers.begin_run, context)
        last = await asyncio.to_thread(self.store.last, session_id)
        history, notices = await self._history(chat, session_id, last, spent, emit)
        question, file = message.text, message.active_file
        if stage is not None:
            message = replace(message, text=await asyncio.to_thread(stage.write_task, context))
            chat = await asyncio.to_thread(chat_turn.configure_stage, chat, stage)
            context = context if message.may_apply else stage.hold_to_proposals(context)
        message = replace(message, run=session_id, history=history, notices=notices)
        turn = ChatTurn(chat, context, message)
        final_events, recorder = list[Done](), TraceRecorder()

        def hear(event: Event) -> None:
            recorder.record(event)
            if isinstance(event, Done):
                final_events.append(event)
            else:
                emit(event)

        try:
            await turn.run(hear)
        # This block runs for a cancelled task, too. It is shielded, since a second cancellation may follow.
        finally:
            done = final_events[0] if final_events else await asyncio.shield(asyncio.to_thread(turn.done))
            cost = usage.read_usage(spent) + turn.spent
            outcome = events.add_trace(done.as_dict(), recorder.entries())
            exchange = Exchange(number=last + 1, at=chat.now(), question=question, file=file, outcome=outcome)
            keeping = asyncio.to_thread(self._keep, chat, context, turn, exchange, cost)
            # Where the turn can't be stored, the person still gets the answer.
            try:
                await asyncio.shield(keeping)
            except StorageError as error:
                emit(Error.of(error))
            emit(done)
        return done

    def _keep(self, chat: ChatConfig, context: Context, turn: ChatTurn, exchange: Exchange, cost: ModelSpend) -> None:
        answers.end_run(context)
        session_id, messages = turn.message.run, ModelMessagesTypeAdapter.dump_json(turn.messages).decode()
        # The session may be deleted or continued elsewhere meanwhile.
        try:
            with suppress(NotFound, ConflictError):
                _ = self.store.append(session_id, exchange.number - 1, replace(exchange, messages=messages))
        # The tokens are spent, whether or not the turn could be stored.
        finally:
            if chat.meter:
                chat.meter.record(session_id, chat.name, cost)

    async def _history(
        self, chat: ChatConfig, session_id: str, last: int, spent: RunUsage, emit: EventSink
    ) -> tuple[list[ModelMessage], tuple[str, ...]]:
        """Load the session's history, and summarize its beginning if too long; *spent* gets what can't be recorded.

        Returns:
            The history, and what the person is to be told of it.
        """
        head, turns = await asyncio.to_thread(self.store.history, session_id)
        messages = _read_messages(head.messages)
        for turn in turns:
            messages += _read_messages(turn.messages)
        if chat_turn.estimate_history_tokens(messages) <= chat.context_tokens:
            return messages, ()
        # Where the limits leave nothing, the turn itself reports it.
        try:
            _ = chat.meter.allow(session_id) if chat.meter else None
        except RefusedError:
            return messages, ()
        prompt, budget = chat.prompts.load("summary"), chat.context_tokens
        used, summary, failure = RunUsage(), None, None
        model = replies.report_retries(chat.model, lambda text: emit(Notice(text=text)))
        async with model:
            try:
                summary = await chat_turn.summarize_history(messages, model, budget=budget, prompt=prompt, usage=used)
            except usage.MODEL_ERRORS as error:
                failure = error
        shorter = summary or chat_turn.drop_beginning(messages, budget)
        try:
            if chat.meter:
                await asyncio.to_thread(chat.meter.record, session_id, chat.name, usage.read_usage(used), usage=used)
        except StorageError:
            # It is recorded with the turn's own cost, where the error is reported.
            spent.incr(used)
        # A server that fails may answer the next message, and has used nothing; a model may write nothing again, and
        # what is too long for it now only grows.
        may_come = isinstance(failure, ModelAPIError | FallbackExceptionGroup) and not usage.is_too_long(failure)
        if not may_come:
            head = HistorySummary(messages=ModelMessagesTypeAdapter.dump_json(shorter).decode(), upto=last)
            await asyncio.to_thread(self.store.sum_up, session_id, head)
        why = f": {usage.convert_model_error(failure, chat.name).message}" if failure else ""
        is_told = not summary and len(shorter) < len(messages)
        return shorter, (f"{BEGINNING_LEFT_OUT}{why}",) if is_told else ()


def _read_messages(messages: str) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json(messages)
