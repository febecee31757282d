"""Let work go on by itself, so that whoever listens may come late, leave, and come back.

Turns of chats, tasks of several agents and runs are such work: each tells events, and one that ends it.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from knapper.agents.events import Done, Error, TurnState
from knapper.errors import ConflictError, KnapError, NotFound
from knapper.jsontypes import JSONValue

KEPT_S: Final = 600.0
"""How long work that has ended can still be listened to."""
MAX_RUNNING: Final = 64
_INTERNAL_ERROR: Final = "something went wrong here that nobody foresaw"


class JobEvent(Protocol):
    """Be an event of any kind."""

    kind: ClassVar[str]
    """One word, such as ``text``."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        ...


FinalT = TypeVar("FinalT", bound=JobEvent)
"""The event that ends the work."""
JobEventSink: TypeAlias = Callable[[JobEvent], None]
JobFunction: TypeAlias = Callable[[JobEventSink], Coroutine[object, object, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalEventSpec(Generic[FinalT]):
    """Say which event ends the work, and make one where the work itself tells none."""

    kind: type[FinalT]
    make: Callable[[TurnState, str], FinalT]
    """From how it ended, *cancelled* or *failed*, and what it is about."""


@dataclass(slots=True, kw_only=True)
class BackgroundJob(Generic[FinalT]):
    """Work that goes on, or has ended a while ago."""

    id: str
    subject_id: str
    """The id of what it is work on: a session's, or a run's."""
    ending: FinalEventSpec[FinalT]
    question: str = ""
    """What is answered; for who comes late."""
    session_id: str = ""
    """The session in which it goes on, where it is work on something else."""
    events: list[JobEvent] = field(default_factory=list[JobEvent])
    """All so far; an event's number is its place here, from 1."""
    failure: BaseException | None = None
    """What nobody foresaw; for the log."""
    ended_at: float = 0.0
    _task: asyncio.Task[object] | None = None
    _is_cancelled: bool = False
    _listeners: set[asyncio.Event] = field(default_factory=set[asyncio.Event])

    @property
    def has_ended(self) -> bool:
        """Return whether no more comes."""
        return self.ended_at > 0

    def tell(self, event: JobEvent) -> None:
        """Take an event."""
        self.events.append(event)
        for listener in self._listeners:
            listener.set()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, JobEvent]]:
        """Return events with their numbers: those that were, then those that come; ends with the work.

        Args:
            after: The number of the last event that the listener has; 0 for none.
        """
        wakeup = asyncio.Event()
        self._listeners.add(wakeup)
        try:
            position = max(0, after)
            while True:
                wakeup.clear()
                while position < len(self.events):
                    position += 1
                    yield position, self.events[position - 1]
                if self.has_ended:
                    return
                await wakeup.wait()
        finally:
            self._listeners.discard(wakeup)

    def cancel(self) -> bool:
        """Stop the work; tells whether it was still going on. What there is, is kept."""
        if self._task is None or self.has_ended:
            return False
        if not self._is_cancelled:  # once: a second time would cut short what keeps what there is
            self._is_cancelled = True
            _ = self._task.cancel()
        return True

    async def wait(self) -> FinalT:
        """Wait for its end."""
        async for _, event in self.follow(len(self.events)):
            del event
        return next(event for event in reversed(self.events) if isinstance(event, self.ending.kind))

    def start(self, work: JobFunction) -> None:
        """Start the work in a task of its own."""
        self._task = asyncio.create_task(work(self.tell), name=f"live {self.id}")
        self._task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[object]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KnapError):
            self.tell(Error(error=error.message, code=error.code, hint=error.hint))
        elif error is not None:
            self.failure = error
            self.tell(Error(error=_INTERNAL_ERROR, code="internal", hint="the server's log has more"))
        if not any(isinstance(event, self.ending.kind) for event in self.events):
            self.tell(self.ending.make("cancelled" if task.cancelled() else "failed", self.subject_id))
        self.ended_at = time.monotonic()
        for listener in self._listeners:
            listener.set()


class BackgroundJobs(Generic[FinalT]):
    """The work of one kind that goes on in a server; used from its event loop only."""

    def __init__(
        self, ending: FinalEventSpec[FinalT], *, kept_s: float = KEPT_S, max_running: int = MAX_RUNNING
    ) -> None:
        """Begin without any.

        Args:
            ending: What ends it.
            kept_s: How long what has ended can be listened to.
            max_running: How many may go on at once.
        """
        self._jobs: dict[str, BackgroundJob[FinalT]] = {}
        self._ending = ending
        self._kept_s = kept_s
        self._max_running = max_running

    def start(self, about: str, work: JobFunction, question: str = "") -> BackgroundJob[FinalT]:
        """Start work.

        Args:
            about: The id of what it is work on.
            work: Does it, telling what happens.
            question: What is answered.

        Raises:
            ConflictError: Too much goes on (code ``too_many_turns``).
        """
        self._tidy()
        if len(self.running()) >= self._max_running:
            raise ConflictError("too many messages are being answered", hint="wait a moment", code="too_many_turns")
        live = BackgroundJob(id=str(uuid.uuid4()), subject_id=about, question=question, ending=self._ending)
        self._jobs[live.id] = live
        live.start(work)
        return live

    def find(self, key: str) -> BackgroundJob[FinalT]:
        """Return work by its id, or the latest by the id of what it is about.

        Raises:
            NotFound: There is none, or it ended long ago (code ``no_turn``).
        """
        self._tidy()
        if key in self._jobs:
            return self._jobs[key]
        matches = [live for live in self._jobs.values() if live.subject_id == key]
        if not matches:
            hint = "the session holds what came of turns that ended"
            raise NotFound("there is no such turn", hint=hint, code="no_turn")
        return matches[-1]

    def running(self) -> list[BackgroundJob[FinalT]]:
        """List what hasn't ended."""
        return [live for live in self._jobs.values() if not live.has_ended]

    async def shut(self) -> None:
        """Cancel all, and wait until what there is, is kept."""
        for live in self._jobs.values():
            _ = live.cancel()
        for live in list(self._jobs.values()):
            _ = await live.wait()

    def _tidy(self) -> None:
        now = time.monotonic()
        expired = [live.id for live in self._jobs.values() if live.has_ended and now - live.ended_at > self._kept_s]
        for key in expired:
            del self._jobs[key]


TurnJob: TypeAlias = BackgroundJob[Done]
TurnJobs: TypeAlias = BackgroundJobs[Done]
TURN_END: Final = FinalEventSpec(
    kind=Done, make=lambda state, session: Done(state=state, answer="", session_id=session)
)


def make_turn_jobs(*, kept_s: float = KEPT_S, max_running: int = MAX_RUNNING) -> TurnJobs:
    """Hold a server's turns of chats; it begins without any."""
    return BackgroundJobs(TURN_END, kept_s=kept_s, max_running=max_running)
