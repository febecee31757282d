"""Take a request's body in before it is answered, and no more of it than is allowed."""

import asyncio
import contextlib
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.errors import BadInput, CallerError
from knapper.server import replies

TIMEOUT_S: Final = 30.0
_LINGER_S: Final = 2.0


class Intake:
    """Read the body within a size and a time, declared length or not; middleware in plain ASGI.

    All bodies are JSON, which can't be read piecewise anyway.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, timeout_s: float = TIMEOUT_S) -> None:
        """Stand before *app*; the whole body has to be there within *timeout_s*."""
        self.app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body fits."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_declared(Headers(scope=scope))
            body = await self._read(receive)
        except CallerError as error:
            # what was sent isn't taken in to its end, so nothing else can come by this connection
            await _refuse(replies.failure(error, {"connection": "close"}), scope, receive, send)
            return
        if body is not None:
            await self.app(scope, _again(body, receive), send)

    def _check_declared(self, headers: Headers) -> None:
        declared = headers.get("content-length", "0")
        if not (declared.isascii() and declared.isdigit()):
            raise BadInput("the length of the body isn't a number", code="bad_request")
        if len(declared) > len(str(self._max_bytes)) or int(declared) > self._max_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive) -> bytes | None:
        """Give the whole body; None where the client has gone."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._gather(receive)
        except TimeoutError:
            raise CallerError(f"the body didn't come within {self._timeout_s:g} s", code="too_slow") from None

    async def _gather(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> CallerError:
        return CallerError(
            f"the request is larger than {self._max_bytes:,} bytes",
            hint="send less at once; server.max_body_mb sets the limit",
            code="too_large",
        )


async def _refuse(reply: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer, and hear the client out for a moment: whoever still sends when the connection closes never reads why."""

    async def unended(message: Message) -> None:
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await reply(scope, receive, unended)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while (await receive()).get("more_body", False):
                pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _again(body: bytes, receive: Receive) -> Receive:
    """Give the body once, and then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
