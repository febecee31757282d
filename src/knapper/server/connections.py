"""Let no connection wait for ever for the rest of a request."""

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_TIMEOUT_S: Final = 20.0
"""How long a client may take for the first line and the headers of a request."""


class Connection(H11Protocol):
    """Close a connection whose request doesn't begin in time; all else is uvicorn's."""

    head_timeout_s: float = HEAD_TIMEOUT_S
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._follow_head()

    def data_received(self, data: bytes) -> None:
        """Wait on for the head, or, once it is there, no more."""
        super().data_received(data)
        self._follow_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

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
