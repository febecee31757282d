"""Threads for blocking calls, which end when a client disconnects or the server stops, and for indexes' watchers."""

import asyncio
import contextlib
import contextvars
import ctypes
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from knapper.app import Hub
from knapper.errors import CallerError, KnapError, StorageError
from knapper.tools.context import CancelSignal
from knapper.tools.registry import ToolSpec, ToolTable

if TYPE_CHECKING:
    from knapper.index.engine import Engine
    from knapper.index.refresh import RefreshOutcome, RefreshPhase


IMPORT_LOCK: Final = threading.RLock()
"""Held by whoever imports late."""

WorkKind = Literal["read", "write", "world", "long"]
"""What is called: something that reads, that writes, that waits for another machine, or that may go on for minutes."""
T = TypeVar("T")

_THREAD_SHARES: Final[dict[WorkKind, float]] = {"read": 1.0, "write": 0.5, "world": 0.5, "long": 0.5}
"""Of the threads that the owner allows; each kind has its own, so that none waits for another."""
_MAX_WAITING: Final = 500
"""Calls of a kind that may wait for their turn."""
_LONG_S: Final = 0.25
"""A call that takes longer waits for something, most likely: others may begin beside it."""
_CHECK_INTERVAL_S: Final = 0.05


class WorkerThreads:
    """The worker threads of one server; they are kept, since each has files open that are slow to reopen."""

    def __init__(self, size: int, *, at_once: int = 0, waiting: int = _MAX_WAITING) -> None:
        """Allow *size* concurrent reading calls, and half as many of each other kind.

        Computing calls slow each other down, so only some start at once, and more start when the running
        ones turn out to be waiting.

        Args:
            size: Threads for calls that read.
            at_once: How many calls of a kind start at once; 0 for the number of processors, and at least two.
            waiting: How many calls of a kind may be queued.
        """
        concurrent_calls = at_once or max(2, count_processors())
        self._pools = {
            kind: _ThreadPool(kind, max(1, round(size * share)), concurrent_calls, waiting)
            for kind, share in _THREAD_SHARES.items()
        }

    async def run(self, kind: WorkKind, work: Callable[[], T]) -> T:
        """Run *work* in a thread when one is free; work that has started continues even if its caller is cancelled.

        Raises:
            StorageError: Too many calls are queued (code ``busy``).
        """
        pool = self._pools[kind]
        future = pool.submit(work)
        pool.schedule_check(asyncio.get_running_loop())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Start no more work, and let threads end with theirs."""
        for pool in self._pools.values():
            pool.close()

    def finish(self, wait_s: float) -> bool:
        """Start no more work, wait for the running calls, and return whether all have ended."""
        self.close()
        return not wait([future for pool in self._pools.values() for future in pool.running()], wait_s).not_done


@dataclass(slots=True, eq=False)
class _Call(Generic[T]):
    """A call."""

    work: Callable[[], T]
    future: Future[T] = field(default_factory=Future[T])
    began: float = 0.0
    is_long: bool = False
    is_in_first: bool = False
    """It has the thread that calls one after another share."""

    def make(self) -> T:
        return self.work()

    def end(self, done: Future[T]) -> None:
        error = done.exception()
        if error is None:
            self.future.set_result(done.result())
        elif isinstance(error, StopIteration):
            # asyncio takes none into a future, so that who waits for the call would do so for ever.
            self.future.set_exception(RuntimeError("a call ended by StopIteration").with_traceback(error.__traceback__))
        else:
            self.future.set_exception(error)

    def refuse(self) -> None:
        """Fail since the system starts no further thread; one that takes the call later does nothing."""

        def do_nothing() -> T:
            raise CancelledError

        self.work = do_nothing
        hint = "try again in a moment; allow more threads where the system limits them"
        self.future.set_exception(StorageError("the server can't start another thread", hint=hint, code="busy"))


class _ThreadPool:
    """The threads for one kind of call.

    Calls one after another are all made in the first, whose connection to the index has in its cache what it has just
    read and written; an executor of several would give them to each in turn.
    """

    def __init__(self, name: str, size: int, at_once: int, waiting: int) -> None:
        self._first = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._others = ThreadPoolExecutor(max(size - 1, 1), thread_name_prefix=name)
        self._size, self._at_once, self._most = size, min(size, at_once), waiting
        self._lock = threading.RLock()  # a call may have ended before it is looked after
        self._waiting: deque[_Call[object]] = deque()
        self._running: set[_Call[object]] = set()
        self._is_looked_after = False
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        job = _Call(partial(contextvars.copy_context().run, work))
        with self._lock:
            if self._is_closed:
                raise StorageError("the server stops", hint="try again in a moment", code="stopping")
            if len(self._waiting) >= self._most:
                self._waiting = deque(
                    waiting_job for waiting_job in self._waiting if not waiting_job.future.cancelled()
                )
            self._waiting.append(cast("_Call[object]", job))
            self._begin()
            if len(self._waiting) > self._most:
                _ = self._waiting.pop()
                raise StorageError("the server has too much to do", hint="try again in a moment", code="busy")
        return job.future

    def schedule_check(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check periodically, while calls are queued, whether more can start."""
        if self._waiting and not self._is_looked_after:
            self._is_looked_after = True
            _ = loop.call_later(_CHECK_INTERVAL_S, self._look, loop)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            while self._waiting:
                _ = self._waiting.popleft().future.cancel()
        for executor in (self._first, self._others):
            executor.shutdown(wait=False)  # what was given to it has begun, and comes to its end

    def running(self) -> list[Future[object]]:
        """List the running calls."""
        with self._lock:
            return [job.future for job in self._running]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_looked_after = False
        with self._lock:
            since = time.monotonic() - _LONG_S
            for job in self._running:
                job.is_long = job.is_long or job.began < since
            self._begin()
        self.schedule_check(loop)

    def _begin(self) -> None:
        """Start the calls that may start; the caller holds the lock."""
        while self._waiting and len(self._running) < self._size:
            if sum(not job.is_long for job in self._running) >= self._at_once:
                return
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                job.began = time.monotonic()
                job.is_in_first = not any(other.is_in_first for other in self._running)
                self._running.add(job)
                executor = self._first if job.is_in_first else self._others
                try:
                    executor.submit(job.make).add_done_callback(partial(self._end, job))
                except RuntimeError:
                    self._running.discard(job)
                    job.refuse()

    def _end(self, job: _Call[object], done: Future[object]) -> None:
        with self._lock:
            self._running.discard(job)
            self._begin()
        job.end(done)


