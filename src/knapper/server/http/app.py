"""Create the HTTP application: routes, middleware, error handlers and mounts."""

import logging
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Scope

from knapper import __version__, extras
from knapper.app import Hub
from knapper.config.sections import ServerSettings
from knapper.errors import BadInput, KnapError, NotFound, StorageError
from knapper.server import logs, replies, security
from knapper.server.addresses import PRODUCT
from knapper.server.http import binding, openapi, routes, trust
from knapper.server.http.binding import Endpoint, ToolInvoker, ToolRoute
from knapper.server.logs import RequestTracing
from knapper.server.security import (
    BodyIntake,
    ClientTokens,
    OriginCheck,
    RateLimit,
    RequestBuckets,
    TokenAuthentication,
    make_origin_rules,
)
from knapper.server.workers import StopSignal, StreamShutdown, WorkerThreads
from knapper.tools.registry import ToolTable

_STREAM_SUFFIX: Final = "/events"
"""What paths of streams end with: what is told of them is told as it happens, so nothing can be said of it alone."""


def make_head_routes(routes: Iterable[BaseRoute]) -> list[Route]:
    """Create a HEAD route for each GET route; the server leaves the body out."""
    head_routes: list[Route] = []
    for route in routes:
        if isinstance(route, Route) and route.methods == {"GET"} and not route.path.endswith(_STREAM_SUFFIX):
            head_route = Route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)
            head_route.path_regex = route.path_regex
            head_routes.append(head_route)
    return head_routes


def allowed_methods(scope: Scope) -> str:
    """List the methods of a request's path, in the form of the header ``Allow``."""
    methods = {
        method
        for route in scope["app"].routes
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods))


LOG: Final = logging.getLogger("knapper.server.failures")


def add_error_handlers(app: FastAPI) -> None:
    """Register the error handlers of the app.

    They are async, so that they need no thread and still answer while the server stops.
    """
    app.add_exception_handler(KnapError, _handle_knap_error)
    app.add_exception_handler(ImportError, _handle_import_error)
    app.add_exception_handler(OSError, _handle_os_error)
    app.add_exception_handler(HTTPException, _handle_routing_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(Exception, _handle_unexpected)


async def _handle_knap_error(request: Request, error: Exception) -> Response:
    failure = error if isinstance(error, KnapError) else KnapError("something failed")
    return replies.error_reply(logs.redact_error(request.scope, failure))


async def _handle_import_error(request: Request, error: Exception) -> Response:
    """Reply to a request that needs packages which aren't installed."""
    problem = extras.explain_import(error) if isinstance(error, ImportError) else None
    if problem is None:
        raise error
    return replies.error_reply(logs.redact_error(request.scope, problem))


async def _handle_os_error(request: Request, error: Exception) -> Response:
    name = error.strerror if isinstance(error, OSError) else ""
    LOG.warning("%s the system refused: %s", logs.request_id(request.scope), type(error).__name__)
    hint = "`knap doctor` checks folders, permissions and space"
    return replies.error_reply(StorageError(f"the system refused: {name or type(error).__name__}", hint=hint))


async def _handle_routing_error(request: Request, error: Exception) -> Response:
    """Reply to a request that the router refuses: an unknown path or method."""
    if not isinstance(error, HTTPException) or error.status_code == replies.NOT_FOUND:
        return replies.error_reply(NotFound("there is no such path", hint="/openapi.json lists what there is"))
    if error.status_code == replies.METHOD_NOT_ALLOWED:
        allowed = allowed_methods(request.scope)  # the error knows of one route alone, and a path may have several
        return replies.error_reply(
            BadInput("this path doesn't take that method", hint=f"it takes {allowed}", code="method_not_allowed"),
            {"allow": allowed},
        )
    return replies.error_reply(BadInput("the request can't be read", code="bad_request"), error.headers)


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    del request, error
    return replies.error_reply(BadInput("the request has not the form that is wanted", hint="see /openapi.json"))


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    """Reply to an internal error; the log records its place, and neither log nor reply its message."""
    del error
    name = logs.request_id(request.scope)
    failure = KnapError(
        "the server made a mistake", code="internal", hint=f"its log tells more; the request's id is {name}"
    )
    return replies.error_reply(failure, {logs.REQUEST_ID_HEADER: name} if name else None)


HEALTH_PATH: Final = "/health"
DOCUMENT_PATH: Final = "/openapi.json"
HEALTH_OPERATION: Final[dict[str, Any]] = {
    "operationId": "get_health",
    "summary": "Tell whether the server answers.",
    "responses": {
        "200": {
            "description": "It does.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "success": {"const": True},
                            "status": {"const": "ok"},
                            "product": {"const": PRODUCT},
                            "version": {"type": "string"},
                            "instance": {"type": "string", "description": "Another one after each start."},
                        },
                        "required": ["success", "status", "product", "version", "instance"],
                    }
                }
            },
        }
    },
}


