"""Let turns go on by themselves, so that whoever listens may come late, leave, and come back."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Final

from knapper.agents.chat import Tell
from knapper.agents.events import Done, Error, Event
from knapper.errors import ConflictError, KnapError, NotFound

KEPT_S: Final = 600.0
"""How long a turn that has ended can still be listened to."""
MAX_RUNNING: Final = 64
_INTERNAL: Final = "something went wrong here that nobody foresaw"


@dataclass(slots=True, kw_only=True)
class LiveTurn:
    """Hold a turn that goes on, or has ended a while ago."""

    id: str
    session_id: str
    question: str = ""
    """What is answered; for who comes late."""
    events: list[Event] = field(default_factory=list[Event])
    """All so far; an event's number is its place here, from 1."""
    failure: BaseException | None = None
    """What nobody foresaw; for the log."""
    ended_at: float = 0.0
    _task: asyncio.Task[object] | None = None
    _is_cancelled: bool = False
    _listeners: set[asyncio.Event] = field(default_factory=set[asyncio.Event])

    @property
    def has_ended(self) -> bool:
        """Tell whether no more comes."""
        return self.ended_at > 0

    def tell(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)
        for listener in self._listeners:
            listener.set()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, Event]]:
        """Give events with their numbers: those that were, then those that come; ends with the turn.

        Args:
            after: The number of the last event that the listener has; 0 for none.
        """
        bell = asyncio.Event()
        self._listeners.add(bell)
        try:
            at = max(0, after)
            while True:
                bell.clear()
                while at < len(self.events):
                    at += 1
                    yield at, self.events[at - 1]
                if self.has_ended:
                    return
                await bell.wait()
        finally:
            self._listeners.discard(bell)

    def cancel(self) -> bool:
        """Stop the turn; tells whether it was still going on. What there is, is kept."""
        if self._task is None or self.has_ended:
            return False
        if not self._is_cancelled:  # once: a second time would cut short what keeps the turn
            self._is_cancelled = True
            _ = self._task.cancel()
        return True

    async def wait(self) -> Done:
        """Wait for its end."""
        async for _, event in self.follow(len(self.events)):
            del event
        return next(event for event in reversed(self.events) if isinstance(event, Done))

    def begin(self, work: Callable[[Tell], Coroutine[object, object, object]]) -> None:
        """Start the turn in a task of its own."""
        self._task = asyncio.create_task(work(self.tell), name=f"turn {self.id}")
        self._task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[object]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KnapError):
            self.tell(Error(error=error.message, code=error.code, hint=error.hint))
        elif error is not None:
            self.failure = error
            self.tell(Error(error=_INTERNAL, code="internal", hint="the server's log has more"))
        if not any(isinstance(event, Done) for event in self.events):
            state = "cancelled" if task.cancelled() else "failed"
            self.tell(Done(state=state, answer="", session_id=self.session_id))
        self.ended_at = time.monotonic()
        for listener in self._listeners:
            listener.set()


class LiveTurns:
    """Hold the turns of one server; used from its event loop only."""

    def __init__(self, *, kept_s: float = KEPT_S, max_running: int = MAX_RUNNING) -> None:
        """Begin without any.

        Args:
            kept_s: How long ended turns can be listened to.
            max_running: How many may go on at once.
        """
        self._turns: dict[str, LiveTurn] = {}
        self._kept_s = kept_s
        self._max_running = max_running

    def start(
        self, session_id: str, work: Callable[[Tell], Coroutine[object, object, object]], question: str = ""
    ) -> LiveTurn:
        """Start a turn.

        Args:
            session_id: Its session's.
            work: Answers, telling what happens.
            question: What is answered.

        Raises:
            ConflictError: Too many go on (code ``too_many_turns``).
        """
        self._tidy()
        if len(self.going_on()) >= self._max_running:
            raise ConflictError("too many messages are being answered", hint="wait a moment", code="too_many_turns")
        turn = LiveTurn(id=str(uuid.uuid4()), session_id=session_id, question=question)
        self._turns[turn.id] = turn
        turn.begin(work)
        return turn

    def find(self, turn_id: str) -> LiveTurn:
        """Give a turn by its id, or the latest one of a session by that.

        Raises:
            NotFound: There is none, or it ended long ago (code ``no_turn``).
        """
        self._tidy()
        if turn_id in self._turns:
            return self._turns[turn_id]
        of_session = [turn for turn in self._turns.values() if turn.session_id == turn_id]
        if not of_session:
            hint = "the session holds what came of turns that ended"
            raise NotFound("there is no such turn", hint=hint, code="no_turn")
        return of_session[-1]

    def going_on(self) -> list[LiveTurn]:
        """List the turns that haven't ended."""
        return [turn for turn in self._turns.values() if not turn.has_ended]

    async def shut(self) -> None:
        """Cancel all turns, and wait until what there is, is kept."""
        for turn in self._turns.values():
            _ = turn.cancel()
        for turn in list(self._turns.values()):
            _ = await turn.wait()

    def _tidy(self) -> None:
        now = time.monotonic()
        gone = [turn.id for turn in self._turns.values() if turn.has_ended and now - turn.ended_at > self._kept_s]
        for turn_id in gone:
            del self._turns[turn_id]
