"""Begin tasks of several agents, go on with them, and find them again."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from knapper.agents.sessions import locks
from knapper.errors import NotFound
from knapper.server import imports
from knapper.server.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.agents.background import BackgroundJob, JobEventSink
    from knapper.agents.pipeline.context import TaskRequest
    from knapper.agents.pipeline.records import PipelineOutcome
    from knapper.agents.pipeline.service import PipelineService
    from knapper.agents.pipeline.store import PausedRun
    from knapper.app.tasks.choices import Order
    from knapper.app.tasks.desk import Desk, Tasking
    from knapper.server.http.chat.turns import Talks
    from knapper.tools.context import Context


_THREADS: Final = 2
T = TypeVar("T")


class Tasks:
    """Hold the tasks of one server; used from its event loop."""

    def __init__(self, talks: Talks) -> None:
        """Begin without any.

        Args:
            talks: Holds the clients' rooms, in whose sessions tasks are kept.
        """
        self._talks = talks
        self._tasking: Tasking | None = None
        self._lock = threading.Lock()
        self._threads = Threads(_THREADS)

    async def show(self, work: Callable[[], T]) -> T:
        """Read many notes in a thread, where that holds up nothing but others who want the same."""
        return await self._threads.run("read", work)

    async def work(self, work: Callable[[], T]) -> T:
        """Do something that blocks in a thread."""
        return await self._talks.work(work)

    async def desk(self, client: str, vault: str) -> Desk:
        """Give a client's desk in a vault.

        Raises:
            KnapError: It can't be opened.
        """
        room = await self._talks.room(client, vault)
        return await self.work(lambda: self._all().desk(room))

    async def begin(self, desk: Desk, order: Order, model: str = "") -> BackgroundJob[PipelineOutcome]:
        """Begin a task.

        Args:
            desk: Of who wants it done.
            order: The task.
            model: Its model's name; empty for the configured one.

        Raises:
            NotFound: There is no such note, preset or session.
            ConflictError: The session is busy (code ``session_busy``), or too much goes on.
            SetupError: There is no model.
            RefusedError: The client may not have that model work.
            StorageError: The server stops (code ``stopping``).
            BadInput: A value can't be used.
        """

        def prepare() -> tuple[PipelineService, TaskRequest, Context]:
            answering = desk.answering(model)
            request = desk.request(order)
            return answering, request, desk.acting(request.run_id)

        answering, request, context = await self.work(prepare)
        if request.session_id:
            async with locks.lock_session(answering.folder, request.session_id, wait_s=0):
                pass  # who comes later than this is told in the stream

        async def work(tell: JobEventSink) -> None:
            _ = await answering.ask(request, context, tell)

        live = self._talks.ongoing.begin(desk.lives, request.run_id, work, request.task)
        live.within = request.session_id
        return live

    async def go_on(self, desk: Desk, run_id: str, answer: str, model: str = "") -> BackgroundJob[PipelineOutcome]:
        """Go on with a run that asked something.

        Args:
            desk: Of who answers.
            run_id: The run's.
            answer: What the person says.
            model: The model's name; empty for the configured one.

        Raises:
            NotFound: No such run waits, or it is another client's (code ``no_run``).
            KnapError: As for `begin`.
        """
        stack = ExitStack()

        def prepare() -> tuple[PausedRun, PipelineService, Context]:
            from knapper.app.tasks import resuming  # noqa: PLC0415 - a server without tasks needn't pay for models

            run = resuming.find(desk.opened, run_id, desk.client)
            found = resuming.opened_for(desk.opened, run, desk.client, desk.model(model))
            answering, context = stack.enter_context(found)
            return run, replace(answering, wait_s=0, stops=lambda: self._talks.ongoing.stops), context

        try:
            run, answering, context = await self.work(prepare)
            by = desk.client.grants

            async def work(tell: JobEventSink) -> None:
                try:
                    _ = await answering.resume(run_id, answer, context, tell, by=by)
                finally:
                    await asyncio.shield(asyncio.to_thread(stack.close))

            live = self._talks.ongoing.begin(desk.lives, run_id, work, str(run.request.get("task", "")))
        except BaseException:
            stack.close()
            raise
        live.within = str(run.request.get("session_id", ""))
        return live

    def find(self, client: str, run_id: str) -> BackgroundJob[PipelineOutcome]:
        """Find a client's task by its run, the latest where it was gone on with.

        Raises:
            NotFound: There is none, it ended long ago, or it is another client's (code ``no_run``).
        """
        for desk in self._tasking.desks(client) if self._tasking else ():
            try:
                return desk.lives.find(run_id)
            except NotFound:
                continue
        raise NotFound("there is no such run", hint="the session holds what came of runs that ended", code="no_run")

    async def shut(self) -> None:
        """End all tasks, and wait until what there is, is kept."""
        await self._talks.ongoing.shut()
        if self._tasking is not None:
            await asyncio.to_thread(self._tasking.close)
        self._threads.close()

    def _all(self) -> Tasking:
        with imports.ALONE:
            from knapper.app.tasks.desk import Tasking  # noqa: PLC0415 - the same

        with self._lock:
            if self._tasking is None:
                self._tasking = Tasking()
            return self._tasking
