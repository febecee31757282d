"""Create the HTTP application: routes that call tools, middleware, error handlers and mounts."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Scope

from knapper import __version__, extras
from knapper.app import Hub, clients
from knapper.config.sections import ServerSettings
from knapper.errors import BadInput, KnapError, NotFound, StorageError
from knapper.server import logs, security, workers
from knapper.server.addresses import PRODUCT
from knapper.server.http import binding, openapi
from knapper.server.http.binding import (
    PAGE_PARAMETERS,
    VAULT_PARAMETER,
    BoundRoute,
    Endpoint,
    Parameter,
    ToolInvoker,
    ToolRoute,
)
from knapper.server.http.openapi import INTEGER, STRING, RouteSpec
from knapper.server.logs import RequestTracing
from knapper.server.readers import ReaderPool
from knapper.server.security import (
    BodyIntake,
    ClientTokens,
    FindToken,
    OriginCheck,
    RateLimit,
    RequestBuckets,
    TokenAuthentication,
    make_origin_rules,
)
from knapper.server.workers import StopSignal, StreamShutdown, WorkerThreads
from knapper.tools import registry
from knapper.tools.registry import ToolTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from knapper.server.http.binding import RequestArguments
    from knapper.tools.context import Context


TOOLS_PATH: Final = "/tools"
LIST_TOOLS_OPERATION: Final[dict[str, Any]] = {
    "operationId": "get_tools",
    "tags": ["tools"],
    "summary": "List the tools.",
    "security": [{openapi.TOKEN_SCHEME: []}],
    "responses": {
        "200": {
            "description": "All of them.",
            "content": openapi.json_content({"results": list[registry.DescribedTool], "total": INTEGER}),
        },
        **openapi.error_responses(),
    },
}


def make_tool_routes(table: ToolTable) -> tuple[ToolRoute, ...]:
    """Return a route for each tool."""
    return tuple(
        ToolRoute(method="POST", path=f"{TOOLS_PATH}/{row.name}", tool=row.name, tag="tools") for row in table.specs
    )


def make_list_endpoint(invoker: ToolInvoker) -> Callable[[Request], Awaitable[Response]]:
    """Create the endpoint that lists the tools."""

    async def endpoint(request: Request) -> Response:
        table, vaults = invoker.hub.table, invoker.hub.names_for(security.client_of(request.scope))
        rows = [table.describe(row, vaults) for row in table.specs]
        return security.JsonReply({"success": True, "results": rows, "total": len(rows)})

    return endpoint


def make_unknown_tool_endpoint(invoker: ToolInvoker) -> Callable[[Request], Awaitable[Response]]:
    """Create the endpoint for unknown tools; its error suggests the nearest name."""

    async def endpoint(request: Request) -> Response:
        name: str = request.path_params["name"]
        route = ToolRoute(method="POST", path=request.scope["path"], tool=name)
        _ = invoker.hub.table.find(name)
        arguments = await binding.read_tool_arguments(route, request, {})
        pending_call = invoker.call(security.client_of(request.scope), name, arguments)
        return security.JsonReply(await workers.run_unless_disconnected(request.receive, pending_call))

    return endpoint


SEARCH_ROUTES: Final = (ToolRoute(method="GET", path="/search", tool="search_vault", tag="search"),)

NOTE_ROUTES: Final = (ToolRoute(method="GET", path="/notes/{path:path}", tool="read_file", tag="notes", has_etag=True),)
_CACHE_HEADERS: Final = {"cache-control": "private, no-cache"}


def make_note_endpoint(invoker: ToolInvoker, route: ToolRoute) -> Endpoint:
    """Create the endpoint that replies with a note, or 304 if the client's copy is current."""

    async def endpoint(request: Request) -> Response:
        answer = await invoker.answer(route, request)
        if "embeds" in answer:  # what it shows of other notes isn't in its hash
            return security.JsonReply(answer)
        etag = f'"{answer["hash"]}"'
        headers = {"etag": etag, **_CACHE_HEADERS}
        sent_tags = request.headers.get("if-none-match", "")
        if sent_tags.strip() == "*" or etag in {tag.strip().removeprefix("W/") for tag in sent_tags.split(",")}:
            return Response(status_code=304, headers={**security.REPLY_HEADERS, **headers})
        return security.JsonReply(answer, headers=headers)

    return endpoint


