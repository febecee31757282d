"""Make the app: routes, and what stands before them."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from knapper import __version__
from knapper.app import Hub
from knapper.config.sections.server import Server
from knapper.server import places
from knapper.server.auth import Gate, Keys
from knapper.server.bodies import Intake
from knapper.server.http import calling, changes, document, failures, health, methods, notes, proposals, search, tools
from knapper.server.http.calling import Endpoint, Serving
from knapper.server.http.faces import Face
from knapper.server.origins import Guard, rules
from knapper.server.rates import Buckets, Limit
from knapper.server.stopping import Ending, Stop
from knapper.server.threads import Threads
from knapper.server.tracing import Trace
from knapper.tools.registry import ToolTable

_MEGABYTE: Final = 1_000_000
_OPEN: Final = frozenset({health.PATH})
_NOUNS: Final = (*search.FACES, *notes.FACES, *proposals.FACES, *changes.FACES)

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Hold something else that answers under the same address, behind the same checks."""

    routes: Sequence[BaseRoute] = ()
    lifespan: Lifespan | None = None
    """Entered before the first request, and left after the last one."""
    open_paths: frozenset[str] = frozenset()
    """Paths that need no token; one that ends in ``/`` opens all below it."""
    middleware: Sequence[Middleware] = ()
    """What stands before the gate, for all paths, behind the checks of Host and Origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Hold where calls run, and what ends them."""

    threads: Threads
    stop: Stop = field(default_factory=Stop)


def asgi(path: str, app: ASGIApp, lifespan: Lifespan | None = None) -> Mount:
    """Mount an ASGI app at exactly one path, which it sees as it is."""
    return Mount(routes=(Route(path, endpoint=app, include_in_schema=False),), lifespan=lifespan)


def create(hub: Hub, server: Server, keys: Keys, work: Work, mounts: Sequence[Mount] = ()) -> FastAPI:
    """Make the app.

    Args:
        hub: The vaults; it stays open, and is the caller's to close.
        server: How much is taken on, and whose pages may call.
        keys: Who may ask.
        work: Where calls run, and what ends them.
        mounts: What else answers, such as MCP, chat and the page.

    Raises:
        SetupError: The server would be open to others without a token that the owner has set.
    """
    opened = _OPEN.union(*(mount.open_paths for mount in mounts))
    limit = Buckets(server.requests_per_minute) if server.requests_per_minute else None
    app = _Api(
        table=hub.table,
        lifespan=_lifespan([mount.lifespan for mount in mounts if mount.lifespan is not None]),
        middleware=[
            Middleware(Trace),
            Middleware(Guard, rules=rules(server)),
            *(one for mount in mounts for one in mount.middleware),
            Middleware(Gate, keys=keys, open_paths=opened),
            Middleware(Limit, buckets=limit),
            Middleware(Intake, max_bytes=server.max_body_mb * _MEGABYTE),
            Middleware(Ending, stop=work.stop),
        ],
    )
    failures.handle(app)
    app.state.places = places.of_settings(hub.settings)
    _add_routes(app, Serving(hub=hub, threads=work.threads))
    app.router.routes.extend(route for mount in mounts for route in mount.routes)
    app.router.routes.extend(methods.heads(app.router.routes))
    return app


class _Api(FastAPI):
    """Describe itself from the tools."""

    def __init__(self, *, table: ToolTable, **more: Any) -> None:  # noqa: ANN401 - FastAPI's own
        super().__init__(
            title="Knapper",
            version=__version__,
            summary="Search, question and edit Markdown vaults.",
            docs_url=None,  # it would load its scripts from elsewhere
            redoc_url=None,
            redirect_slashes=False,
            **more,
        )
        self._table = table
        self._faces: list[Face] = []
        self._document: dict[str, Any] | None = None

    def show(self, face: Face, endpoint: Endpoint) -> None:
        """Add a route that shows a tool; it is described only when somebody asks for the document."""
        self._faces.append(face)
        self.add_api_route(face.path, endpoint, methods=[face.method], response_model=None, include_in_schema=False)
        added = self.router.routes[-1]
        if isinstance(added, Route):  # a note's name may hold a line's end, which the router's dot doesn't fit
            added.path_regex = re.compile(added.path_regex.pattern, re.DOTALL)

    def openapi(self) -> dict[str, Any]:
        """Give the document, with what the tools say of themselves."""
        if self._document is None:
            self._document = document.completed(super().openapi(), self._faces, self._table)
        return self._document


def _add_routes(app: _Api, serving: Serving) -> None:
    app.add_api_route(health.PATH, health.endpoint, response_model=None, openapi_extra=health.OPERATION)
    app.add_api_route(
        tools.PATH, tools.listing(serving), response_model=None, tags=["tools"], openapi_extra=tools.LISTED
    )
    for face in (*tools.of_table(serving.hub.table), *_nouns(serving.hub.table)):
        make = notes.reading if face in notes.FACES else calling.plain
        app.show(face, make(serving, face))
    app.add_api_route(
        f"{tools.PATH}/{{name}}", tools.unknown(serving), methods=["POST"], response_model=None, include_in_schema=False
    )


def _nouns(table: ToolTable) -> Sequence[Face]:
    known = {row.name for row in table.rows}
    return [face for face in _NOUNS if face.tool in known]


def _lifespan(parts: Sequence[Lifespan]) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part())
            yield

    return lifespan
