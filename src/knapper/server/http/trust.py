"""Show persons over HTTP who only proposes because of what was read, and trust clients again: ``/trust``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.app import clients
from knapper.server import replies, security
from knapper.server.http import binding, openapi
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import RouteSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from knapper.app import Hub
    from knapper.jsontypes import JSONValue
    from knapper.server.http.binding import Endpoint, RequestArguments
    from knapper.server.workers import WorkerThreads
    from knapper.tools.context import Context

    TrustHandler = Callable[[Context, RequestArguments], dict[str, JSONValue]]

_PATH: Final = "/trust"
_DEFAULT_LIMIT: Final = 50
_LIMIT: Final = Parameter(name="limit", doc="How many at most; 50 where it is left out.", kind="count", maximum=500)
_OFFSET: Final = Parameter(name="offset", doc="How many are passed over.", kind="count", maximum=10**9)
_PAGE_PARAMETERS: Final = (_LIMIT, _OFFSET, VAULT_PARAMETER)
_TRUST_PARAMETERS: Final = (
    Parameter(name="client", doc="The client's name.", maximum=200),
    Parameter(name="run", doc="Only this run or session of it; all of its own where it is left out.", maximum=200),
    Parameter(name="all", doc="All clients, runs and sessions.", kind="flag"),
    VAULT_PARAMETER,
)
_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_RESTRICTION: Final[Mapping[str, Any]] = openapi.object_schema(
    {
        "client": _STRING,
        "run": {"type": "string", "description": "The run, session or connection; empty for the client itself."},
        "since": _STRING,
        "until": {"type": ["string", "null"], "description": "When it ends by itself; null where it doesn't."},
        "source": {"type": "string", "description": "What was read first."},
        "inherited": {"type": "boolean", "description": "Whether a restricted client only began it."},
    }
)


def trust_routes(hub: Hub, threads: WorkerThreads) -> tuple[RouteSpec, ...]:
    """List the routes; what they do holds for all vaults."""
    listed = openapi.page_content("results", _RESTRICTION)
    trusted = openapi.json_content({"trusted": {"type": "array", "items": dict(_RESTRICTION)}})
    return (
        RouteSpec(
            "GET",
            _PATH,
            "trust",
            "List who only proposes because of what was read.",
            _make_endpoint(hub, threads, _PAGE_PARAMETERS, _list_restricted),
            "For persons.",
            _PAGE_PARAMETERS,
            listed,
        ),
        RouteSpec(
            "POST",
            _PATH,
            "trust",
            "Trust a client again.",
            _make_endpoint(hub, threads, _TRUST_PARAMETERS, _trust),
            "For persons. Proposals that were made stay proposals.",
            _TRUST_PARAMETERS,
            trusted,
        ),
    )


def _make_endpoint(hub: Hub, threads: WorkerThreads, parameters: tuple[Parameter, ...], work: TrustHandler) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        args = await binding.read_arguments(request, parameters)
        client = security.client_of(request.scope)
        answer = await threads.run("read", lambda: work(hub.context(client=client, vault=args.text("vault")), args))
        return replies.JsonReply({"success": True, **answer})

    return endpoint


def _list_restricted(context: Context, args: RequestArguments) -> dict[str, JSONValue]:
    limit, offset = args.integer_or_default("limit", _DEFAULT_LIMIT), args.integer_or_default("offset", 0)
    restricted = clients.list_restricted(context)
    rows: list[JSONValue] = [clients.describe_restriction(taint) for taint in restricted[offset : offset + limit]]
    return {"results": rows, "total": len(restricted), "limit": limit, "offset": offset}


def _trust(context: Context, args: RequestArguments) -> dict[str, JSONValue]:
    lifted = clients.trust(context, client=args.text("client"), run=args.text("run"), everyone=args.flag("all") is True)
    return {"trusted": [clients.describe_restriction(taint) for taint in lifted]}
