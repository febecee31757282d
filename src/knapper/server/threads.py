"""Run what blocks in threads, so many at once, and say so when too much waits."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Literal, TypeVar

from knapper.errors import StorageError

Kind = Literal["read", "write", "world"]
"""What is called: something that reads, that writes, or that waits for another machine."""
T = TypeVar("T")

_SHARES: Final[dict[Kind, float]] = {"read": 1.0, "write": 0.5, "world": 0.5}
"""Of the threads that the owner allows; each kind has its own, so that none waits for another."""
_WAITING: Final = 500
"""Calls of a kind that may wait for their turn."""


class Threads:
    """Hold the threads of one server; they stay, since each holds files open that are dear to open again."""

    def __init__(self, size: int, *, waiting: int = _WAITING) -> None:
        """Allow *size* calls that read at once, and half as many of each other kind."""
        self._pools = {kind: _Pool(kind, max(1, round(size * share)), waiting) for kind, share in _SHARES.items()}

    async def run(self, kind: Kind, work: Callable[[], T]) -> T:
        """Do *work* in a thread, when it is its turn; work that has begun goes on even if nobody waits for it any more.

        Raises:
            StorageError: Too many wait already (code ``busy``).
        """
        return await asyncio.wrap_future(self._pools[kind].submit(work))

    def close(self) -> None:
        """Begin nothing more, and let threads end when their work does."""
        for pool in self._pools.values():
            pool.close()


class _Pool:
    """Hold the threads of one kind."""

    def __init__(self, name: str, size: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._free = threading.BoundedSemaphore(size + waiting)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        if not self._free.acquire(blocking=False):
            raise StorageError("the server has too much to do", hint="try again in a moment", code="busy")
        future = self._executor.submit(contextvars.copy_context().run, work)
        future.add_done_callback(lambda _: self._free.release())
        return future

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
