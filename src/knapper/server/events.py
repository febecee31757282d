"""Send events to browsers and programs as they happen, so that a lost connection loses none.

Source: HTML Living Standard, section 9.2, Server-sent events.
"""

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import StreamingResponse

from knapper.server import replies
from knapper.vault.outline import JSONValue

HEARTBEAT_S: Final = 15.0
KEPT: Final = 2_000
"""Events that a channel keeps for those who come back."""
_LONGEST_ID: Final = 15
_BEAT: Final = b": still here\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Hold one event."""

    id: int
    """Counts from 1 in its channel."""
    name: str
    """What kind: one word, such as ``text``."""
    data: Mapping[str, JSONValue]

    def encode(self) -> bytes:
        """Write the event as it goes over the wire; JSON has no line ends of its own."""
        text = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self.id}\nevent: {self.name}\ndata: {text}\n\n".encode("utf-8", "backslashreplace")


class Channel:
    """Keep the last events of one thing that goes on, and hand them to all who listen; any thread may publish."""

    def __init__(self, *, kept: int = KEPT) -> None:
        """Begin without events; the oldest of more than *kept* are forgotten."""
        self._events: deque[Event] = deque(maxlen=kept)
        self._next = 1
        self._lock = threading.Lock()
        self._closed = False
        self._bells: dict[object, Callable[[], None]] = {}

    def publish(self, name: str, data: Mapping[str, JSONValue]) -> int:
        """Add an event; gives its id, or 0 where the channel is closed.

        Raises:
            ValueError: The name isn't a word.
        """
        if not name.isidentifier():
            raise ValueError(f"'{name}' isn't an event's name")
        with self._lock:
            if self._closed:
                return 0
            event = Event(id=self._next, name=name, data=data)
            self._next += 1
            self._events.append(event)
        self._ring()
        return event.id

    def close(self) -> None:
        """Let those who listen end, once they have heard all."""
        with self._lock:
            self._closed = True
        self._ring()

    @property
    def is_closed(self) -> bool:
        """Tell whether no event will come any more."""
        return self._closed

    async def listen(self, after: int = 0, *, heartbeat_s: float = HEARTBEAT_S) -> AsyncGenerator[bytes]:
        """Give what goes over the wire, from the event after the given one, until the channel is closed.

        Who missed more than is kept hears an event ``gap`` first, which has the number of those missed.

        Args:
            after: The last event that was heard; 0 for none.
            heartbeat_s: After so many silent seconds a comment is sent, so that a dead connection is noticed.
        """
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        key = object()
        with self._lock:
            if after >= self._next:  # an id of another channel, such as from before a restart: all is new
                after = 0
            self._bells[key] = lambda: _wake(loop, bell)
        try:
            while True:
                bell.clear()
                missed, events, is_last = self._since(after)
                if missed:
                    after += missed
                    yield Event(id=after, name="gap", data={"missed": missed}).encode()
                for event in events:
                    yield event.encode()
                    after = event.id
                if is_last:
                    return
                if not await _rings(bell, heartbeat_s):
                    yield _BEAT
        finally:
            with self._lock:
                del self._bells[key]

    def _since(self, after: int) -> tuple[int, list[Event], bool]:
        with self._lock:
            events = [event for event in self._events if event.id > after]
            first = self._events[0].id if self._events else self._next
            return max(first - 1 - after, 0), events, self._closed

    def _ring(self) -> None:
        with self._lock:
            bells = list(self._bells.values())
        for ring in bells:
            ring()


def stream(channel: Channel, request: Request, *, heartbeat_s: float = HEARTBEAT_S) -> StreamingResponse:
    """Answer a request with a channel's events, from where the client's ``Last-Event-ID`` says it was."""
    headers = {**replies.HEADERS, "x-accel-buffering": "no"}
    events = channel.listen(last_heard(request), heartbeat_s=heartbeat_s)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def last_heard(request: Request) -> int:
    """Give the last event that a client says it heard; 0 where it says none, or nonsense."""
    said = request.headers.get("last-event-id", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) <= _LONGEST_ID else 0


def _wake(loop: asyncio.AbstractEventLoop, bell: asyncio.Event) -> None:
    _ = loop.call_soon_threadsafe(bell.set)


async def _rings(bell: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await bell.wait()
    except TimeoutError:
        return False
