"""Serve one client over standard input and output; nothing but the protocol is ever printed there."""

import asyncio
import logging.config
import uuid

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
    engines = watchers.engines(hub) if watch else {}
    async with watchers.running(engines):
        try:
            await server.run_stdio_async(show_banner=False)
        finally:
            desk.threads.close()
