"""Keep the indexes of all vaults up to date while the server runs."""

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
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_STEADY_S: Final = 30.0
"""A watcher that ran so long begins with a short pause again when it dies."""

Open = Callable[[], "Engine"]
Follow = Callable[["Engine", threading.Event], None]
"""Keeps one index up to date until the event is set."""


def engines(hub: Hub) -> dict[str, Open]:
    """Give what opens the index of each of a hub's vaults; it is called in the watcher's own thread."""
    return {name: functools.partial(_engine, hub, name) for name in hub.vaults}


def _engine(hub: Hub, name: str) -> "Engine":
    return hub.open(name).engine


class Stopped(KnapError):
    """Say that the server stops, and the work with it."""

    code = "stopping"


def follow(engine: "Engine", stop: threading.Event) -> None:
    """Read the vault into its index, and then follow its changes until *stop* is set.

    Raises:
        KnapError: The index can't be kept; it may be tried again.
    """

    def check(phase: "RefreshPhase", done: int, total: int) -> None:
        del phase, done, total
        if stop.is_set():
            raise Stopped("the server stops")

    from knapper.index import watch  # noqa: PLC0415 - whoever starts a watcher needn't wait for its libraries

    with contextlib.suppress(Stopped):  # whole batches of files are kept, and the next start goes on from there
        watch.follow_vault(engine, stop, _unheard, progress=check)


@asynccontextmanager
async def running(
    opens: Mapping[str, Open], *, follow: Follow = follow, pause_s: float = _FIRST_PAUSE_S
) -> AsyncGenerator[None]:
    """Follow the vaults for the time of the block, each in a thread; one that dies is started again.

    Args:
        opens: What opens each vault's index, by the vault's name.
        follow: What keeps an index.
        pause_s: Before the first new start; each further one waits twice as long.
    """
    if not opens:
        yield
        return
    stop = threading.Event()
    pool = ThreadPoolExecutor(len(opens), thread_name_prefix="watch")
    keepers = [_Keeper(name=name, opened=opened, follow=follow, pool=pool, stop=stop) for name, opened in opens.items()]
    tasks = [asyncio.create_task(keeper.keep(pause_s)) for keeper in keepers]
    try:
        yield
    finally:
        stop.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(pool.shutdown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keeper:
    """Keep one vault's watcher alive."""

    name: str
    opened: Open
    follow: Follow
    pool: ThreadPoolExecutor
    stop: threading.Event

    async def keep(self, pause_s: float) -> None:
        """Start the watcher again and again, as long as it doesn't end because it should."""
        loop = asyncio.get_running_loop()
        pause = pause_s
        while not self.stop.is_set():
            began = loop.time()
            work = self.pool.submit(self._work)
            await asyncio.gather(asyncio.wrap_future(work), return_exceptions=True)
            if self.stop.is_set():
                return
            if loop.time() - began > _STEADY_S:
                pause = pause_s
            LOG.warning("the watcher of the vault '%s' died (%s); again in %.0f s", self.name, _cause(work), pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _work(self) -> None:
        self.follow(self.opened(), self.stop)


def _cause(work: Future[None]) -> str:
    error = work.exception()
    return error.code if isinstance(error, KnapError) else type(error).__name__


def _unheard(_: "RefreshOutcome") -> None:
    """Take no notice of what was taken in."""
