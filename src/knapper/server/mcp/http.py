"""Serve the protocol under the same address as the HTTP API, behind the same checks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastmcp.server.dependencies import get_http_request
from starlette.applications import Starlette

from knapper.app import Hub
from knapper.server import auth
from knapper.server.http.app import Mount, asgi
from knapper.server.mcp.build import build
from knapper.server.mcp.callers import Caller, Desk
from knapper.tools.profiles import Choice

_SESSION = "mcp-session-id"


def mount(hub: Hub, choice: Choice = "full") -> Mount:
    """Make what answers at ``/mcp``.

    Args:
        hub: The vaults; it stays open, and is the caller's to close.
        choice: Which tools are listed.
    """
    return mounted(
        build(Desk(hub=hub, identify=_identify), choice).http_app(path=auth.MCP_PATH, host_origin_protection=False)
    )


def mounted(app: Starlette) -> Mount:
    """Mount an app of the protocol; who may reach it is checked before it hears of a request."""

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        async with app.router.lifespan_context(app):
            yield

    return asgi(auth.MCP_PATH, app, lifespan)


def _identify() -> Caller:
    """Tell who sent the request: the client whose token it shows, in its session where it has one."""
    request = get_http_request()
    return Caller(auth.client_of(request.scope), run=request.headers.get(_SESSION, ""))
