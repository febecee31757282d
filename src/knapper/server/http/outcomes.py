"""Reply with what work by a model came to where it went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.server import places, replies, statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from knapper.errors import SetupError
    from knapper.jsontypes import JSONValue

GATEWAY: Final = 502
_STATUSES: Final = {
    "session_busy": statuses.CONFLICT,
    "session_changed": statuses.CONFLICT,
    "no_session": statuses.NOT_FOUND,
    "no_run": statuses.NOT_FOUND,
    "not_found": statuses.NOT_FOUND,
    "web_off": statuses.FORBIDDEN,
    "budget_spent": statuses.FORBIDDEN,
    "bad_input": statuses.UNFIT,
    "internal": statuses.BROKEN,
    "stopping": statuses.BUSY,
    "storage": statuses.BUSY,
    "no_prompt": statuses.BUSY,
}
"""Of errors while a model works; all others are the model's server's."""


def failed(shape: Mapping[str, JSONValue], error: Mapping[str, JSONValue], request: Request) -> Response:
    """Reply with what went wrong, beside what there is.

    Args:
        shape: What there is.
        error: As `knapper.agents.events.Error` shows itself.
        request: What is answered.
    """
    code, shown = str(error["code"]), places.told_event(request.scope, error)
    told = {"success": False, "error": shown["error"], "code": code, "hint": shown["hint"]}
    return replies.Json({**shape, **told}, _STATUSES.get(code, GATEWAY))


def not_set_up(error: SetupError, request: Request) -> Response:
    """Reply that the owner has to set something up first, such as a model."""
    return replies.Json(places.told(request.scope, error).as_dict(), statuses.BUSY)