_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""From glibc's ``malloc.h``."""
_ARENAS: Final = 2
_LARGE_BLOCK: Final = 4 << 20
"""Bytes from which on a block is a mapping of its own, which goes back to the system at once when it is freed. By
itself glibc raises that to 32 MB once such a block was freed, and puts what comes next between small ones that stay."""


def share_arenas() -> bool:
    """Let all threads to come share two of glibc's arenas, and keep large blocks out of them.

    Each thread would have its own, up to eight for each processor. What is freed in one serves no other thread, so a
    server whose calls go to many threads would hold for a long time what the largest calls of each thread needed.

    Returns:
        Whether the system's allocator has arenas.
    """
    if sys.platform != "linux":
        return False
    # musl and other allocators lack it.
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    _ = set_option(_M_MMAP_THRESHOLD, _LARGE_BLOCK), set_option(_M_TRIM_THRESHOLD, 2 * _LARGE_BLOCK)
    return bool(set_option(_M_ARENA_MAX, _ARENAS))


_RETURN_EVERY_S: Final = 60.0
_WORTH_RETURNING_S: Final = 1.0
"""Processor time since the last return; a server that idles is left alone."""


@asynccontextmanager
async def return_memory(
    *, every_s: float = _RETURN_EVERY_S, work_s: float = _WORTH_RETURNING_S
) -> AsyncGenerator[None]:
    """Return freed memory to the system at intervals within the block, where something was done meanwhile.

    The allocator keeps what lies below the last block in use, which after an hour of requests is as much as is used.
    """
    from knapper.system import arrays  # noqa: PLC0415 - whoever imports this needn't wait for it

    async def keep() -> None:
        returned_at = 0.0
        while True:
            await asyncio.sleep(every_s)
            if time.process_time() - returned_at >= work_s:
                await asyncio.to_thread(arrays.return_free_memory)
                returned_at = time.process_time()

    task = asyncio.create_task(keep(), name="return of memory")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def kind_of_call(table: ToolTable, row: ToolSpec, arguments: Mapping[str, object]) -> WorkKind:
    """Return the kind of a call; one that calls another tool by its name is of that tool's kind."""
    if row.name == "call_tool":
        name = arguments.get("name")
        row = next((candidate for candidate in table.specs if candidate.name == name), row)
    if row.takes_long:
        return "long"
    if row.open_world:
        return "world"
    return "read" if row.effect == "read" else "write"