PROPOSAL_ROUTES: Final = (
    ToolRoute(method="GET", path="/proposals", tool="list_proposals", tag="proposals"),
    ToolRoute(method="GET", path="/proposals/{proposal_id}", tool="show_proposal", tag="proposals"),
    ToolRoute(method="POST", path="/proposals/{proposal_id}/accept", tool="accept_proposal", tag="proposals"),
    ToolRoute(method="POST", path="/proposals/{proposal_id}/reject", tool="reject_proposal", tag="proposals"),
    ToolRoute(method="PUT", path="/proposals/{proposal_id}/hunks/{hunk}", tool="edit_proposal", tag="proposals"),
)

CHANGE_ROUTES: Final = (
    ToolRoute(method="GET", path="/changes", tool="list_changes", tag="changes"),
    ToolRoute(method="POST", path="/changes/undo", tool="undo_change", tag="changes"),
    ToolRoute(method="POST", path="/changes/{change_id}/undo", tool="undo_change", tag="changes"),
)


_PATH: Final = "/trust"
_TRUST_PARAMETERS: Final = (
    Parameter(name="client", doc="The client's name.", maximum=200),
    Parameter(name="run", doc="Only this run or session of it; all of its own where it is left out.", maximum=200),
    Parameter(name="all", doc="All clients, runs and sessions.", kind="flag"),
    VAULT_PARAMETER,
)


def trust_routes(hub: Hub, threads: WorkerThreads) -> tuple[RouteSpec, ...]:
    """List the routes; what they do holds for all vaults."""

    def open_context(request: Request, args: RequestArguments) -> Context:
        return hub.context(client=security.client_of(request.scope), vault=args.text("vault"))

    async def list_restricted(request: Request, args: RequestArguments) -> Mapping[str, object]:
        """List who only proposes because of what was read.

        For persons.
        """
        limit, offset = args.page()
        restricted = await threads.run("read", lambda: clients.list_restricted(open_context(request, args)))
        rows = [clients.describe_restriction(taint) for taint in restricted[offset : offset + limit]]
        return {"results": rows, "total": len(restricted), "limit": limit, "offset": offset}

    async def trust(request: Request, args: RequestArguments) -> Mapping[str, object]:
        """Trust a client again.

        For persons. Proposals that were made stay proposals.
        """
        client, run, everyone = args.text("client"), args.text("run"), args.flag("all") is True
        lifted = await threads.run(
            "read", lambda: clients.trust(open_context(request, args), client=client, run=run, everyone=everyone)
        )
        return {"trusted": [clients.describe_restriction(taint) for taint in lifted]}

    listed = openapi.page_content("results", clients.RestrictionRow)
    trusted = openapi.json_content({"trusted": list[clients.RestrictionRow]})
    return (
        openapi.bind_route("GET", _PATH, "trust", list_restricted, (*PAGE_PARAMETERS, VAULT_PARAMETER), listed),
        openapi.bind_route("POST", _PATH, "trust", trust, _TRUST_PARAMETERS, trusted),
    )


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


def add_error_handlers(app: Starlette) -> None:
    """Register the error handlers of the app.

    They are async, so that they need no thread and still answer while the server stops.
    """
    app.add_exception_handler(KnapError, _handle_knap_error)
    app.add_exception_handler(ImportError, _handle_import_error)
    app.add_exception_handler(OSError, _handle_os_error)
    app.add_exception_handler(HTTPException, _handle_routing_error)
    app.add_exception_handler(Exception, _handle_unexpected)


async def _handle_knap_error(request: Request, error: Exception) -> Response:
    failure = error if isinstance(error, KnapError) else KnapError("something failed")
    return security.error_reply(logs.redact_error(request.scope, failure))


async def _handle_import_error(request: Request, error: Exception) -> Response:
    """Reply to a request that needs packages which aren't installed."""
    problem = extras.explain_import(error) if isinstance(error, ImportError) else None
    if problem is None:
        raise error
    return security.error_reply(logs.redact_error(request.scope, problem))


