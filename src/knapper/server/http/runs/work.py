"""Begin runs, let them go on by themselves, follow those of other processes, and end them with the server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Final, TypeVar

from knapper.errors import ConflictError, NotFound
from knapper.server.http.ongoing import Ongoing
from knapper.server.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from knapper.agents.background import BackgroundJob, BackgroundJobs, JobEventSink
    from knapper.agents.runs.model import RunDone, RunEvent, RunRecord
    from knapper.app.runs.room import Going, RunRoom
    from knapper.app.runs.rooms import RunRooms


T = TypeVar("T")
_THREADS: Final = 8
"""For looking runs up and opening models; a run has a thread of its own."""
MOST_RUNS: Final = 8
"""That go on at once, of all clients together."""
_MOST_WATCHED: Final = 32
LOOK_S: Final = 1.0
"""How often is looked at runs of other processes."""


class RunWork:
    """Hold the runs that one server carries out, or watches; used from its event loop."""

    def __init__(self, open_rooms: Callable[[Callable[[], bool]], RunRooms], *, look_s: float = LOOK_S) -> None:
        """Begin without any.

        Args:
            open_rooms: Opens what holds the runs, given what tells whether the server ends; called once, in a thread,
                when the first client wants it.
            look_s: See `LOOK_S`.
        """
        self._open = open_rooms
        self._rooms: RunRooms | None = None
        self._lock = threading.Lock()
        self._threads = Threads(_THREADS)
        self._ongoing = Ongoing()
        self._carried: BackgroundJobs[RunDone] | None = None
        self._watched: BackgroundJobs[RunDone] | None = None
        self._look_s = look_s
        self._is_leaving = False
        self._preparing = 0

    async def work(self, work: Callable[[], T]) -> T:
        """Do something that blocks in a thread."""
        return await self._threads.run("read", work)

    async def room(self, client: str, vault: str) -> RunRoom:
        """Give a client's room in a vault.

        Raises:
            KnapError: It can't be opened.
        """
        return await self.work(lambda: self._all().room(client, vault))

    async def begin(self, ready: Callable[[], Going]) -> RunRecord:
        """Let a run go on by itself.

        Args:
            ready: Makes it ready, in a thread.

        Raises:
            ConflictError: Too many go on (code ``too_many_runs``), or somebody carries this one out.
            StorageError: The server stops (code ``stopping``).
            KnapError: It can't be begun.
        """
        going_on = len(self._carried.going_on()) if self._carried else 0
        if going_on + self._preparing >= MOST_RUNS:
            hint = "wait until one has ended, or cancel one"
            raise ConflictError(f"{MOST_RUNS} runs go on here already", hint=hint, code="too_many_runs")
        self._preparing += 1
        try:
            going = await self.work(ready)
        finally:
            self._preparing -= 1
        run = going.run
        if self.live(run.id) is not None:
            raise busy(run.id)
        if self._carried is None:
            from knapper.agents.runs import store  # noqa: PLC0415 - a server without runs needn't pay for models

            self._carried = store.make_run_jobs(MOST_RUNS)

        def carried(tell: JobEventSink) -> Coroutine[object, object, object]:
            return _carry_out(going, tell)

        _ = self._ongoing.begin(self._carried, run.id, carried, run.order.task)
        return run

    def live(self, run_id: str) -> BackgroundJob[RunDone] | None:
        """Give a run that this server carries out right now."""
        return _going_on(self._carried, run_id)

    def watch(self, room: RunRoom, run_id: str) -> BackgroundJob[RunDone]:
        """Follow a run that another process carries out; all who follow it share one look.

        Raises:
            ConflictError: Too many are followed.
            StorageError: The server stops (code ``stopping``).
        """
        known = _going_on(self._watched, run_id)
        if known is not None:
            return known
        if self._watched is None:
            from knapper.agents.runs import store  # noqa: PLC0415 - as above

            self._watched = store.make_watched_jobs(_MOST_WATCHED)

        def watched(tell: JobEventSink) -> Coroutine[object, object, object]:
            return self._look(room, run_id, tell)

        return self._ongoing.begin(self._watched, run_id, watched)

    def end(self) -> None:
        """Begin no more runs, and leave those that go on where they are, so that they can be resumed."""
        self._is_leaving = True
        self._ongoing.end()

    async def shut(self) -> None:
        """End all, wait until what there is, is kept, and close the runs."""
        self.end()
        await self._ongoing.shut()
        if self._rooms is not None:
            await asyncio.to_thread(self._rooms.close)
        self._threads.close()

    async def _look(self, room: RunRoom, run_id: str, tell: JobEventSink) -> None:
        from knapper.agents.runs.service import RunWatcher  # noqa: PLC0415 - as above

        watch = RunWatcher()
        while True:
            found, waiting = await self.work(lambda: (room.show(run_id), room.waiting(run_id)))
            for event in watch.look(found.run, found.nodes, waiting):
                tell(event)
                if event.kind == "run_done":
                    return
            await asyncio.sleep(self._look_s)

    def _all(self) -> RunRooms:
        with self._lock:
            if self._rooms is None:
                self._rooms = self._open(lambda: self._is_leaving)
            return self._rooms


def busy(run_id: str) -> ConflictError:
    """Say that a run goes on."""
    return ConflictError(f"the run {run_id} goes on already", hint="wait for it, or cancel it", code="run_busy")


async def _carry_out(going: Going, tell: JobEventSink) -> None:
    """Carry a run out; its end is told when it can be gone on with, and not before."""
    from knapper.agents.runs import service  # noqa: PLC0415 - a server without runs needn't pay for models
    from knapper.app.runs import threads  # noqa: PLC0415 - the same

    loop, engine, run_id = asyncio.get_running_loop(), going.engine, going.run.id
    ends: list[RunEvent] = []

    def told(event: RunEvent) -> None:
        take = ends.append if event.kind == "run_done" else tell
        with contextlib.suppress(RuntimeError):  # the server has gone
            _ = loop.call_soon_threadsafe(take, event)

    def work() -> Coroutine[object, object, RunRecord]:
        return service.carry_out_run(engine, run_id, told, replay=going.replay, limits=going.limits)

    try:
        _ = await threads.carry_out(work, f"run {run_id}")
    except asyncio.CancelledError:
        await asyncio.to_thread(service.record_unstarted_end, engine, run_id)
        raise
    finally:
        for event in ends:
            tell(event)


def _going_on(lives: BackgroundJobs[RunDone] | None, run_id: str) -> BackgroundJob[RunDone] | None:
    if lives is None:
        return None
    try:
        found = lives.find(run_id)
    except NotFound:
        return None
    return None if found.has_ended else found
