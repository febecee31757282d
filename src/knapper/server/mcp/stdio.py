"""MCP over standard input and output, for one client; only protocol messages are written there."""

import asyncio
import contextlib
import io
import json
import logging.config
import os
import re
import signal
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import FrameType, TracebackType
from typing import Any, BinaryIO, Final, Self

import anyio
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError
from typing_extensions import override

from knapper.app import Hub
from knapper.jsontypes import is_object
from knapper.server import logs, workers
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession, StatelessServer, ToolListing

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PARSE_ERROR_TYPES: Final = frozenset({"json_invalid", "string_unicode"})
"""What the library calls text that isn't JSON, and text that isn't UTF-8."""
_PARSE_MESSAGE: Final = "Parse error: a line has to be JSON in UTF-8, without half a surrogate pair"
_INVALID_REQUEST_MESSAGE: Final = "Invalid request: a line has to be a message of JSON-RPC 2.0"


class MessageReader:
    """A reader of messages that answers invalid ones with a JSON-RPC error."""

    def __init__(self, reading: Any, writing: Any) -> None:  # noqa: ANN401 - the library's own streams have no public type
        """Store the two streams of a connection."""
        self._reading = reading
        self._writing = writing

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - as above
        """Return the context of the last message, which the library asks for."""
        return self._reading.last_context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or an error that isn't in the client's text."""
        while True:
            item = await self._reading.receive()
            if not isinstance(item, ValidationError):
                return item
            error = make_error_response(item)
            if error is not None:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens
                    await self._writing.send(SessionMessage(error))

    async def aclose(self) -> None:
        """Close the reading end."""
        await self._reading.aclose()

    def __aiter__(self) -> Self:
        """Return each message."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message, until the client has closed its end."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        """Read in a block."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        """Close the reading end."""
        await self.aclose()


def make_error_response(error: ValidationError) -> JSONRPCError | None:
    """Return the error for text that is no message, with its id if it has one; None for an empty line."""
    problems = error.errors(include_url=False, include_context=False)
    if problems[0]["type"] not in _PARSE_ERROR_TYPES:
        return _rpc_error(
            INVALID_REQUEST,
            _INVALID_REQUEST_MESSAGE,
            next(_request_ids(problem["input"] for problem in problems), None),
        )
    line = str(problems[0]["input"])
    if not line.strip():
        return None
    try:
        lenient_value = json.loads(line)  # more lenient: halves of pairs pass, so that the id is known
    except (ValueError, RecursionError):
        lenient_value = None
    return _rpc_error(PARSE_ERROR, _PARSE_MESSAGE, next(_request_ids([lenient_value]), None))


def _rpc_error(code: int, message: str, request: int | str | None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))


def _request_ids(inputs: Iterable[object]) -> Iterator[int | str]:
    for given in inputs:
        name = given.get("id") if is_object(given) else None
        if isinstance(name, str) and not _SURROGATE.search(name):
            yield name
        if isinstance(name, int) and not isinstance(name, bool):
            yield name


_SHUTDOWN_S: Final = 5.0
"""How long calls that run may take to their end when the client has gone."""
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def serve_stdio(hub: Hub, client: str, listing: ToolListing, *, watch: bool = True) -> None:
    """Serve until the client closes its end.

    Args:
        hub: The vaults.
        client: The client whose policy applies.
        listing: Which tools are listed.
        watch: Keep the indexes up to date while serving; the handshake doesn't wait for that.

    Raises:
        BrokenPipeError: The client has closed the end that it listens at, and left the other one open.
    """
    logging.config.dictConfig(logs.logging_configuration("WARNING"))
    asyncio.run(_serve_client(hub, Caller(client, run=f"{client}-{uuid.uuid4().hex[:12]}"), listing, watch=watch))


async def _serve_client(hub: Hub, caller: Caller, listing: ToolListing, *, watch: bool) -> None:
    session = McpSession(hub=hub, identify=lambda: caller)
    progress, client_left = _ClientProgress(), asyncio.Event()
    server = build_server(session, listing, kind=partial(_StdioServer, client_left))
    server.add_middleware(_ProgressMiddleware(progress))
    background_task = asyncio.create_task(_work_in_background(hub, progress, watch=watch))
    end_tasks: list[asyncio.Task[Any]] = [
        asyncio.create_task(_wait_for_signal()),
        asyncio.create_task(client_left.wait()),
    ]
    serve_task = asyncio.create_task(server.run_stdio_async(show_banner=False))
    try:
        _ = await asyncio.wait((serve_task, *end_tasks), return_when=asyncio.FIRST_COMPLETED)
    finally:
        others = [*end_tasks, background_task]
        for task in others:
            task.cancel()
        _ = await asyncio.gather(*others, return_exceptions=True)
        has_ended = session.threads.finish(_SHUTDOWN_S)
        if not (has_ended and serve_task.done()):
            # Calls are running: exit without closing what they use; an interrupted write is rolled back.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    has_gone = False
    try:
        serve_task.result()
    except* BrokenPipeError:
        has_gone = True
    if has_gone:
        raise BrokenPipeError("the client doesn't listen any more")


async def _wait_for_signal() -> None:
    """Wait for a signal to stop; a blocked read of a line can't be interrupted."""
    loop, bell = asyncio.get_running_loop(), asyncio.Event()

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        _ = loop.call_soon_threadsafe(bell.set)

    for name in _SIGNALS:
        if hasattr(signal, name):
            _ = signal.signal(getattr(signal, name), ring)
    await bell.wait()


