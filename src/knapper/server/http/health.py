"""Tell whether the server answers; open to anybody, so it tells nothing of any vault."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from knapper import __version__
from knapper.server import replies

PATH: Final = "/health"
OPERATION: Final[dict[str, Any]] = {
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
                            "version": {"type": "string"},
                        },
                        "required": ["success", "status", "version"],
                    }
                }
            },
        }
    },
}


async def endpoint(request: Request) -> Response:
    """Answer without a thread, so that slow calls don't hold it up."""
    del request
    return replies.Json({"success": True, "status": "ok", "version": __version__})
