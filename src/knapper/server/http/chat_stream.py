"""Send a turn's events as they happen; who lost the connection goes on where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.server import events

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import StreamingResponse

    from knapper.agents.live import LiveTurn
    from knapper.vault.outline import JSONValue


def stream(turn: LiveTurn, request: Request) -> StreamingResponse:
    """Answer a request with a turn's events, after saying which turn it is, of which session, and what was said."""
    start: dict[str, JSONValue] = {"turn_id": turn.id, "session_id": turn.about, "message": turn.question}
    return events.stream(turn, start, request)
