"""Send what happens to browsers and programs as it happens, so that a lost connection loses none.

Source: HTML Living Standard, section 9.2, Server-sent events.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from knapper.server import places, replies, stopping

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from starlette.requests import Request

    from knapper.agents.background import BackgroundJob, FinalT
    from knapper.jsontypes import JSONValue

    Told = Callable[[Mapping[str, JSONValue]], Mapping[str, JSONValue]]

HEARTBEAT_S: Final = 15.0
"""After so many silent seconds a comment is sent, so that a dead connection is noticed."""
START: Final = "start"
"""The first event: what this is, for windows that come later."""
ERROR: Final = "error"
"""The event that tells what went wrong."""
_LONGEST_ID: Final = 15
_BEAT: Final = b": still here\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Hold one event."""

    id: int
    """Counts from 1 in its stream."""
    name: str
    """What kind: one word, such as ``text``."""
    data: Mapping[str, JSONValue]

    def encode(self) -> bytes:
        """Write the event as it goes over the wire; JSON has no line ends of its own."""
        text = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self.id}\nevent: {self.name}\ndata: {text}\n\n".encode("utf-8", "backslashreplace")


def stream(
    live: BackgroundJob[FinalT], start: Mapping[str, JSONValue], request: Request, *, heartbeat_s: float = HEARTBEAT_S
) -> StreamingResponse:
    """Answer a request with the events of what goes on, from where the client's ``Last-Event-ID`` says it was.

    When the server stops, the work is cancelled, and the stream ends with what that says.

    Args:
        live: What goes on, or has ended.
        start: The first event, of kind ``start``.
        request: From whom.
        heartbeat_s: See `HEARTBEAT_S`.
    """
    stopping.leave_to_itself(request.scope)
    headers = {**replies.HEADERS, "x-accel-buffering": "no"}
    frames = frames_of(live, start, last_heard(request), heartbeat_s, partial(places.told_event, request.scope))
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


async def frames_of(
    live: BackgroundJob[FinalT],
    start: Mapping[str, JSONValue],
    heard: int,
    heartbeat_s: float = HEARTBEAT_S,
    told: Told | None = None,
) -> AsyncGenerator[bytes]:
    """Write events; their ids are those of the work, and one more, as the first one is ours.

    Args:
        live: What goes on.
        start: The first event.
        heard: The last one that was heard; 0 for none.
        heartbeat_s: See `HEARTBEAT_S`.
        told: Gives an error as the client is told it; None for as it is.
    """
    if heard > len(live.events) + 1:  # an id of other work, such as from before a restart: all is new
        heard = 0
    if not heard:
        yield Event(id=1, name=START, data={"type": START, **start}).encode()
    following = live.follow(max(heard - 1, 0))
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
            data = event.as_dict()
            shown = told(data) if told and event.kind == ERROR else data
            yield Event(id=number + 1, name=event.kind, data=shown).encode()
            coming = asyncio.ensure_future(anext(following, None))
    finally:
        _ = coming.cancel()
        _ = await asyncio.wait([coming])
        await following.aclose()


def last_heard(request: Request) -> int:
    """Give the last event that a client says it heard; 0 where it says none, or nonsense."""
    said = request.headers.get("last-event-id", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) <= _LONGEST_ID else 0
