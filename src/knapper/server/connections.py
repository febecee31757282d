"""Let no connection wait for ever for the rest of a request, and answer what is no HTTP as any other error."""

import asyncio
import secrets
from typing import Final, cast

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from knapper.errors import BadInput, StorageError
from knapper.server import replies, tracing

HEAD_TIMEOUT_S: Final = 20.0
"""How long a client may take for the first line and the headers of a request."""
MOST: Final = 1_000
"""Connections at once, idle ones among them; who comes then is told to come again."""


async def _full(scope: Scope, receive: Receive, send: Send) -> None:
    error = StorageError("the server has too many connections", hint="try again in a moment", code="busy")
    await replies.failure(error, {"connection": "close"})(scope, receive, send)


_FULL: Final = tracing.Trace(_full)


class Connection(H11Protocol):
    """Close a connection whose request doesn't begin in time, or is none; all else is uvicorn's."""

    head_timeout_s: float = HEAD_TIMEOUT_S
    most: int = MOST
    app: ASGIApp
    _answers: ASGIApp
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._answers = self.app
        self._follow_head()

    def data_received(self, data: bytes) -> None:
        """Wait on for the head, or, once it is there, no more."""
        self.app = self._answers if len(self.connections) <= self.most else _FULL
        super().data_received(data)
        self._follow_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what can't be read as HTTP, in the one shape of errors, unless an answer has begun already."""
        del msg
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            name = secrets.token_hex(8)
            for part in _unreadable(name):
                self.transport.write(self.conn.send(part) or b"")
            tracing.LOG.info("%s - ? /… %d 0 ms", name, 400)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: whoever offers another protocol takes this one as well, and no package is missing."""

    def _follow_head(self) -> None:
        if self._is_answering:
            self._stop_waiting()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing() and not self._is_answering:
            self.transport.close()

    @property
    def _is_answering(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # uvicorn has none at first, but doesn't say so
        return cycle is not None and not cycle.response_complete


def _unreadable(name: str) -> list[h11.Event]:
    """Give the parts of the answer to what is no request; *name* finds it in the log."""
    hint = "its first line, headers or length can't be read as HTTP/1.1, or are too long"
    reply = replies.failure(
        BadInput("the request can't be read", hint=hint, code="bad_request"),
        {"connection": "close", tracing.HEADER: name},
    )
    head = h11.Response(status_code=reply.status_code, headers=reply.raw_headers, reason=b"Bad Request")
    return [head, h11.Data(data=bytes(reply.body)), h11.EndOfMessage()]
