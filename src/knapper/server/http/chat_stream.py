"""Send a turn's events as they happen; who lost the connection goes on where it was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from knapper.server import events, replies, stopping
from knapper.server.events import HEARTBEAT_S, Event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

    from knapper.agents.live import LiveTurn

START: Final = "start"
"""The first event: which turn it is, of which session, and what was said, for windows that come later."""
_BEAT: Final = b": still here\n\n"


def stream(turn: LiveTurn, request: Request, *, heartbeat_s: float = HEARTBEAT_S) -> StreamingResponse:
    """Answer a request with a turn's events, from where the client's ``Last-Event-ID`` says it was.

    When the server stops, the turn is cancelled, and the stream ends with what that says.
    """
    stopping.leave_to_itself(request.scope)
    headers = {**replies.HEADERS, "x-accel-buffering": "no"}
    frames = _frames(turn, events.last_heard(request), heartbeat_s)
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


async def _frames(turn: LiveTurn, heard: int, heartbeat_s: float) -> AsyncGenerator[bytes]:
    """Write events; their ids are those of the turn, and one more, as the first one is ours."""
    if heard > len(turn.events) + 1:  # an id of another turn: all is new
        heard = 0
    if not heard:
        told: Event = Event(id=1, name=START, data=_start(turn))
        yield told.encode()
    following = turn.follow(max(heard - 1, 0))
    coming = asyncio.ensure_future(anext(following, None))
    try:
        while True:
            ready, _ = await asyncio.wait([coming], timeout=heartbeat_s)
            if not ready:
                yield _BEAT
                continue
            found = coming.result()
            if found is None:
                return
            number, event = found
            yield Event(id=number + 1, name=event.kind, data=event.as_dict()).encode()
            coming = asyncio.ensure_future(anext(following, None))
    finally:
        _ = coming.cancel()
        _ = await asyncio.wait([coming])
        await following.aclose()


def _start(turn: LiveTurn) -> dict[str, str]:
    return {"type": START, "turn_id": turn.id, "session_id": turn.session_id, "message": turn.question}
