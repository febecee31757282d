"""Define the events of a model's answer, and run the work that sends them in the background.

``Text(text="Hi", step=1).as_dict()`` gives ``{"type": "text", "text": "Hi", "step": 1}``. A turn is any number of
these, and always ends with `Done`; `Error` comes before it where something went wrong. Chat turns, tasks of several
agents and runs are jobs: each reports events, the last of which ends it, and clients may start listening late, leave,
and come back.
"""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import JsonValue

from knapper.errors import ConflictError, KnapError, NotFound
from knapper.jsontypes import JSONValue, Record, list_or_empty, objects_in
from knapper.tools.shapes.write import ProposalAnswer

TurnState = Literal["complete", "limit", "asked", "cancelled", "failed"]
"""How a turn ended: answered; stopped at a limit; with a question; by its person; by an error."""


class BaseEvent(Record):
    """The shape that all kinds of events share."""

    __slots__ = ()
    kind: ClassVar[str]
    """One word, such as ``text``."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return the event in the shape that every surface shows."""
        return {"type": self.kind, **Record.as_dict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(BaseEvent):
    """Text that the model adds to a reply."""

    kind: ClassVar[str] = "text"
    text: str
    step: int
    """The number of the reply that it belongs to, from 1; the last one holds the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(BaseEvent):
    """A call of a tool by the model."""

    kind: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: dict[str, JsonValue]
    """The arguments after repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(BaseEvent):
    """The answer of a tool."""

    kind: ClassVar[str] = "tool_result"
    id: str
    name: str
    success: bool
    summary: str
    """One line for a person: ``5 results``, or the error."""
    answer: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The tool's full answer; the model may have been shown less."""
    chars: int = 0
    truncated: bool = False

    def as_dict(self) -> dict[str, JSONValue]:
        """Return the event in the shape that every surface shows."""
        return {**BaseEvent.as_dict(self), "answer": dict(self.answer)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(BaseEvent):
    """The beginning of a round of tool calls; those that follow belong to it."""

    kind: ClassVar[str] = "round"
    phase: str
    """Which agent's."""
    number: int
    """From 1; a question to the person, or reading on, begins none."""
    limit: int
    """How many there may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalEvent(BaseEvent):
    """A proposal of the turn, which a person can accept by its id and digest."""

    kind: ClassVar[str] = "proposal"
    proposal: ProposalAnswer
    """As `knapper.tools.proposals.show_proposal` returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionEvent(BaseEvent):
    """A question to the person; their next message in the session answers it."""

    kind: ClassVar[str] = "question"
    id: str
    question: str
    options: list[JsonValue] = field(default_factory=list[JsonValue])


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(BaseEvent):
    """What the turn has used so far."""

    kind: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    requests: int
    cost_usd: float | None
    """None where the model's price isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debug(BaseEvent):
    """A model's conversation, for clients that asked for debug output."""

    kind: ClassVar[str] = "debug"
    phase: str
    """Whose: ``chat``, or the agent's of a task."""
    title: str
    text: str
    """Formatted for reading: JSON over several lines, prompts unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(BaseEvent):
    """A notice for the person."""

    kind: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(BaseEvent):
    """An error that ended the turn."""

    kind: ClassVar[str] = "error"
    error: str
    code: str
    hint: str = ""

    @classmethod
    def of(cls, error: KnapError) -> Self:
        """Return the event for an error of this program."""
        return cls(error=error.message, code=error.code, hint=error.hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(BaseEvent):
    """The end of the turn, with its whole outcome."""

    kind: ClassVar[str] = "done"
    state: TurnState
    answer: str
    """The answer with verified citations only; the streamed text may differ from it."""
    citations: list[JsonValue] = field(default_factory=list[JsonValue])
    removed: list[JsonValue] = field(default_factory=list[JsonValue])
    """Citations that were removed, each with the reason."""
    tools: list[JsonValue] = field(default_factory=list[JsonValue])
    proposals: list[JsonValue] = field(default_factory=list[JsonValue])
    """Ids of the turn's proposals."""
    changes: list[JsonValue] = field(default_factory=list[JsonValue])
    """Ids of the changes that were applied."""
    usage: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    model: str = ""
    session_id: str = ""
    notes: list[JsonValue] = field(default_factory=list[JsonValue])


Event: TypeAlias = (
    Text | ToolCall | ToolResult | Round | ProposalEvent | QuestionEvent | Usage | Debug | Notice | Error | Done
)

TRACE_FIELD: Final = "trace"
"""The field of a stored outcome that has the entries."""
MAX_VALUE_CHARS: Final = 6_000
"""Characters of the arguments or the answer of one call, and of a text between calls; longer ones are cut."""
MAX_TRACE_CHARS: Final = 200_000
"""Characters of all entries of one answer; what comes later is named without its details."""

TraceEntry = dict[str, JSONValue]
_DETAIL_FIELDS: Final = ("arguments", "answer", "chars", "truncated", "cut")


class TraceRecorder:
    """The entries of one answer.

    A text that the model said before a call gives ``{"kind": "text", "text": "I look."}``, a call ``{"kind": "call",
    "id": "c1", "name": "read_file", "arguments": {…}, "success": True, "summary": "…", "answer": {…}}``, and a round of
    the scout ``{"kind": "round", "number": 1, "limit": 5}`` before its calls. What is too long stands there as the
    beginning of its JSON, and ``cut`` names it. The text after the last call is the answer
    itself, and no entry.
    """

    def __init__(self, entries: Iterable[JSONValue] = ()) -> None:
        """Continue from the entries of an answer that was interrupted."""
        self._entries: list[TraceEntry] = [dict(entry) for entry in entries if isinstance(entry, dict)]
        self._chars_left = MAX_TRACE_CHARS - len(json.dumps(self._entries))
        self._text = ""
        self._text_step = 0

    def record(self, event: object) -> None:
        """Record an event; those of other kinds are ignored."""
        match event:
            case Text():
                if event.step != self._text_step:
                    self._end_text()
                    self._text_step = event.step
                self._text += event.text
            case ToolCall():
                self._end_text()
                entry = self._begin_call(event)
                entry |= {"success": None, "summary": ""}
                self._set_value(entry, "arguments", event.arguments)
            case Round():
                self._end_text()
                self._entries.append({"kind": "round", "number": event.number, "limit": event.limit})
            case ToolResult():
                call_id = _make_encodable(event.id)[:MAX_VALUE_CHARS]
                of_call = (one for one in reversed(self._entries) if one.get("id") == call_id)
                entry = next(of_call, None) or self._begin_call(event)
                entry |= {"success": event.success, "summary": _make_encodable(event.summary)[:MAX_VALUE_CHARS]}
                entry |= {"chars": event.chars, "truncated": event.truncated}
                self._set_value(entry, "answer", dict(event.answer))
            case _:
                pass

    def entries(self) -> list[JSONValue]:
        """Return the entries so far."""
        return [*self._entries]

    def _end_text(self) -> None:
        text, self._text = self._text.strip(), ""
        if text:
            entry: TraceEntry = {"kind": "text"}
            self._set_value(entry, "text", text)
            self._entries.append(entry)

    def _begin_call(self, event: ToolCall | ToolResult) -> TraceEntry:
        call_id, name = (_make_encodable(text)[:MAX_VALUE_CHARS] for text in (event.id, event.name))
        entry: TraceEntry = {"kind": "call", "id": call_id, "name": name}
        self._entries.append(entry)
        return entry

    def _set_value(self, entry: TraceEntry, name: Literal["text", "arguments", "answer"], value: JSONValue) -> None:
        """Set a value of an entry, or the beginning of its JSON where it is too long."""
        whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        encodable = _make_encodable(whole)
        if encodable != whole:
            whole, value = encodable, encodable if isinstance(value, str) else json.loads(encodable)
        max_chars = min(MAX_VALUE_CHARS, max(self._chars_left, 0))
        is_cut = len(whole) > max_chars
        kept = whole[:max_chars] if is_cut else value
        self._chars_left -= min(len(whole), max_chars)
        entry[name] = kept
        if is_cut:
            entry["cut"] = [*list_or_empty(entry.get("cut")), name]


def _make_encodable(text: str) -> str:
    """Replace halves of characters, which names of files may hold and no database takes."""
    return text.encode("utf-8", "replace").decode()


def add_trace(outcome: Mapping[str, JSONValue], entries: Iterable[JSONValue]) -> dict[str, JSONValue]:
    """Return an outcome as it is stored: with its entries, if there are any."""
    rows = [*entries]
    return {**outcome, TRACE_FIELD: rows} if rows else dict(outcome)


def without_details(entries: JSONValue) -> list[JSONValue]:
    """Return entries as a list of turns shows them: calls without arguments and answers."""
    return [
        {name: value for name, value in entry.items() if name not in _DETAIL_FIELDS} for entry in objects_in(entries)
    ]


def entries_of(outcome: Mapping[str, JSONValue]) -> list[JSONValue]:
    """Return the entries of a stored outcome; empty for one that was stored without."""
    return list_or_empty(outcome.get(TRACE_FIELD))


KEPT_S: Final = 600.0
"""How long a job that has ended can still be followed."""
MAX_RUNNING: Final = 64
_INTERNAL_ERROR: Final = "an unexpected error occurred"


FinalT = TypeVar("FinalT", bound=BaseEvent)
"""The event that ends a job."""
JobEventSink: TypeAlias = Callable[[BaseEvent], None]
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
    events: list[BaseEvent] = field(default_factory=list[BaseEvent])
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

    def tell(self, event: BaseEvent) -> None:
        """Append an event and wake the listeners."""
        self.events.append(event)
        for listener in self._listeners:
            listener.set()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, BaseEvent]]:
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
            self.tell(Error.of(error))
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
