"""Tell a client how far long work is."""

import time
from dataclasses import replace

import anyio.from_thread
from fastmcp.server.dependencies import get_context

from knapper.tools.context import Context

_PAUSE_S = 0.2
"""Between two reports; the last one is always sent."""


class Reporter:
    """Send reports of progress from the thread that works; ends that work where the client cancelled it."""

    def __init__(self) -> None:
        """Take the request that is being answered."""
        self._context = get_context()
        self._last = 0.0

    def listen(self, context: Context) -> Context:
        """Give a context whose progress is told."""
        return replace(context, progress=self._hear)

    def _hear(self, done: float, total: float, what: str) -> None:
        anyio.from_thread.check_cancelled()
        now = time.monotonic()
        if done < total and now - self._last < _PAUSE_S:
            return
        self._last = now
        anyio.from_thread.run(self._context.report_progress, done, total, what)