WorkResult = TypeVar("WorkResult")


async def run_unless_disconnected(receive: Receive, work: Coroutine[Any, Any, WorkResult]) -> WorkResult:
    """Run *work* for a client, and cancel it once the client disconnects.

    Args:
        receive: The request's ASGI receive, after its body was read.
        work: The work to cancel; a call that has started in a thread continues, a queued one is dropped.

    Raises:
        CallerError: The client has disconnected (code ``client_gone``).
        StorageError: The server is stopping and waits no longer (code ``stopping``).
    """
    work_task, disconnect_task = asyncio.create_task(work), asyncio.create_task(_wait_for_disconnect(receive))
    try:
        _ = await asyncio.wait((work_task, disconnect_task), return_when=asyncio.FIRST_COMPLETED)
        if not work_task.done():
            raise CallerError("the client has gone", code="client_gone")
        return work_task.result()
    except asyncio.CancelledError:
        raise StorageError("the server stops", hint="try again in a moment", code="stopping") from None
    finally:
        _ = work_task.cancel(), disconnect_task.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


_EMPTY_FINAL_BODY: Final[Message] = {"type": "http.response.body", "body": b"", "more_body": False}
_EVENT_STREAM: Final = "text/event-stream"
_ENDS_ITSELF_KEY: Final = "knapper.ends_itself"


class StopSignal(CancelSignal):
    """A one-time signal that the server stops; safe to use from any thread."""

    async def wait(self) -> None:
        """Wait until the server stops."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        forget = self.subscribe(lambda: _call_in_loop(loop, bell.set))
        try:
            await bell.wait()
        finally:
            forget()


def let_stream_end_itself(scope: Scope) -> None:
    """Mark a stream that ends by itself when the server stops, after its last events."""
    scope.setdefault("state", {})[_ENDS_ITSELF_KEY] = True


class StreamShutdown:
    """ASGI middleware that ends event streams of GET requests when the server stops; calls may finish."""

    def __init__(self, app: ASGIApp, *, stop: StopSignal) -> None:
        """Wrap *app*."""
        self.app = app
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; an event stream ends when the server stops."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        stream = _EventStreamSender(send)
        answer_task = asyncio.ensure_future(self.app(scope, receive, stream.send))
        forget = self._stop.subscribe(stream.end_soon(answer_task, scope))
        try:
            await answer_task
        except asyncio.CancelledError:
            if not stream.is_ended:
                raise
            await send(_EMPTY_FINAL_BODY)
        finally:
            forget()


class _EventStreamSender:
    """A response's sender, which can end an event stream from outside."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_events = False
        self.is_ended = False

    async def send(self, message: Message) -> None:
        """Pass a message on, and record the kind of response that it starts."""
        if message["type"] == "http.response.start":
            self._is_events = Headers(raw=message["headers"]).get("content-type", "").startswith(_EVENT_STREAM)
        elif not message.get("more_body", False):
            self._is_events = False
        await self._send(message)

    def end_soon(self, answer_task: asyncio.Task[None], scope: Scope) -> Callable[[], None]:
        """Return a function that ends the response, callable from any thread."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            if self._is_events and not scope.get("state", {}).get(_ENDS_ITSELF_KEY):
                self.is_ended = answer_task.cancel()

        return lambda: _call_in_loop(loop, end)


def _call_in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    _ = loop.call_soon_threadsafe(work)


LOG: Final = logging.getLogger("knapper.server.workers")
_FIRST_RESTART_PAUSE_S: Final = 1.0
_MAX_RESTART_PAUSE_S: Final = 60.0
_STABLE_AFTER_S: Final = 30.0
"""A watcher that ran so long begins with a short pause again when it dies."""

OpenIndex = Callable[[], "Engine"]
FollowVault = Callable[["Engine", threading.Event], None]
"""Keeps one index up to date until the event is set."""


def engine_openers(hub: Hub) -> dict[str, OpenIndex]:
    """Return a function per vault that opens its index; called in the watcher's own thread."""
    return {name: lambda name=name: hub.open(name).engine for name in hub.vaults}


