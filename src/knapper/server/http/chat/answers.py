"""Reply with a turn: as it came to be, or as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.server import events, replies
from knapper.server.http import outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse

    from knapper.agents.background import TurnJob
    from knapper.jsontypes import JSONValue


def whole(turn: TurnJob, request: Request) -> Response:
    """Reply to a request with a turn that has ended: its answer, or its error beside what there is of an answer."""
    told = [event.as_dict() for event in turn.events]
    done = next(one for one in reversed(told) if one["type"] == "done")
    error = next((one for one in told if one["type"] == "error"), None)
    shape = _shape(turn, done, told)
    if error is None:
        return replies.Json({"success": True, **shape})
    return outcomes.failed(shape, error, request)


def stream(turn: TurnJob, request: Request) -> StreamingResponse:
    """Answer a request with a turn's events, after saying which turn it is, of which session, and what was said."""
    start: dict[str, JSONValue] = {"turn_id": turn.id, "session_id": turn.about, "message": turn.question}
    return events.stream(turn, start, request)


def _shape(turn: TurnJob, done: Mapping[str, JSONValue], told: list[dict[str, JSONValue]]) -> dict[str, JSONValue]:
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
