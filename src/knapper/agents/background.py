"""Run work in the background, so that clients may start listening late, leave, and come back.

Chat turns, tasks of several agents and runs are such jobs: each reports events, the last of which ends it.
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
"""How long a job that has ended can still be followed."""
MAX_RUNNING: Final = 64
_INTERNAL_ERROR: Final = "an unexpected error occurred"


class JobEvent(Protocol):
    """The shape of every event."""

    kind: ClassVar[str]
    """One word, such as ``text``."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return the event in the shape that every surface shows."""
        ...


FinalT = TypeVar("FinalT", bound=JobEvent)
"""The event that ends a job."""
JobEventSink: TypeAlias = Callable[[JobEvent], None]
JobFunction: TypeAlias = Callable[[JobEventSink], Coroutine[object, object, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalEventSpec(Generic[FinalT]):
    """The kind of event that ends a job, and how to make one where the job reports none."""

    kind: type[FinalT]
    make: Callable[[TurnState, str], FinalT]
    """Makes one from how the job ended, *cancelled* or *failed*, and the id of its subject."""


@dataclass(slots=True, kw_only=True)
class BackgroundJob(Generic[FinalT]):
    """A job that is running, or has ended recently."""

    id: str
    subject_id: str
    """The id of the session or run that the job works on."""
    ending: FinalEventSpec[FinalT]
    question: str = ""
    """The question that is answered, for clients that join late."""
    session_id: str = ""
    """The session that the job belongs to, where its subject is something else."""
    events: list[JobEvent] = field(default_factory=list[JobEvent])
    """All events so far; an event's number is its position here, from 1."""
    failure: BaseException | None = None
    """An unexpected exception, for the log."""
    ended_at: float = 0.0
    _task: asyncio.Task[object] | None = None
    _is_cancelled: bool = False
    _listeners: set[asyncio.Event] = field(default_factory=set[asyncio.Event])

    @property
    def has_ended(self) -> bool:
        """Return whether no more events follow."""
        return self.ended_at > 0

    def tell(self, event: JobEvent) -> None:
        """Append an event and wake the listeners."""
        self.events.append(event)
        for listener in self._listeners:
            listener.set()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, JobEvent]]:
        """Yield events with their numbers, past ones first, until the job ends.

        Args:
            after: The number of the last event that the listener has; 0 for none.
        """
        wakeup = asyncio.Event()
        self._listeners.add(wakeup)
        try:
            position = max(0, after)
            while True:
                # Cleared before the list is read: an event that arrives while the listener is suspended sets it again.
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
        """Cancel the job and return whether it was still running; its partial results are kept."""
        if self._task is None or self.has_ended:
            return False
        # Only once: a second cancellation would interrupt the code that saves the partial results.
        if not self._is_cancelled:
            self._is_cancelled = True
            _ = self._task.cancel()
        return True

    async def wait(self) -> FinalT:
        """Wait until the job ends, and return its last event."""
        async for _, event in self.follow(len(self.events)):
            del event
        return next(event for event in reversed(self.events) if isinstance(event, self.ending.kind))

    def start(self, work: JobFunction) -> None:
        """Start the job in a task of its own."""
        self._task = asyncio.create_task(work(self.tell), name=f"job {self.id}")
        self._task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[object]") -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KnapError):
            self.tell(Error(error=error.message, code=error.code, hint=error.hint))
        elif error is not None:
            self.failure = error
            self.tell(Error(error=_INTERNAL_ERROR, code="internal", hint="the server's log has more"))
        # A job that is cancelled before its first step has reported nothing, but listeners wait for its end.
        if not any(isinstance(event, self.ending.kind) for event in self.events):
            self.tell(self.ending.make("cancelled" if task.cancelled() else "failed", self.subject_id))
        self.ended_at = time.monotonic()
        for listener in self._listeners:
            listener.set()


class BackgroundJobs(Generic[FinalT]):
    """The jobs of one kind in a server; to be used from its event loop only."""

    def __init__(
        self, ending: FinalEventSpec[FinalT], *, kept_s: float = KEPT_S, max_running: int = MAX_RUNNING
    ) -> None:
        """Begin without any jobs.

        Args:
            ending: The event that ends a job.
            kept_s: How long a job that has ended can be followed.
            max_running: How many jobs may run at once.
        """
        self._jobs: dict[str, BackgroundJob[FinalT]] = {}
        self._ending = ending
        self._kept_s = kept_s
        self._max_running = max_running

    def start(self, about: str, work: JobFunction, question: str = "") -> BackgroundJob[FinalT]:
        """Start a job.

        Args:
            about: The id of its subject.
            work: The job's function, which reports its events.
            question: The question that it answers.

        Raises:
            ConflictError: Too many jobs are running (code ``too_many_turns``).
        """
        self._tidy()
        if len(self.running()) >= self._max_running:
            raise ConflictError("too many messages are being answered", hint="wait a moment", code="too_many_turns")
        job = BackgroundJob(id=str(uuid.uuid4()), subject_id=about, question=question, ending=self._ending)
        self._jobs[job.id] = job
        job.start(work)
        return job

    def find(self, key: str) -> BackgroundJob[FinalT]:
        """Return a job by its id, or the latest one by the id of its subject.

        Raises:
            NotFound: There is none, or it ended too long ago (code ``no_turn``).
        """
        self._tidy()
        if key in self._jobs:
            return self._jobs[key]
        matches = [job for job in self._jobs.values() if job.subject_id == key]
        if not matches:
            hint = "turns that ended are in their session"
            raise NotFound("there is no such turn", hint=hint, code="no_turn")
        return matches[-1]

    def running(self) -> list[BackgroundJob[FinalT]]:
        """List the jobs that haven't ended."""
        return [job for job in self._jobs.values() if not job.has_ended]

    async def shut(self) -> None:
        """Cancel all jobs, and wait until their partial results are kept."""
        # All are cancelled before the first is waited for, so that they end side by side.
        for job in self._jobs.values():
            _ = job.cancel()
        for job in list(self._jobs.values()):
            _ = await job.wait()

    def _tidy(self) -> None:
        now = time.monotonic()
        expired = [job.id for job in self._jobs.values() if job.has_ended and now - job.ended_at > self._kept_s]
        for key in expired:
            del self._jobs[key]


TurnJob: TypeAlias = BackgroundJob[Done]
TurnJobs: TypeAlias = BackgroundJobs[Done]
TURN_END: Final = FinalEventSpec(
    kind=Done, make=lambda state, session: Done(state=state, answer="", session_id=session)
)


def make_turn_jobs(*, kept_s: float = KEPT_S, max_running: int = MAX_RUNNING) -> TurnJobs:
    """Return an empty set of jobs for a server's chat turns."""
    return BackgroundJobs(TURN_END, kept_s=kept_s, max_running=max_running)
