"""Run what blocks in threads, so many at once, and say so when too much waits."""

from collections.abc import Callable
from typing import Final, Literal, TypeVar

import anyio
import anyio.to_thread

from knapper.errors import StorageError

Kind = Literal["read", "write", "world"]
"""What is called: something that reads, that writes, or that waits for another machine."""
T = TypeVar("T")

_SHARES: Final[dict[Kind, float]] = {"read": 1.0, "write": 0.5, "world": 0.5}
"""Of the threads that the owner allows; each kind has its own, so that none waits for another."""
_WAITING: Final = 500
"""Calls of a kind that may wait for their turn."""


class Threads:
    """Hold the threads of one server."""

    def __init__(self, size: int, *, waiting: int = _WAITING) -> None:
        """Allow *size* calls that read at once, and half as many of each other kind."""
        self._limits = {kind: anyio.CapacityLimiter(max(1, round(size * share))) for kind, share in _SHARES.items()}
        self._waiting = waiting

    async def run(self, kind: Kind, work: Callable[[], T]) -> T:
        """Do *work* in a thread, when it is its turn; work that is given up goes on by itself.

        Raises:
            StorageError: Too many wait already (code ``busy``).
        """
        limit = self._limits[kind]
        if limit.available_tokens < 1 and limit.statistics().tasks_waiting >= self._waiting:
            raise StorageError("the server has too much to do", hint="try again in a moment", code="busy")
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limit)

    @property
    def running(self) -> int:
        """Count the calls that run now."""
        return sum(int(limit.borrowed_tokens) for limit in self._limits.values())
