"""Sessions of MCP clients: their requests in threads, and the messages of streams for those that come back."""

import sqlite3
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Never, TypeVar
from uuid import uuid4

from fastmcp import FastMCP
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage
from typing_extensions import override

from knapper.app import Hub
from knapper.errors import KnapError, StorageError
from knapper.index import database
from knapper.server import logs
from knapper.server.workers import WorkerThreads, WorkKind
from knapper.tools.context import Context
from knapper.tools.registry import VaultOpener

_MAX_EVENTS: Final = 256
_MAX_EVENTS_PER_STREAM: Final = 32
_MAX_AGE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """One message of a stream."""

    id: EventId
    stream: StreamId
    message: JSONRPCMessage | None
    """None for the event with which a stream begins."""
    stored_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLimits:
    """How much is kept, and for how long."""

    events: int = _MAX_EVENTS
    """Of all streams together."""
    events_per_stream: int = _MAX_EVENTS_PER_STREAM
    """Of one answer."""
    age_s: float = _MAX_AGE_S


class RecentEvents(EventStore):
    """The last messages of all streams, in memory.

    It is used by one event loop alone, and never waits, so it needs no lock. An id can't be guessed; the transport
    gives each session streams of its own, so that no session reads another's messages.
    """

    def __init__(self, limits: EventLimits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without messages.

        Args:
            limits: How much is kept; None for the usual limits.
            clock: Seconds that only grow.
        """
        self._limits = limits or EventLimits()
        self._clock = clock
        self._events: OrderedDict[EventId, StoredEvent] = OrderedDict()
        self._streams: dict[StreamId, deque[EventId]] = {}

    @override
    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep a message, and forget what is too old or too much.

        Returns:
            Its id, with which a client says up to where it has read.
        """
        event = StoredEvent(id=str(uuid4()), stream=stream_id, message=message, stored_at=self._clock())
        self._events[event.id] = event
        stream = self._streams.setdefault(stream_id, deque())
        stream.append(event.id)
        if len(stream) > self._limits.events_per_stream:
            self._forget(stream[0])
        self._forget_old()
        return event.id

    @override
    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Send the messages of a stream that follow one of them.

        Returns:
            The stream; None where the message isn't kept any more.
        """
        self._forget_old()
        last = self._events.get(last_event_id)
        if last is None:
            return None
        ids = list(self._streams[last.stream])
        # Sending waits, and meanwhile events may be forgotten: they are taken first.
        following = [self._events[event_id] for event_id in ids[ids.index(last_event_id) + 1 :]]
        for event in following:
            if event.message is not None:
                await send_callback(EventMessage(event.message, event.id))
        return last.stream

    def _forget_old(self) -> None:
        oldest_allowed = self._clock() - self._limits.age_s
        while self._events:
            event = next(iter(self._events.values()))
            if event.stored_at >= oldest_allowed and len(self._events) <= self._limits.events:
                return
            self._forget(event.id)

    def _forget(self, event_id: EventId) -> None:
        event = self._events.pop(event_id)
        stream = self._streams[event.stream]
        stream.remove(event_id)
        if not stream:
            del self._streams[event.stream]


class NoState:
    """The state of a session, in the form that the library asks for: there is none."""

    async def get(self, key: str) -> None:
        """Return None: nothing is kept."""

    async def put(self, key: str, value: object, **options: object) -> Never:
        """Refuse to keep anything.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("Knapper keeps what belongs to a session itself")

    async def delete(self, key: str) -> bool:
        """Return False: there was nothing."""
        del key
        return False


class StatelessServer(FastMCP):
    """An MCP server without the library's store of sessions, whose packages take 14 MB.

    Whenever tools are listed or called, the library looks there for rules on which of them a session sees.
    """

    @property
    def _state_store(self) -> Any:  # noqa: ANN401 - the library's type is of a package that isn't installed
        return NoState()


_DEFAULT_THREADS = 8

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Caller:
    """A client's identity, and what it may reach."""

    client: str
    """The client whose policy applies."""
    run: str = ""
    """The session, where there is one: who has read foreign text in it only proposes for the rest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSession:
    """The work for all clients of one server."""

    hub: Hub
    identify: Callable[[], Caller]
    """Tells who sent the request that is being answered."""
    threads: WorkerThreads = field(default_factory=lambda: WorkerThreads(_DEFAULT_THREADS))

    def vaults(self) -> Sequence[str]:
        """Return the names of the vaults that the client may open."""
        return self.hub.names_for(self.identify().client)

    async def run_blocking(self, do: Callable[[VaultOpener], Result], kind: WorkKind = "read") -> Result:
        """Run work with vaults as the client sees them, without blocking other requests.

        A cancelled request is abandoned at once; a write that has started is finished.

        Raises:
            KnapError: As the work says, too much waits already, the system refuses, or a file of the program's state is
                damaged; where these lie on the machine stands in the log alone, since a model hears of errors.
        """
        try:
            return await self._done(do, kind)
        except KnapError as error:
            redacted = logs.redaction_for_settings(self.hub.settings).redact_error(error)
            if (redacted.message, redacted.hint) == (error.message, error.hint):
                raise
            logs.REDACTION_LOG.warning("%s: %r", error.code, error.message)
            raise redacted from error

    async def _done(self, do: Callable[[VaultOpener], Result], kind: WorkKind) -> Result:
        try:
            return await self.threads.run(kind, partial(do, partial(self._open, self.identify())))
        except OSError as error:
            hint = "`knap doctor` checks folders, permissions and space"
            raise StorageError(f"the system refused: {error.strerror or type(error).__name__}", hint=hint) from error
        except sqlite3.DatabaseError as error:
            storage_error = database.as_storage_error(error)
            if storage_error is None:
                raise
            raise storage_error from error

    def _open(self, caller: Caller, vault: str) -> Context:
        context = self.hub.context(client=caller.client, vault=vault)
        if not caller.run:
            return context
        from knapper.changes.writer import SubmitOptions  # noqa: PLC0415 - the handshake needn't pay for it

        return replace(context, submit_options=SubmitOptions(run=caller.run))
