"""Serve one client over standard input and output; nothing but the protocol is ever printed there."""

import asyncio
import io
import logging.config
import os
import signal
import sys
import uuid
from functools import partial
from types import FrameType
from typing import Any, Final

import anyio
from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp.server.stdio import stdio_server
from typing_extensions import override

from knapper.app import Hub
from knapper.server import logs, watchers
from knapper.server.mcp.build import build
from knapper.server.mcp.callers import Caller, Desk
from knapper.server.mcp.unreadable import Heard
from knapper.tools.context import ToolSelection

_FINISH_S: Final = 5.0
"""How long calls that run may take to their end when the client has gone."""
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def run(hub: Hub, client: str, choice: ToolSelection, *, watch: bool = True) -> None:
    """Serve until the client closes its end.

    Args:
        hub: The vaults.
        client: Whose policy holds.
        choice: Which tools are listed.
        watch: Keep the indexes up to date meanwhile; the handshake doesn't wait for that.

    Raises:
        BrokenPipeError: The client has closed the end that it listens at, and left the other one open.
    """
    logging.config.dictConfig(logs.configuration("WARNING"))
    asyncio.run(_serve(hub, Caller(client, run=f"{client}-{uuid.uuid4().hex[:12]}"), choice, watch=watch))


async def _serve(hub: Hub, caller: Caller, choice: ToolSelection, *, watch: bool) -> None:
    desk = Desk(hub=hub, identify=lambda: caller)
    met, left = asyncio.Event(), asyncio.Event()
    server = build(desk, choice, kind=partial(_Server, left))
    server.add_middleware(_Meeting(met))
    watching = asyncio.create_task(_follow(hub, met)) if watch else None
    ending: list[asyncio.Task[Any]] = [asyncio.create_task(_signalled()), asyncio.create_task(left.wait())]
    serving = asyncio.create_task(server.run_stdio_async(show_banner=False))
    try:
        _ = await asyncio.wait((serving, *ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        others = [*ending, watching] if watching else ending
        for task in others:
            task.cancel()
        _ = await asyncio.gather(*others, return_exceptions=True)
        has_ended = desk.threads.finish(_FINISH_S)
        if not (has_ended and serving.done()):
            _leave()
    has_gone = False
    try:
        serving.result()
    except* BrokenPipeError:
        has_gone = True
    if has_gone:
        raise BrokenPipeError("the client doesn't listen any more")


async def _signalled() -> None:
    """Wait for a signal to end; reading a line can't be broken off, so that an interrupt would wait for the next."""
    loop, bell = asyncio.get_running_loop(), asyncio.Event()

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        _ = loop.call_soon_threadsafe(bell.set)

    for name in _SIGNALS:
        if hasattr(signal, name):
            _ = signal.signal(getattr(signal, name), ring)
    await bell.wait()


def _leave() -> None:
    """End the process although something runs on, and leave open what that uses; every write is whole or taken back."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class _Server(FastMCP):
    """Answer lines that are no messages, too, and tell when nobody listens any more."""

    def __init__(self, left: asyncio.Event, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as the library has them
        """Take what is told when the client has closed the end that it listens at."""
        super().__init__(*args, **more)
        self._left = left

    @override
    async def run_stdio_async(
        self, show_banner: bool = False, log_level: str | None = None, stateless: bool = False
    ) -> None:
        """Serve the one client of this process until it closes its end."""
        del show_banner, log_level, stateless
        token = set_transport("stdio")
        try:
            async with self._lifespan_manager(), stdio_server(_lines()) as (reading, writing):
                await self._hear(Heard(reading, writing), writing)
        finally:
            reset_transport(token)

    async def _hear(self, reading: Any, writing: Any) -> None:  # noqa: ANN401 - the library's streams
        """Answer until the client closes its end, or until the library gives up because nothing can be written."""
        try:
            await self._mcp_server.run(reading, writing, self._mcp_server.create_initialization_options())
        except asyncio.CancelledError:  # it waits for one more line now, which may never come
            self._left.set()
            raise


def _lines() -> anyio.AsyncFile[str]:
    """Read what the client sends; a byte that isn't UTF-8 is kept as what no message may hold.

    The library would put a mark in its place, which would be written into a note as if the client had said it.
    """
    return anyio.wrap_file(io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape"))


class _Meeting(Middleware):
    """Tell when the first message of the client was answered."""

    def __init__(self, met: asyncio.Event) -> None:
        self._met = met

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:  # noqa: ANN401 - whatever it is
        answer = await call_next(context)
        self._met.set()
        return answer


async def _follow(hub: Hub, met: asyncio.Event) -> None:
    """Keep the indexes up to date, from the first answer on: reading a vault leaves little time for others."""
    await met.wait()
    async with watchers.running(watchers.engines(hub)):
        await asyncio.Event().wait()
