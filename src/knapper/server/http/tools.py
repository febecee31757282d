"""List the tools, tell what each takes and gives, and call them: ``POST /tools/NAME``."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper.jsontypes import JSONValue
from knapper.server import auth, leaving, replies
from knapper.server.http import document, faces
from knapper.server.http.calling import Serving
from knapper.server.http.faces import Face
from knapper.tools import registry
from knapper.tools.registry import ToolSpec, ToolTable

PATH: Final = "/tools"
_SHOWN: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "title": {"type": "string"},
        "description": {"type": "string"},
        "effect": {"enum": ["read", "write", "destructive"]},
        "profile": {"enum": ["essential", "full"]},
        "open_world": {"type": "boolean"},
        "parameters": {"type": "object", "description": "JSON Schema of the arguments."},
        "returns": {"type": "object", "description": "JSON Schema of the answer."},
    },
    "required": ["name", "title", "description", "effect", "profile", "open_world", "parameters", "returns"],
}
LISTED: Final[dict[str, Any]] = {
    "operationId": "get_tools",
    "summary": "List the tools.",
    "security": [{document.TOKEN: []}],
    "responses": {
        "200": {
            "description": "All of them.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {
                            "success": {"const": True},
                            "results": {"type": "array", "items": _SHOWN},
                            "total": {"type": "integer"},
                        },
                        "required": ["success", "results", "total"],
                    }
                }
            },
        },
        **document.failures(),
    },
}


def of_table(table: ToolTable) -> tuple[Face, ...]:
    """Give a route for each tool."""
    return tuple(Face(method="POST", path=f"{PATH}/{row.name}", tool=row.name, tag="tools") for row in table.rows)


def listing(serving: Serving) -> Callable[[Request], Awaitable[Response]]:
    """Make what lists the tools."""

    async def endpoint(request: Request) -> Response:
        del request
        table = serving.hub.table
        shown: list[JSONValue] = [_shape(table, row) for row in table.rows]
        return replies.Json({"success": True, "results": shown, "total": len(shown)})

    return endpoint


def unknown(serving: Serving) -> Callable[[Request], Awaitable[Response]]:
    """Make what answers a call of a tool that isn't there: the error tells the nearest."""

    async def endpoint(request: Request) -> Response:
        name: str = request.path_params["name"]
        face = Face(method="POST", path=request.scope["path"], tool=name)
        _ = serving.hub.table.find(name)
        given = await faces.arguments(face, request, {})
        called = serving.call(auth.client_of(request.scope), name, given)
        return replies.Json(await leaving.unless_gone(request.receive, called))

    return endpoint


def _shape(table: ToolTable, row: ToolSpec) -> JSONValue:
    return {
        "name": row.name,
        "title": row.title,
        "description": registry.describe(row),
        "effect": row.effect,
        "profile": row.profile,
        "open_world": row.open_world,
        "parameters": table.parameters(row),
        "returns": registry.answer_schema(row),
    }