async def _handle_os_error(request: Request, error: Exception) -> Response:
    name = error.strerror if isinstance(error, OSError) else ""
    LOG.warning("%s the system refused: %s", logs.request_id(request.scope), type(error).__name__)
    hint = "`knap doctor` checks folders, permissions and space"
    return security.error_reply(StorageError(f"the system refused: {name or type(error).__name__}", hint=hint))


async def _handle_routing_error(request: Request, error: Exception) -> Response:
    """Reply to a request that the router refuses: an unknown path or method."""
    if not isinstance(error, HTTPException) or error.status_code == security.NOT_FOUND:
        return security.error_reply(NotFound("there is no such path", hint="/openapi.json lists what there is"))
    if error.status_code == security.METHOD_NOT_ALLOWED:
        allowed = allowed_methods(request.scope)  # the error knows of one route alone, and a path may have several
        return security.error_reply(
            BadInput("this path doesn't take that method", hint=f"it takes {allowed}", code="method_not_allowed"),
            {"allow": allowed},
        )
    return security.error_reply(BadInput("the request can't be read", code="bad_request"), error.headers)


async def _handle_unexpected(request: Request, error: Exception) -> Response:
    """Reply to an internal error; the log records its place, and neither log nor reply its message."""
    del error
    name = logs.request_id(request.scope)
    failure = KnapError(
        "the server made a mistake", code="internal", hint=f"its log tells more; the request's id is {name}"
    )
    return security.error_reply(failure, {logs.REQUEST_ID_HEADER: name} if name else None)


HEALTH_PATH: Final = "/health"
DOCUMENT_PATH: Final = "/openapi.json"
HEALTH_OPERATION: Final[dict[str, Any]] = {
    "operationId": "get_health",
    "description": "Reply without a thread, so that slow calls don't delay it.",
    "summary": "Tell whether the server answers.",
    "responses": {
        "200": {
            "description": "It does.",
            "content": openapi.json_content(
                {
                    "status": {"const": "ok"},
                    "product": {"const": PRODUCT},
                    "version": STRING,
                    "instance": {"type": "string", "description": "Another one after each start."},
                    "readers": {"type": "integer", "description": "Processes that answer searches beside it."},
                }
            ),
        }
    },
}


async def health_endpoint(request: Request) -> Response:
    """Reply without a thread, so that slow calls don't delay it."""
    state = request.app.state
    health = {"success": True, "status": "ok", "product": PRODUCT, "version": __version__}
    readers = 0 if state.readers is None else state.readers.count
    return security.JsonReply({**health, "instance": state.instance, "readers": readers})


_BYTES_PER_MB: Final = 1_000_000
_OPEN_PATHS: Final = frozenset({HEALTH_PATH})
_NOUN_ROUTES: Final = (*SEARCH_ROUTES, *NOTE_ROUTES, *PROPOSAL_ROUTES, *CHANGE_ROUTES)

Lifespan = Callable[[], AbstractAsyncContextManager[None]]
AppLifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Another application under the same address, behind the same checks."""

    routes: Sequence[BaseRoute] = ()
    lifespan: Lifespan | None = None
    """Entered before the first request, and left after the last one."""
    open_paths: frozenset[str] = frozenset()
    """Paths that need no token; one that ends in ``/`` opens all below it."""
    find_token: FindToken | None = None
    """Who shows this application's sign-in need not send a token, at any path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRuntime:
    """The worker threads, the signal that stops them, and which server it is."""

    threads: WorkerThreads
    stop: StopSignal = field(default_factory=StopSignal)
    readers: ReaderPool | None = None
    """Answer searches beside the server; None lets it answer all by itself."""
    instance: str = field(default_factory=lambda: secrets.token_hex(16))
    """Random; see `knapper.server.addresses.ServerRecord`."""


def mount_asgi(path: str, app: ASGIApp, lifespan: Lifespan | None = None) -> Mount:
    """Mount an ASGI app at exactly one path, which it sees unchanged."""
    return Mount(routes=(Route(path, endpoint=app, include_in_schema=False),), lifespan=lifespan)


