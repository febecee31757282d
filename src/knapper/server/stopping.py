"""Tell all who keep a connection open, or work on, that the server stops."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FINAL: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}


class Stop:
    """Say once that the server stops; any thread may ask, tell and listen."""

    def __init__(self) -> None:
        """Nobody has told yet."""
        self._lock = threading.Lock()
        self._told = False
        self._heard: dict[object, Callable[[], None]] = {}

    @property
    def is_told(self) -> bool:
        """Tell whether the server stops."""
        return self._told

    def tell(self) -> None:
        """Say that the server stops."""
        with self._lock:
            self._told = True
            listeners = list(self._heard.values())
            self._heard.clear()
        for heard in listeners:
            heard()

    def on(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Have *heard* called when the server stops, or now if it does already; gives what takes that back."""
        key = object()
        with self._lock:
            if not self._told:
                self._heard[key] = heard
                return lambda: self._forget(key)
        heard()
        return lambda: None

    async def wait(self) -> None:
        """Wait until the server stops."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        forget = self.on(lambda: _wake(loop, bell))
        try:
            await bell.wait()
        finally:
            forget()

    def _forget(self, key: object) -> None:
        with self._lock:
            self._heard.pop(key, None)


class Ending:
    """End the endless answers of an app when the server stops: those to GET; calls may finish. Plain ASGI."""

    def __init__(self, app: ASGIApp, stop: Stop) -> None:
        """Stand before *app*."""
        self.app = app
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for as long as the server runs."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        is_open = False

        async def noted(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        answering = asyncio.create_task(_run(self.app, scope, receive, noted))
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([answering, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not answering.done():
                answering.cancel()
        try:
            await answering
        except asyncio.CancelledError:
            if not self._stop.is_told:
                raise
        if is_open:
            await send(_FINAL)


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def _wake(loop: asyncio.AbstractEventLoop, bell: asyncio.Event) -> None:
    _ = loop.call_soon_threadsafe(bell.set)
