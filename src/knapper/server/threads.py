"""Run what blocks in threads, as many at once as the machine computes well, and say so when too much waits."""

import asyncio
import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, Literal, TypeVar, cast

from knapper.errors import StorageError

Kind = Literal["read", "write", "world", "long"]
"""What is called: something that reads, that writes, that waits for another machine, or that may go on for minutes."""
T = TypeVar("T")

_SHARES: Final[dict[Kind, float]] = {"read": 1.0, "write": 0.5, "world": 0.5, "long": 0.5}
"""Of the threads that the owner allows; each kind has its own, so that none waits for another."""
_WAITING: Final = 500
"""Calls of a kind that may wait for their turn."""
_LONG_S: Final = 0.25
"""A call that takes longer waits for something, most likely: others may begin beside it."""
_LOOK_S: Final = 0.05


class Threads:
    """Hold the threads of one server; they stay, since each holds files open that are dear to open again."""

    def __init__(self, size: int, *, at_once: int = 0, waiting: int = _WAITING) -> None:
        """Allow *size* calls that read at once, and half as many of each other kind.

        Calls that compute hinder each other, so that many at once take longer than one after the other: only some begin
        at once, and more when these turn out to wait for something.

        Args:
            size: Threads for calls that read.
            at_once: How many calls of a kind begin at once; 0 for as many as there are processors, and two at least.
            waiting: How many of a kind may wait for their turn.
        """
        some = at_once or max(2, _processors())
        self._pools = {kind: _Pool(kind, max(1, round(size * share)), some, waiting) for kind, share in _SHARES.items()}

    async def run(self, kind: Kind, work: Callable[[], T]) -> T:
        """Do *work* in a thread, when it is its turn; work that has begun goes on even if nobody waits for it any more.

        Raises:
            StorageError: Too many wait already (code ``busy``).
        """
        pool = self._pools[kind]
        future = pool.submit(work)
        pool.look_after(asyncio.get_running_loop())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more, and let threads end when their work does."""
        for pool in self._pools.values():
            pool.close()

    def finish(self, wait_s: float) -> bool:
        """Begin nothing more, wait until all calls that run have ended, and tell whether they have."""
        self.close()
        return not wait([future for pool in self._pools.values() for future in pool.running()], wait_s).not_done


@dataclass(slots=True, eq=False)
class _Job(Generic[T]):
    """Hold a call."""

    work: Callable[[], T]
    future: Future[T] = field(default_factory=Future[T])
    began: float = 0.0
    is_long: bool = False

    def end(self, done: Future[T]) -> None:
        error = done.exception()
        if error is None:
            self.future.set_result(done.result())
        else:
            self.future.set_exception(error)


class _Pool:
    """Hold the threads of one kind."""

    def __init__(self, name: str, size: int, at_once: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._size, self._at_once, self._most = size, min(size, at_once), waiting
        self._lock = threading.RLock()  # a call may have ended before it is looked after
        self._waiting: deque[_Job[object]] = deque()
        self._running: set[_Job[object]] = set()
        self._is_looked_after = False
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        job = _Job(partial(contextvars.copy_context().run, work))
        with self._lock:
            if self._is_closed:
                raise StorageError("the server stops", hint="try again in a moment", code="stopping")
            if len(self._waiting) >= self._most:
                self._waiting = deque(one for one in self._waiting if not one.future.cancelled())
            self._waiting.append(cast("_Job[object]", job))
            self._begin()
            if len(self._waiting) > self._most:
                _ = self._waiting.pop()
                raise StorageError("the server has too much to do", hint="try again in a moment", code="busy")
        return job.future

    def look_after(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look again and again, as long as calls wait, whether more can begin."""
        if self._waiting and not self._is_looked_after:
            self._is_looked_after = True
            _ = loop.call_later(_LOOK_S, self._look, loop)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            while self._waiting:
                _ = self._waiting.popleft().future.cancel()
        self._executor.shutdown(wait=False)  # what was given to it has begun, and comes to its end

    def running(self) -> list[Future[object]]:
        """List what runs."""
        with self._lock:
            return [job.future for job in self._running]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_looked_after = False
        with self._lock:
            since = time.monotonic() - _LONG_S
            for job in self._running:
                job.is_long = job.is_long or job.began < since
            self._begin()
        self.look_after(loop)

    def _begin(self) -> None:
        """Begin what may; the lock is held."""
        while self._waiting and len(self._running) < self._size:
            if sum(not job.is_long for job in self._running) >= self._at_once:
                return
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                job.began = time.monotonic()
                self._running.add(job)
                self._executor.submit(job.work).add_done_callback(partial(self._end, job))

    def _end(self, job: _Job[object], done: Future[object]) -> None:
        with self._lock:
            self._running.discard(job)
            self._begin()
        job.end(done)


def _processors() -> int:
    """Count the processors that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