async def health_endpoint(request: Request) -> Response:
    """Reply without a thread, so that slow calls don't delay it."""
    instance = request.app.state.instance
    return replies.JsonReply(
        {"success": True, "status": "ok", "product": PRODUCT, "version": __version__, "instance": instance}
    )


_BYTES_PER_MB: Final = 1_000_000
_OPEN_PATHS: Final = frozenset({HEALTH_PATH})
_NOUN_ROUTES: Final = (*routes.SEARCH_ROUTES, *routes.NOTE_ROUTES, *routes.PROPOSAL_ROUTES, *routes.CHANGE_ROUTES)

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Another application under the same address, behind the same checks."""

    routes: Sequence[BaseRoute] = ()
    lifespan: Lifespan | None = None
    """Entered before the first request, and left after the last one."""
    open_paths: frozenset[str] = frozenset()
    """Paths that need no token; one that ends in ``/`` opens all below it."""
    middleware: Sequence[Middleware] = ()
    """What stands before the gate, for all paths, behind the checks of Host and Origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRuntime:
    """The worker threads, the signal that stops them, and which server it is."""

    threads: WorkerThreads
    stop: StopSignal = field(default_factory=StopSignal)
    instance: str = field(default_factory=lambda: secrets.token_hex(16))
    """Random; see `knapper.server.addresses.ServerRecord`."""


def mount_asgi(path: str, app: ASGIApp, lifespan: Lifespan | None = None) -> Mount:
    """Mount an ASGI app at exactly one path, which it sees unchanged."""
    return Mount(routes=(Route(path, endpoint=app, include_in_schema=False),), lifespan=lifespan)


def create_app(
    hub: Hub, server: ServerSettings, keys: ClientTokens, work: ServerRuntime, mounts: Sequence[Mount] = ()
) -> FastAPI:
    """Make the app.

    Args:
        hub: The vaults; the caller closes it.
        server: Limits, and the origins that may call.
        keys: The tokens of the clients.
        work: The worker threads, and the signal that stops them.
        mounts: Other applications, such as MCP, chat and the page.

    Raises:
        SetupError: The server would be reachable by others without a token set by the owner.
    """
    open_paths = _OPEN_PATHS.union(*(mount.open_paths for mount in mounts))
    buckets = RequestBuckets(server.requests_per_minute) if server.requests_per_minute else None
    app = _ApiApp(
        hub=hub,
        lifespan=_join_lifespans([mount.lifespan for mount in mounts if mount.lifespan is not None]),
        middleware=[
            Middleware(RequestTracing),
            Middleware(OriginCheck, rules=make_origin_rules(server)),
            *(each for mount in mounts for each in mount.middleware),
            Middleware(TokenAuthentication, keys=keys, open_paths=open_paths),
            Middleware(RateLimit, buckets=buckets),
            Middleware(BodyIntake, max_bytes=server.max_body_mb * _BYTES_PER_MB),
            Middleware(StreamShutdown, stop=work.stop),
        ],
    )
    add_error_handlers(app)
    app.state.places = logs.redaction_for_settings(hub.settings)
    app.state.instance = work.instance
    app.state.seen = keys.seen
    _add_routes(app, ToolInvoker(hub=hub, threads=work.threads))
    app.router.routes.extend(map(openapi.make_route, trust.trust_routes(hub, work.threads)))
    app.router.routes.extend(route for mount in mounts for route in mount.routes)
    app.router.routes.extend(make_head_routes(app.router.routes))
    return app


