"""Tell all who keep a connection open, or work on, that the server stops."""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.tools.context import CancelSignal

_FINAL: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}
_EVENTS: Final = "text/event-stream"
_ENDS_ITSELF: Final = "knapper.ends_itself"


class Stop(CancelSignal):
    """Say once that the server stops; any thread may tell and listen."""

    async def wait(self) -> None:
        """Wait until the server stops."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        forget = self.on(lambda: _wake(loop, bell.set))
        try:
            await bell.wait()
        finally:
            forget()


def leave_to_itself(scope: Scope) -> None:
    """Let a stream end by itself when the server stops; it has something to say then."""
    scope.setdefault("state", {})[_ENDS_ITSELF] = True


class Ending:
    """End streams of events when the server stops, those that were asked for by GET; calls may finish. Plain ASGI."""

    def __init__(self, app: ASGIApp, *, stop: Stop) -> None:
        """Stand before *app*."""
        self.app = app
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, a stream of events for as long as the server runs."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        stream = _Stream(send)
        answering = asyncio.create_task(_run(self.app, scope, receive, stream.send))
        forget = self._stop.on(stream.end_soon(answering, scope))
        try:
            await answering
        except asyncio.CancelledError:
            if not stream.is_ended:
                raise
            await send(_FINAL)
        finally:
            forget()


class _Stream:
    """Follow an answer, and end it from outside if it is a stream of events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_events = False
        self.is_ended = False

    async def send(self, message: Message) -> None:
        """Pass a message on, and note what kind of answer it begins."""
        if message["type"] == "http.response.start":
            self._is_events = Headers(raw=message["headers"]).get("content-type", "").startswith(_EVENTS)
        elif not message.get("more_body", False):
            self._is_events = False
        await self._send(message)

    def end_soon(self, answering: asyncio.Task[None], scope: Scope) -> Callable[[], None]:
        """Give what ends the answer, for any thread to call."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            if self._is_events and not scope.get("state", {}).get(_ENDS_ITSELF):
                self.is_ended = answering.cancel()

        return lambda: _wake(loop, end)


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def _wake(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    _ = loop.call_soon_threadsafe(work)