class _StdioServer(StatelessServer):
    """The library's server, which also answers invalid lines and detects a client that has gone."""

    def __init__(self, client_left: asyncio.Event, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as the library has them
        """Take what is told when the client has closed the end that it listens at."""
        super().__init__(*args, **more)
        self._left = client_left

    @override
    async def run_stdio_async(
        self, show_banner: bool = False, log_level: str | None = None, stateless: bool = False
    ) -> None:
        """Serve the one client of this process until it closes its end."""
        del show_banner, log_level, stateless
        # A byte that isn't UTF-8 becomes a surrogate, which makes the message invalid. The library would replace it by
        # a mark, which could be written into a note as if the client had sent it.
        stdin = io.TextIOWrapper(take_stdin(), encoding="utf-8", errors="surrogateescape")
        token = set_transport("stdio")
        try:
            async with self._lifespan_manager(), stdio_server(anyio.wrap_file(stdin)) as (reading, writing):
                messages: Any = MessageReader(reading, writing)
                # Until the client closes its end, or the library gives up because nothing can be written.
                try:
                    await self._mcp_server.run(messages, writing, self._mcp_server.create_initialization_options())
                except asyncio.CancelledError:  # it waits for one more line now, which may never come
                    self._left.set()
                    raise
        finally:
            reset_transport(token)


def take_stdin() -> BinaryIO:
    """Return the standard input for the caller alone; whatever else looks at it from then on finds an empty one.

    On Windows, who looks at a pipe in which a thread waits for a line waits too, until the client's next message. The
    libraries that numpy loads do so while they are loaded, which held up the first search of a vault.
    """
    own = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    empty = os.open(os.devnull, os.O_RDONLY)
    _ = os.dup2(empty, sys.stdin.fileno())
    os.close(empty)
    return own


_HANDSHAKE_METHODS: Final = frozenset({"initialize", "notifications/initialized", "ping", "server/discover"})
_MAX_QUIET_S: Final = 2.0
"""How long a client may be quiet after the handshake before its vaults are read anyway."""


@dataclass(frozen=True, slots=True)
class _ClientProgress:
    """How far a client has come."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether its first message was answered."""
    in_use: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether a message after the handshake was answered, such as the list of tools."""


class _ProgressMiddleware(Middleware):
    """Middleware that notes how far the client has come."""

    def __init__(self, progress: _ClientProgress) -> None:
        self._progress = progress

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - whatever it is
        answer = await call_next(context)
        self._progress.answered.set()
        if context.method not in _HANDSHAKE_METHODS:
            self._progress.in_use.set()
        return answer


async def _work_in_background(hub: Hub, progress: _ClientProgress, *, watch: bool) -> None:
    """Prepare for the first call, and keep the indexes up to date.

    Both begin once the client has its list of tools, since either would delay that.
    """
    await progress.answered.wait()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(progress.in_use.wait(), _MAX_QUIET_S)
    _ = await asyncio.to_thread(lambda: hub.table)  # what the tools need is imported here
    if not watch:
        return
    async with workers.return_memory(), workers.run_watchers(workers.engine_openers(hub)):
        await asyncio.Event().wait()