class _ApiApp(FastAPI):
    """An application whose OpenAPI document is derived from the tools, and names to each client its own vaults."""

    def __init__(self, *, hub: Hub, **more: Any) -> None:  # noqa: ANN401 - FastAPI's own
        super().__init__(
            title="Knapper",
            version=__version__,
            summary="Search, question and edit Markdown vaults.",
            docs_url=None,  # it would load its scripts from elsewhere
            redoc_url=None,
            openapi_url=None,  # the document depends on who asks
            redirect_slashes=False,
            **more,
        )
        self._hub = hub
        self._faces: list[ToolRoute] = []
        self._documents: dict[tuple[str, ...], dict[str, Any]] = {}
        """By the vaults that a client may open."""
        self.add_api_route(DOCUMENT_PATH, self._document_endpoint, response_model=None, include_in_schema=False)

    def add_tool_route(self, route: ToolRoute, endpoint: Endpoint) -> None:
        """Add a tool's route; it is described only when the document is requested."""
        self._faces.append(route)
        self.add_api_route(route.path, endpoint, methods=[route.method], response_model=None, include_in_schema=False)
        added = self.router.routes[-1]
        if isinstance(added, Route):  # a note's name may hold a line's end, which the router's dot doesn't fit
            added.path_regex = re.compile(added.path_regex.pattern, re.DOTALL)

    def openapi(self) -> dict[str, Any]:
        """Return the document for those who may open all vaults."""
        return self._document(tuple(self._hub.vaults))

    def _document(self, vaults: tuple[str, ...]) -> dict[str, Any]:
        """Return the document, with the tools' own descriptions."""
        if vaults not in self._documents:
            described = super().openapi()
            self._documents[vaults] = openapi.complete_document(described, self._faces, self._hub.table, vaults)
        return self._documents[vaults]

    async def _document_endpoint(self, request: Request) -> Response:
        return replies.JsonReply(self._document(tuple(self._hub.names_for(security.client_of(request.scope)))))


def _add_routes(app: _ApiApp, invoker: ToolInvoker) -> None:
    app.add_api_route(HEALTH_PATH, health_endpoint, response_model=None, openapi_extra=HEALTH_OPERATION)
    app.add_api_route(
        routes.TOOLS_PATH,
        routes.make_list_endpoint(invoker),
        response_model=None,
        tags=["tools"],
        openapi_extra=routes.LIST_TOOLS_OPERATION,
    )
    for route in (*routes.make_tool_routes(invoker.hub.table), *_available_noun_routes(invoker.hub.table)):
        make_endpoint = routes.make_note_endpoint if route in routes.NOTE_ROUTES else binding.make_tool_endpoint
        app.add_tool_route(route, make_endpoint(invoker, route))
    app.add_api_route(
        f"{routes.TOOLS_PATH}/{{name}}",
        routes.make_unknown_tool_endpoint(invoker),
        methods=["POST"],
        response_model=None,
        include_in_schema=False,
    )


def _available_noun_routes(table: ToolTable) -> Sequence[ToolRoute]:
    tool_names = {row.name for row in table.specs}
    return [route for route in _NOUN_ROUTES if route.tool in tool_names]


def _join_lifespans(parts: Sequence[Lifespan]) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part())
            yield

    return lifespan
