"""Watchers that keep the indexes of all vaults up to date while the server runs."""

import asyncio
import contextlib
import functools
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from knapper.app import Hub
from knapper.errors import KnapError

if TYPE_CHECKING:
    from knapper.index.engine import Engine
    from knapper.index.refresh import RefreshOutcome, RefreshPhase


LOG: Final = logging.getLogger("knapper.server.watchers")
_FIRST_RESTART_PAUSE_S: Final = 1.0
_MAX_RESTART_PAUSE_S: Final = 60.0
_STABLE_AFTER_S: Final = 30.0
"""A watcher that ran so long begins with a short pause again when it dies."""

OpenIndex = Callable[[], "Engine"]
FollowVault = Callable[["Engine", threading.Event], None]
"""Keeps one index up to date until the event is set."""


def engine_openers(hub: Hub) -> dict[str, OpenIndex]:
    """Return a function per vault that opens its index; called in the watcher's own thread."""
    return {name: functools.partial(_open_engine, hub, name) for name in hub.vaults}


def _open_engine(hub: Hub, name: str) -> "Engine":
    return hub.open(name).engine


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
        loop = asyncio.get_running_loop()
        pause = pause_s
        while not self.stop.is_set():
            began = loop.time()
            work_future = self.pool.submit(self._work)
            await asyncio.gather(asyncio.wrap_future(work_future), return_exceptions=True)
            if self.stop.is_set():
                return
            if loop.time() - began > _STABLE_AFTER_S:
                pause = pause_s
            LOG.warning(
                "the watcher of the vault '%s' died (%s); again in %.0f s",
                self.name,
                _failure_cause(work_future),
                pause,
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RESTART_PAUSE_S)

    def _work(self) -> None:
        self.follow(self.opened(), self.stop)


def _failure_cause(work: Future[None]) -> str:
    error = work.exception()
    return error.code if isinstance(error, KnapError) else type(error).__name__


def _log_damage(outcome: "RefreshOutcome") -> None:
    """Log that an index was rebuilt, and nothing else: the outcome names notes."""
    if outcome.was_damaged:
        LOG.warning("%s", outcome.problems[0])  # names no note