class WatcherStopped(KnapError):
    """The server is stopping."""

    code = "stopping"


def follow_vault(engine: "Engine", stop: threading.Event) -> None:
    """Read the vault into its index, and then follow its changes until *stop* is set.

    Raises:
        KnapError: The index can't be kept up to date; the caller may retry.
    """

    def check(phase: "RefreshPhase", done: int, total: int) -> None:
        del phase, done, total
        if stop.is_set():
            raise WatcherStopped("the server stops")

    from knapper.index import watch  # noqa: PLC0415 - whoever starts a watcher needn't wait for its libraries

    with contextlib.suppress(WatcherStopped):  # whole batches of files are kept, and the next start goes on from there
        watch.follow_vault(engine, stop, _log_damage, progress=check)


@asynccontextmanager
async def run_watchers(
    opens: Mapping[str, OpenIndex], *, follow: FollowVault = follow_vault, pause_s: float = _FIRST_RESTART_PAUSE_S
) -> AsyncGenerator[None]:
    """Watch the vaults within the block, each in a thread; a watcher that fails is restarted.

    Args:
        opens: Functions that open each vault's index, by the vault's name.
        follow: Keeps one index up to date.
        pause_s: The pause before the first restart, in seconds; it doubles each time.
    """
    if not opens:
        yield
        return
    stop = threading.Event()
    pool = ThreadPoolExecutor(len(opens), thread_name_prefix="watch")
    supervisors = [
        _WatcherSupervisor(name=name, opened=open_index, follow=follow, pool=pool, stop=stop)
        for name, open_index in opens.items()
    ]
    tasks = [asyncio.create_task(keeper.keep(pause_s)) for keeper in supervisors]
    try:
        yield
    finally:
        stop.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(pool.shutdown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WatcherSupervisor:
    """Restarts one vault's watcher after failures."""

    name: str
    opened: OpenIndex
    follow: FollowVault
    pool: ThreadPoolExecutor
    stop: threading.Event

    async def keep(self, pause_s: float) -> None:
        """Run the watcher, restarting it until the server stops."""
        opened: list[Engine] = []
        try:
            await self._restart(pause_s, opened)
        finally:
            from knapper.index import status  # noqa: PLC0415 - as above

            for engine in opened:  # its watch may have failed, and isn't tried again
                status.clear_watch_failure(engine.folder)

    async def _restart(self, pause_s: float, opened: list["Engine"]) -> None:
        """Restart the watcher whenever it has failed, and collect what it watches."""

        def work() -> None:
            opened[:] = [self.opened()]
            self.follow(opened[0], self.stop)

        loop = asyncio.get_running_loop()
        pause = pause_s
        while not self.stop.is_set():
            began = loop.time()
            work_future = self.pool.submit(work)
            await asyncio.gather(asyncio.wrap_future(work_future), return_exceptions=True)
            if self.stop.is_set():
                return
            if loop.time() - began > _STABLE_AFTER_S:
                pause = pause_s
            error = work_future.exception()
            LOG.warning(
                "the watcher of the vault '%s' died (%s); again in %.0f s",
                self.name,
                error.code if isinstance(error, KnapError) else type(error).__name__,
                pause,
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RESTART_PAUSE_S)


def _log_damage(outcome: "RefreshOutcome") -> None:
    """Log that an index was rebuilt, and nothing else: the outcome names notes."""
    if outcome.was_damaged:
        LOG.warning("%s", outcome.problems[0])  # names no note
