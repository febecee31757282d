"""MCP over HTTP, under the API's address and behind the same checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastmcp.server.dependencies import get_http_request
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette

from knapper.server import security
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession, RecentEvents, ToolListing

if TYPE_CHECKING:
    from fastmcp import FastMCP
    from starlette.types import ASGIApp, Receive, Scope, Send

    from knapper.app import Hub
    from knapper.server.workers import WorkerThreads

_SESSION_HEADER: Final = "mcp-session-id"
_VERSION_HEADER: Final = "mcp-protocol-version"
_RETRY_INTERVAL_MS: Final = 1_000
"""How long a client waits before it comes back for the rest of an answer."""


def make_app(hub: Hub, threads: WorkerThreads) -> Starlette:
    """Make the app of the tools that the settings offer.

    Args:
        hub: The vaults; the caller closes it.
        threads: The worker threads.
    """
    session = McpSession(hub=hub, identify=_identify_caller, threads=threads)
    server = hub.settings.server
    listing = ToolListing(choice=server.mcp_profile, output_schemas=server.mcp_output_schemas or None)
    return wrap_server(build_server(session, listing))


def wrap_server(server: FastMCP) -> Starlette:
    """Make an MCP server's app, which takes its client from the request's authentication.

    A client that loses its connection can resume its answer for a minute. A session belongs to the client that started
    it: for other clients it doesn't exist.
    """
    app = server.http_app(
        path=security.MCP_PATH,
        host_origin_protection=False,
        event_store=RecentEvents(),
        retry_interval=_RETRY_INTERVAL_MS,
    )
    app.add_middleware(_ClientOfToken)
    return app


class _ClientOfToken:
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
