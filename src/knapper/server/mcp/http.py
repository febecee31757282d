"""MCP over HTTP, under the API's address and behind the same checks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_request
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

from knapper.app import Hub
from knapper.server import security
from knapper.server.http.app import Mount, mount_asgi
from knapper.server.mcp.definitions import ToolListing
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession, RecentEvents
from knapper.server.workers import WorkerThreads

_SESSION_HEADER = "mcp-session-id"
_VERSION_HEADER = "mcp-protocol-version"
_RETRY_INTERVAL_MS = 1_000
"""How long a client waits before it comes back for the rest of an answer."""


def mount_mcp(hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/mcp``, with the tools that the settings offer there.

    Args:
        hub: The vaults; the caller closes it.
        threads: The worker threads.
    """
    session = McpSession(hub=hub, identify=_identify_caller, threads=threads)
    server = hub.settings.server
    listing = ToolListing(choice=server.mcp_profile, output_schemas=server.mcp_output_schemas or None)
    return mount_server(build_server(session, listing))


def mount_server(server: FastMCP) -> Mount:
    """Mount an MCP server, behind authentication.

    A client that loses its connection can resume its answer for a minute. A session belongs to the client that started
    it: for other clients it doesn't exist.
    """
    app = server.http_app(
        path=security.MCP_PATH,
        host_origin_protection=False,
        event_store=RecentEvents(),
        retry_interval=_RETRY_INTERVAL_MS,
    )

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        async with app.router.lifespan_context(app):
            yield

    return mount_asgi(security.MCP_PATH, _AuthenticatedApp(app), lifespan)


class _AuthenticatedApp:
    """ASGI middleware that tells the MCP library the client, so that it separates sessions."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap *app*."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the client of its token."""
        access_token = AccessToken(token="", client_id=security.client_of(scope), scopes=[])
        await self._app({**scope, "user": AuthenticatedUser(access_token)}, receive, send)


def _identify_caller() -> Caller:
    """Return the client whose token the request has, with its session if there is one.

    Only protocol versions with a handshake have sessions, whose ids were issued here; in others, the header can hold
    any text, and a client could use it to shed the taint of what it has read.
    """
    request = get_http_request()
    is_session = request.headers.get(_VERSION_HEADER, HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS
    return Caller(security.client_of(request.scope), run=request.headers.get(_SESSION_HEADER, "") if is_session else "")
