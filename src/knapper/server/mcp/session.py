"""What MCP lists of each tool, and sessions of its clients: requests in threads, messages for those that come back.

The definitions are made ahead of time, since building all schemas anew would take half a second of a start:
``scripts/reference`` writes them into `FILE` beside this module, and a test holds them against the table of tools.
"""

import json
import sqlite3
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Never, TypeVar
from uuid import uuid4

from fastmcp import FastMCP
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage
from typing_extensions import override

from knapper.app import Hub
from knapper.errors import KnapError, StorageError
from knapper.index import database
from knapper.jsontypes import object_or_empty, objects_in
from knapper.server import logs
from knapper.server.workers import WorkerThreads, WorkKind
from knapper.tools import registry
from knapper.tools.context import Context, ToolSelection
from knapper.tools.registry import ToolEffect, ToolProfile, VaultOpener

if TYPE_CHECKING:
    from knapper.jsontypes import JSONValue
    from knapper.tools.registry import ToolSpec


FILE: Final = "tools.json"
_SHORT_SELECTIONS: Final[frozenset[ToolSelection]] = frozenset({"essential", "standard"})
"""Those whose definitions leave out what a model can do without, for it takes room in its context."""
_VAULT: Final = "vault"
_PAGE_PARAMETERS: Final = frozenset({"limit", "offset"})
"""Parameters whose names say enough."""
_EMPTY_DEFAULTS: Final = ("", 0, None)
"""Defaults that stand for what isn't given; False is one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpDefinition:
    """One tool of the table, as clients may be told of it."""

    name: str
    title: str
    effect: ToolEffect
    profile: ToolProfile
    is_twin: bool
    open_world: bool
    repeatable: bool
    summary: str
    description: str
    shown: tuple[str, ...]
    """The parameters that the essential selection lists."""
    usual: tuple[str, ...]
    """The parameters that the standard selection lists."""
    parameters: "dict[str, JSONValue]"
    """The whole JSON Schema of the arguments, without references: some clients know none."""
    answer: "dict[str, JSONValue]"
    """The JSON Schema of the answer, without references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """Which tools a server lists, and with what."""

    choice: ToolSelection = "standard"
    output_schemas: bool | None = None
    """Whether each says what it answers; None for where the selection lists whole definitions."""

    @property
    def has_output_schemas(self) -> bool:
        """Return whether the tools say what they answer."""
        return self.choice not in _SHORT_SELECTIONS if self.output_schemas is None else self.output_schemas

    def describe(self, definition: McpDefinition) -> str:
        """Return a tool's description, as long as the selection has them."""
        return definition.summary if self.is_short(definition) else definition.description

    def parameters(
        self, definition: McpDefinition, vaults: Sequence[str], *, names_vaults: bool
    ) -> "dict[str, JSONValue]":
        """Return the schema of a tool's arguments, as long as the selection has them.

        Args:
            definition: The tool.
            vaults: Those that the server has.
            names_vaults: Whether a short definition lists the vaults; one with the list is enough.
        """
        whole = registry.add_vault_parameter(definition.parameters, vaults)
        if not self.is_short(definition):
            return whole
        kept = {*(definition.shown if self.choice == "essential" else definition.usual), _VAULT}
        described = object_or_empty(whole["properties"])
        properties: dict[str, JSONValue] = {}
        for name in (name for name in described if name in kept):
            short = dict(object_or_empty(described[name]))
            if short.get("default", ...) in _EMPTY_DEFAULTS:
                del short["default"]
            kinds = [kind for kind in objects_in(short.get("anyOf")) if kind != {"type": "null"}]
            if len(kinds) == 1:
                del short["anyOf"]
                short |= kinds[0]
            if name in _PAGE_PARAMETERS:
                short.pop("description", None)
            properties[name] = short
        if _VAULT in properties:
            names: dict[str, JSONValue] = {"enum": object_or_empty(described[_VAULT])["enum"]} if names_vaults else {}
            properties[_VAULT] = {"type": "string", **names}
        remaining = {name: value for name, value in whole.items() if name != "additionalProperties"}
        return {**remaining, "properties": properties}

    def is_short(self, definition: McpDefinition) -> bool:
        """Return whether a tool's definition leaves out what a model can do without."""
        return self.choice in _SHORT_SELECTIONS and registry.is_listed(definition, self.choice)


def define(row: "ToolSpec") -> McpDefinition:
    """Return the definition of a row of the table."""
    from fastmcp.utilities.json_schema import dereference_refs  # noqa: PLC0415 - a start reads the file instead

    parameters = dereference_refs(registry.parameter_schema(row))
    names = [name for name in parameters["properties"] if name not in registry.parse_parameters(row).submit_options]
    return McpDefinition(
        name=row.name,
        title=row.title,
        effect=row.effect,
        profile=row.profile,
        is_twin=row.is_twin,
        open_world=row.open_world,
        repeatable=row.repeatable,
        summary=registry.summarize(row),
        description=registry.describe(row),
        shown=row.shown or tuple(names),
        usual=tuple(name for name in names if name not in row.rare),
        parameters=parameters,
        answer=dereference_refs(registry.answer_schema(row)),
    )


def dump_definitions(rows: "Iterable[ToolSpec]") -> str:
    """Return the text of the file for the rows of the table; answers that several tools share stand in it once."""
    answers: list[JSONValue] = []
    tools: list[JSONValue] = []
    for row in rows:
        definition: dict[str, JSONValue] = asdict(define(row))
        if definition["answer"] not in answers:
            answers.append(definition["answer"])
        tools.append({**definition, "answer": answers.index(definition["answer"])})
    lists = {"answers": answers, "tools": tools}
    # A line a tool, so that two changes of different tools can be merged.
    parts: list[str] = []
    for name, values in lists.items():
        lines = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values]
        parts.append(f'"{name}":[\n' + ",\n".join(lines) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


@cache
def load_definitions() -> "Mapping[str, McpDefinition]":
    """Return the definitions of all tools by name, in the order of the table."""
    content = json.loads(resources.files(__package__ or "").joinpath(FILE).read_text(encoding="utf-8"))
    definitions: dict[str, McpDefinition] = {}
    for tool in content["tools"]:
        listed = {name: tuple(tool[name]) for name in ("shown", "usual")}
        members: dict[str, Any] = {**tool, **listed, "answer": content["answers"][tool["answer"]]}
        definitions[tool["name"]] = McpDefinition(**members)
    return definitions


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
