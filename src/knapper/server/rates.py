"""Limit how often a client asks."""

import math
import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from knapper.errors import RefusedError
from knapper.server import auth, replies

_MINUTE_S: Final = 60.0


class Buckets:
    """Give each client a bucket of a minute's requests, which fills again evenly."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = time.monotonic) -> None:
        """Start with full buckets; *per_minute* is at least 1."""
        self._size = float(per_minute)
        self._now = now
        self._levels: dict[str, tuple[float, float]] = {}
        """What is left, and when that was, by client; clients are those of the configuration, so they are few."""

    def take(self, client: str) -> float:
        """Take one; gives 0, or for how many seconds there is none."""
        now = self._now()
        level, since = self._levels.get(client, (self._size, now))
        level = min(self._size, level + (now - since) * self._size / _MINUTE_S)
        if level < 1:
            self._levels[client] = (level, now)
            return (1 - level) * _MINUTE_S / self._size
        self._levels[client] = (level - 1, now)
        return 0.0


class Limit:
    """Refuse a client that asks too often; middleware in plain ASGI, behind the gate."""

    def __init__(self, app: ASGIApp, *, buckets: Buckets | None) -> None:
        """Stand before *app*; None sets no limit."""
        self.app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or tell when to come again."""
        wait_s = self._wait(scope) if scope["type"] == "http" else 0.0
        if not wait_s:
            await self.app(scope, receive, send)
            return
        error = RefusedError(
            "this client asks too often",
            hint="wait as long as Retry-After says; server.requests_per_minute sets the limit",
            code="too_many_requests",
        )
        await replies.failure(error, {"retry-after": str(math.ceil(wait_s))})(scope, receive, send)

    def _wait(self, scope: Scope) -> float:
        if self._buckets is None or not auth.is_known(scope):
            return 0.0
        return self._buckets.take(auth.client_of(scope))
