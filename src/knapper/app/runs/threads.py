"""Carry each run out in a thread with an event loop of its own, so that it holds up nobody else in a server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
_THREADS: Final = 128
"""Of one run at most: each node that looks for notes has one, and waits in it for its model."""


async def carry_out(work: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
    """Do work in a thread of its own, to its end; cancelling is passed on, and waits for what that comes to.

    Args:
        work: Makes the coroutine, in that thread.
        name: The thread's.

    Raises:
        CancelledError: It was cancelled, and has ended.
    """
    carried = _Carried(work, asyncio.get_running_loop())
    threading.Thread(target=carried.run, name=name, daemon=True).start()
    try:
        return await asyncio.shield(carried.ended)
    except asyncio.CancelledError:
        carried.cancel()
        _ = await asyncio.wait({carried.ended})
        if not carried.ended.cancelled():
            _ = carried.ended.exception()  # it ended by itself meanwhile; whoever cancels wants no more of it
        raise


class _Carried(Generic[T]):
    """Hold work that another thread does."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[T] = loop.create_future()
        self._work = work
        self._outer = loop
        self._lock = threading.Lock()
        self._task: asyncio.Task[T] | None = None
        self._inner: asyncio.AbstractEventLoop | None = None
        self._is_cancelled = False

    def run(self) -> None:
        """Do the work, in the thread that calls."""
        asyncio.run(self._watched())

    def cancel(self) -> None:
        """Cancel the work, from any thread."""
        with self._lock:
            self._is_cancelled = True
            inner, task = self._inner, self._task
        if inner is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
                _ = inner.call_soon_threadsafe(task.cancel)

    async def _watched(self) -> None:
        """Do the work, and tell its end at once: threads that it has left may take a while to be done."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(_THREADS))
        task = asyncio.ensure_future(self._work())
        with self._lock:
            self._inner, self._task = loop, task
            if self._is_cancelled:
                _ = task.cancel()
        _ = await asyncio.wait({task})
        with contextlib.suppress(RuntimeError):  # whoever waited has gone
            _ = self._outer.call_soon_threadsafe(self._settle, task)

    def _settle(self, task: asyncio.Task[T]) -> None:
        if self.ended.done():
            return
        if task.cancelled():
            _ = self.ended.cancel()
        elif error := task.exception():
            self.ended.set_exception(error)
        else:
            self.ended.set_result(task.result())
