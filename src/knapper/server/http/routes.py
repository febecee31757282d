"""Declare the routes that call tools: tools by name, search, notes, proposals and changes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.jsontypes import JSONValue
from knapper.server import replies, security, workers
from knapper.server.http import binding, openapi
from knapper.server.http.binding import Endpoint, ToolInvoker, ToolRoute
from knapper.tools import registry
from knapper.tools.registry import ToolSpec, ToolTable

TOOLS_PATH: Final = "/tools"
_TOOL_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "effect": {"enum": ["read", "write", "destructive"]},
        "profile": {"enum": ["essential", "standard", "full"]},
        "open_world": {"type": "boolean"},
        "parameters": {"type": "object", "description": "JSON Schema of the arguments."},
        "returns": {"type": "object", "description": "JSON Schema of the answer."},
    },
    "required": ["name", "title", "description", "effect", "profile", "open_world", "parameters", "returns"],
}
LIST_TOOLS_OPERATION: Final[dict[str, Any]] = {
    "operationId": "get_tools",
    "summary": "List the tools.",
    "security": [{openapi.TOKEN_SCHEME: []}],
    "responses": {
        "200": {
            "description": "All of them.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "success": {"const": True},
                            "results": {"type": "array", "items": _TOOL_SCHEMA},
                            "total": {"type": "integer"},
                        },
                        "required": ["success", "results", "total"],
                    }
                }
            },
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
        rows: list[JSONValue] = [_describe_tool(table, row, vaults) for row in table.specs]
        return replies.JsonReply({"success": True, "results": rows, "total": len(rows)})

    return endpoint


def make_unknown_tool_endpoint(invoker: ToolInvoker) -> Callable[[Request], Awaitable[Response]]:
    """Create the endpoint for unknown tools; its error suggests the nearest name."""

    async def endpoint(request: Request) -> Response:
        name: str = request.path_params["name"]
        route = ToolRoute(method="POST", path=request.scope["path"], tool=name)
        _ = invoker.hub.table.find(name)
        arguments = await binding.read_tool_arguments(route, request, {})
        pending_call = invoker.call(security.client_of(request.scope), name, arguments)
        return replies.JsonReply(await workers.run_unless_disconnected(request.receive, pending_call))

    return endpoint


def _describe_tool(table: ToolTable, row: ToolSpec, vaults: Sequence[str]) -> JSONValue:
    return {
        "name": row.name,
        "title": row.title,
        "description": registry.describe(row),
        "effect": row.effect,
        "profile": row.profile,
        "open_world": row.open_world,
        "parameters": table.parameters(row, vaults=vaults),
        "returns": registry.answer_schema(row),
    }


SEARCH_ROUTES: Final = (ToolRoute(method="GET", path="/search", tool="search_vault", tag="search"),)

NOTE_ROUTES: Final = (ToolRoute(method="GET", path="/notes/{path:path}", tool="read_file", tag="notes", has_etag=True),)
_CACHE_HEADERS: Final = {"cache-control": "private, no-cache"}


def make_note_endpoint(invoker: ToolInvoker, route: ToolRoute) -> Endpoint:
    """Create the endpoint that replies with a note, or 304 if the client's copy is current."""

    async def endpoint(request: Request) -> Response:
        answer = await invoker.answer(route, request)
        if "embeds" in answer:  # what it shows of other notes isn't in its hash
            return replies.JsonReply(answer)
        etag = f'"{answer["hash"]}"'
        headers = {"etag": etag, **_CACHE_HEADERS}
        if _has_current_copy(request, etag):
            return Response(status_code=304, headers={**replies.REPLY_HEADERS, **headers})
        return replies.JsonReply(answer, headers=headers)

    return endpoint


def _has_current_copy(request: Request, tag: str) -> bool:
    sent_tags = request.headers.get("if-none-match", "")
    return sent_tags.strip() == "*" or tag in {sent_tag.strip().removeprefix("W/") for sent_tag in sent_tags.split(",")}


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
