"""Serve one client over standard input and output; nothing but the protocol is ever printed there."""

import asyncio
import logging.config
import uuid
from typing import Any

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from knapper.app import Hub
from knapper.server import logs, watchers
from knapper.server.mcp.build import build
from knapper.server.mcp.callers import Caller, Desk
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
    server = build(desk, choice)
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