def create_app(
    hub: Hub, server: ServerSettings, keys: ClientTokens, work: ServerRuntime, mounts: Sequence[Mount] = ()
) -> KnapperAPI:
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
    find_tokens = [mount.find_token for mount in mounts if mount.find_token is not None]
    buckets = RequestBuckets(server.requests_per_minute) if server.requests_per_minute else None
    parts = [mount.lifespan for mount in mounts if mount.lifespan is not None]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part())
            yield

    app = KnapperAPI(
        hub,
        work.threads,
        lifespan=lifespan,
        middleware=[
            Middleware(RequestTracing),
            Middleware(OriginCheck, rules=make_origin_rules(server)),
            Middleware(TokenAuthentication, keys=keys, open_paths=open_paths, find_tokens=find_tokens),
            Middleware(RateLimit, buckets=buckets),
            Middleware(BodyIntake, max_bytes=server.max_body_mb * _BYTES_PER_MB),
            Middleware(StreamShutdown, stop=work.stop),
        ],
    )
    add_error_handlers(app)
    app.state.places = logs.redaction_for_settings(hub.settings)
    app.state.instance = work.instance
    app.state.seen = keys.seen
    app.state.readers = work.readers
    _add_routes(app, ToolInvoker(hub=hub, threads=work.threads, readers=work.readers))
    app.router.routes.extend(map(openapi.make_route, trust_routes(hub, work.threads)))
    app.router.routes.extend(route for mount in mounts for route in mount.routes)
    app.router.routes.extend(make_head_routes(app.router.routes))
    return app


class KnapperAPI(Starlette):
    """An application whose OpenAPI document is derived from its routes and tools, with the vaults of who asks."""

    def __init__(
        self, hub: Hub, threads: WorkerThreads, middleware: Sequence[Middleware], lifespan: AppLifespan
    ) -> None:
        """Create it with the route of its document alone."""
        super().__init__(middleware=middleware, lifespan=lifespan)
        self.router.redirect_slashes = False
        self._hub = hub
        self._faces: list[ToolRoute] = []
        self._documents: dict[tuple[str, ...], dict[str, Any]] = {}
        """By the vaults that a client may open."""
        self._writing = threading.Lock()

        async def show_document(request: Request) -> Response:
            client = security.client_of(request.scope)

            def write() -> Response:
                return security.JsonReply(self._document(tuple(hub.names_for(client))))

            # The first one takes seconds, for which others wait; no reading should wait with them.
            return await threads.run("long", write)

        self.router.routes.append(BoundRoute("GET", DOCUMENT_PATH, show_document))

    def add_tool_route(self, route: ToolRoute, endpoint: Endpoint) -> None:
        """Add a tool's route."""
        self._faces.append(route)
        self.router.routes.append(BoundRoute(route.method, route.path, endpoint))

    def openapi(self) -> dict[str, Any]:
        """Return the document for those who may open all vaults."""
        return self._document(tuple(self._hub.vaults))

    def _document(self, vaults: tuple[str, ...]) -> dict[str, Any]:
        with self._writing:  # the first one takes seconds, so nobody begins it a second time
            if vaults not in self._documents:
                self._documents[vaults] = openapi.make_document(self.routes, self._faces, self._hub.table, vaults)
            return self._documents[vaults]


def _add_routes(app: KnapperAPI, invoker: ToolInvoker) -> None:
    app.router.routes += [
        BoundRoute("GET", HEALTH_PATH, health_endpoint, lambda: HEALTH_OPERATION),
        BoundRoute("GET", TOOLS_PATH, make_list_endpoint(invoker), lambda: LIST_TOOLS_OPERATION),
    ]
    tool_names = {row.name for row in invoker.hub.table.specs}
    noun_routes = [route for route in _NOUN_ROUTES if route.tool in tool_names]
    for route in (*make_tool_routes(invoker.hub.table), *noun_routes):
        make_endpoint = make_note_endpoint if route in NOTE_ROUTES else binding.make_tool_endpoint
        app.add_tool_route(route, make_endpoint(invoker, route))
    app.router.routes.append(BoundRoute("POST", f"{TOOLS_PATH}/{{name}}", make_unknown_tool_endpoint(invoker)))
