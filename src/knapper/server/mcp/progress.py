"""Tell a client how far long work is, and end that work where the client cancels it."""

import asyncio
import time
from dataclasses import replace

from fastmcp.server.dependencies import get_context

from knapper.errors import KnapError
from knapper.server.stopping import Stop
from knapper.tools.context import Context

_PAUSE_S = 0.2
"""Between two reports; the last one is always sent."""


class Cancelled(KnapError):
    """Say that the client doesn't want the answer any more."""

    code = "cancelled"


class Reporter:
    """Send reports of progress from the thread that works."""

    def __init__(self) -> None:
        """Take the request that is being answered."""
        self._context = get_context()
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._is_cancelled = False
        self._cancelling = Stop()

    def listen(self, context: Context) -> Context:
        """Give a context whose progress is told."""
        return replace(context, progress=self._hear, on_cancel=self._cancelling.on)

    def cancel(self) -> None:
        """End the work at the next report, or at once where it can be."""
        self._is_cancelled = True
        self._cancelling.tell()

    def _hear(self, done: float, total: float, what: str) -> None:
        if self._is_cancelled:
            raise Cancelled("the client cancelled the call")
        now = time.monotonic()
        if done < total and now - self._last < _PAUSE_S:
            return
        self._last = now
        asyncio.run_coroutine_threadsafe(self._context.report_progress(done, total, what), self._loop)
