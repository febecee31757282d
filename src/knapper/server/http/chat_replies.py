"""Shape what a turn came to as one reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.server import replies, statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from knapper.agents.live import LiveTurn
    from knapper.errors import SetupError
    from knapper.vault.outline import JSONValue

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
"""Of turns' errors; all others are the model's server's."""


def whole(turn: LiveTurn) -> Response:
    """Reply with a turn that has ended: its answer, or its error beside what there is of an answer."""
    told = [event.as_dict() for event in turn.events]
    done = next(one for one in reversed(told) if one["type"] == "done")
    error = next((one for one in told if one["type"] == "error"), None)
    shape = _shape(turn, done, told)
    if error is None:
        return replies.Json({"success": True, **shape})
    return failed(shape, error)


def failed(shape: Mapping[str, JSONValue], error: Mapping[str, JSONValue]) -> Response:
    """Reply with what went wrong, beside what there is.

    Args:
        shape: What there is.
        error: As `knapper.agents.events.Error` shows itself.
    """
    code = str(error["code"])
    told = {"success": False, "error": error["error"], "code": code, "hint": error["hint"]}
    return replies.Json({**shape, **told}, _STATUSES.get(code, GATEWAY))


def not_set_up(error: SetupError) -> Response:
    """Reply that the owner has to set something up first, such as a model."""
    return replies.Json(error.as_dict(), statuses.BUSY)


def _shape(turn: LiveTurn, done: Mapping[str, JSONValue], told: list[dict[str, JSONValue]]) -> dict[str, JSONValue]:
    question = next((one for one in told if one["type"] == "question"), None)
    proposals = [one["proposal"] for one in told if one["type"] == "proposal"]
    kept = ("citations", "removed", "tools", "changes", "usage", "model", "state", "notes")
    return {
        "response": done["answer"],
        "session_id": turn.about,
        "turn_id": turn.id,
        "proposals": proposals,
        "question": question and {"question": question["question"], "options": question["options"]},
        **{name: done[name] for name in kept},
    }
