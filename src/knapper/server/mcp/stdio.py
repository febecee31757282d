"""Serve one client over standard input and output; nothing but the protocol is ever printed there."""

import asyncio
import logging.config
import uuid
from typing import Any

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
from knapper.tools.profiles import Choice


def run(hub: Hub, client: str, choice: Choice, *, watch: bool = True) -> None:
    """Serve until the client closes its end.

    Args:
        hub: The vaults.
        client: Whose policy holds.
        choice: Which tools are listed.
        watch: Keep the indexes up to date meanwhile; the handshake doesn't wait for that.
    """
    logging.config.dictConfig(logs.configuration("WARNING"))
    asyncio.run(_serve(hub, Caller(client, run=f"{client}-{uuid.uuid4().hex[:12]}"), choice, watch=watch))


async def _serve(hub: Hub, caller: Caller, choice: Choice, *, watch: bool) -> None:
    desk = Desk(hub=hub, identify=lambda: caller)
    server = build(desk, choice, kind=_Server)
    met = asyncio.Event()
    server.add_middleware(_Meeting(met))
    watching = asyncio.create_task(_follow(hub, met)) if watch else None
    try:
        await server.run_stdio_async(show_banner=False)
    finally:
        desk.threads.close()
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


class _Server(FastMCP):
    """Answer lines that are no messages, too."""

    @override
    async def run_stdio_async(
        self, show_banner: bool = False, log_level: str | None = None, stateless: bool = False
    ) -> None:
        """Serve the one client of this process until it closes its end."""
        del show_banner, log_level, stateless
        token = set_transport("stdio")
        try:
            async with self._lifespan_manager(), stdio_server() as (reading, writing):
                await self._mcp_server.run(
                    Heard(reading, writing), writing, self._mcp_server.create_initialization_options()
                )
        finally:
            reset_transport(token)


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
