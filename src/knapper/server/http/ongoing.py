"""Begin work that goes on by itself, and end it with the server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from knapper.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from knapper.agents.background import BackgroundJob, BackgroundJobs, FinalT, JobFunction
    from knapper.server.http.app import Lifespan
    from knapper.server.stopping import Stop


LOG: Final = logging.getLogger("knapper.server.ongoing")
_END_S: Final = 5.0
_CANCEL_S: Final = 2.0
"""How long work that is cancelled is waited for."""


class Ongoing:
    """Hold all that goes on in one server, of whatever kind; used from its event loop."""

    def __init__(self) -> None:
        """Begin without any."""
        self.stops = False
        """Whether the server stops."""
        self._lives: list[BackgroundJob[Any]] = []
        self._watching: set[asyncio.Task[None]] = set()

    def begin(
        self, lives: BackgroundJobs[FinalT], about: str, work: JobFunction, question: str = ""
    ) -> BackgroundJob[FinalT]:
        """Begin work; arguments are those of `knapper.agents.background.BackgroundJobs.start`.

        Raises:
            StorageError: The server stops (code ``stopping``).
            ConflictError: Too much goes on.
        """
        if self.stops:
            raise StorageError("the server stops", hint="try again in a moment", code="stopping")
        live = lives.start(about, work, question)
        self._lives = [*(one for one in self._lives if not one.has_ended), live]
        watching = asyncio.create_task(_watch(live))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        return live

    def within(self, session_id: str) -> BackgroundJob[Any] | None:
        """Give what goes on in a session, where it is work on something else than that."""
        return next((live for live in self._lives if live.within == session_id and not live.has_ended), None)

    def end(self) -> None:
        """Begin no more, and cancel what goes on, saying why."""
        from knapper.agents.events import Error  # noqa: PLC0415 - a server without chats needn't pay for models

        self.stops = True
        for live in self._lives:
            if not live.has_ended:
                live.tell(Error(error="the server stops", code="stopping", hint="what there is so far, is kept"))
                _ = live.cancel()
        self._lives = []

    async def shut(self) -> None:
        """End all, and wait until what there is, is kept."""
        self.end()
        try:
            async with asyncio.timeout(_END_S):
                while self._watching:
                    await asyncio.wait(set(self._watching))
        except TimeoutError:
            LOG.warning("%d that go on didn't end in time", len(self._watching))


async def cancel(live: BackgroundJob[FinalT]) -> tuple[bool, FinalT | None]:
    """Stop work, and wait a moment for its end: a write that goes on finishes first.

    Returns:
        Whether it was still going on, and the event that ended it, if it has ended by now.
    """
    cancelled = live.cancel()
    try:
        async with asyncio.timeout(_CANCEL_S):
            return cancelled, await live.wait()
    except TimeoutError:
        return cancelled, None


def lifespan(stop: Stop, end: Callable[[], None], shut: Callable[[], Awaitable[None]]) -> Lifespan:
    """Give what stands around a server's work: told to end when the server stops, and waited for when it has.

    Args:
        stop: Told when the server stops, by any thread.
        end: Begins no more, and ends what goes on; called in the event loop.
        shut: Waits for that, and closes what is open.
    """

    @asynccontextmanager
    async def around() -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()

        def told() -> None:
            _ = loop.call_soon_threadsafe(end)

        forget = stop.on(told)
        try:
            yield
        finally:
            forget()
            await shut()

    return around


async def _watch(live: BackgroundJob[Any]) -> None:
    """Log what nobody foresaw."""
    _ = await live.wait()
    if live.failure is not None:
        LOG.error("%s failed", live.id, exc_info=live.failure)
