"""The HTTP server's start, run and ordered stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, cast

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from knapper.app import Hub
from knapper.config import Settings
from knapper.errors import BadInput, StorageError
from knapper.index.snapshot import RANKING_THREAD_PREFIX
from knapper.server import addresses, credentials, logs, security, workers
from knapper.server.addresses import ServerRecord
from knapper.server.credentials import BrowserSessions
from knapper.server.http import (
    app,
    background,
    browsing,
    chat,
    clients,
    feed,
    indexing,
    models,
    openapi,
    page,
    runs,
    schedules,
    tasks,
    terminal,
)
from knapper.server.http import settings as settings_routes
from knapper.server.http.app import Mount, ServerRuntime, mount_asgi
from knapper.server.http.background import JobService
from knapper.server.http.clients import PairingService
from knapper.server.readers import ReaderPool
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.system import private

if TYPE_CHECKING:
    from knapper.agents.events import JobFunction, TurnJob
    from knapper.app.chats import ClientChats
    from knapper.app.schedules import ScheduleRunner


HEAD_TIMEOUT_S: Final = 20.0
"""How long a client may take for the first line and the headers of a request."""
SCHEDULE_POLL_S: Final = 30.0
"""Pause between two looks at the schedules."""
MAX_CONNECTIONS: Final = 1_000
"""Connections at once, idle ones among them; who comes then is told to come again."""


async def _refuse_connection(scope: Scope, receive: Receive, send: Send) -> None:
    error = StorageError("the server has too many connections", hint="try again in a moment", code="busy")
    await security.error_reply(error, {"connection": "close"})(scope, receive, send)


LOG: Final = logging.getLogger("knapper.server.lifecycle")
_OVERLOAD_APP: Final = logs.RequestTracing(_refuse_connection)


class HttpConnection(H11Protocol):
    """uvicorn's connection, closed if no valid request arrives in time."""

    # uvicorn has no setting for any of this, and calls no hook before a request's head is whole. So its methods are
    # overridden, of which only asyncio's own three are promised to stay; tests/server/test_connections.py compares them
    # with the uvicorn that is installed.

    head_timeout_s: float = HEAD_TIMEOUT_S
    most: int = MAX_CONNECTIONS
    app: ASGIApp
    _answers: ASGIApp
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time-out for the first request."""
        super().connection_made(transport)
        self._answers = self.app
        self._follow_head()

    def data_received(self, data: bytes) -> None:
        """Keep the time-out until a request's head is complete."""
        self.app = self._answers if len(self.connections) <= self.most else _OVERLOAD_APP
        super().data_received(data)
        self._follow_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time-out."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Reply to invalid HTTP in the usual form of errors, unless a reply has started."""
        del msg
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            name = secrets.token_hex(8)
            hint = "its first line, headers or length can't be read as HTTP/1.1, or are too long"
            reply = security.error_reply(
                BadInput("the request can't be read", hint=hint, code="bad_request"),
                {"connection": "close", logs.REQUEST_ID_HEADER: name},
            )
            head = h11.Response(status_code=reply.status_code, headers=reply.raw_headers, reason=b"Bad Request")
            for part in (head, h11.Data(data=bytes(reply.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part) or b"")
            logs.REQUEST_LOG.info("%s - ? /… %d 0 ms", name, 400)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Log no warning: a client that offers an upgrade also speaks HTTP, and no package is missing."""
        # Private, as uvicorn decides and warns in one place. To filter its records would hang on their wording.

    def _follow_head(self) -> None:
        if self._is_answering:
            self._stop_waiting()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing() and not self._is_answering:
            self.transport.close()

    @property
    def _is_answering(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # uvicorn has none at first, but doesn't say so
        return cycle is not None and not cycle.response_complete


_KEEP_ALIVE_S: Final = 30
_BACKLOG: Final = 1_024
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""What asks the program to end: Ctrl-C, a service manager, a closed terminal, and Ctrl-Break on Windows."""


class _UvicornServer(uvicorn.Server):
    """uvicorn's server, ended quietly by signals, after its long answers."""

    def __init__(self, config: uvicorn.Config, stop: StopSignal, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop
        self._on_start = on_start
        _ = stop.subscribe(self._end)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle signals within the block; a second one exits at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous_handlers = {name: signal.signal(name, self.handle_exit) for name in _SIGNALS}
        try:
            yield
        finally:
            for name, handler in previous_handlers.items():
                signal.signal(name, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to stop; the second time, abandon running calls."""
        del sig, frame
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving, and report it."""
        await super().startup(sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, and let running calls finish."""
        self._stop.cancel()
        await super().shutdown(sockets)

    def _end(self) -> None:
        self.should_exit = True


def run_uvicorn(
    app: ASGIApp, bound_socket: socket.socket, *, stop: StopSignal, stop_s: int, on_start: Callable[[], None]
) -> None:
    """Serve requests until a signal arrives or *stop* is set.

    Args:
        app: The application.
        bound_socket: The socket from `bind_socket`; it is closed at the end.
        stop: Set when the server stops; setting it stops the server.
        stop_s: How long running calls may take to finish, in seconds.
        on_start: Called once requests are answered.
    """
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=HttpConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=stop_s,
    )
    asyncio.run(_UvicornServer(config, stop, on_start).serve(sockets=[bound_socket]))


def exit_process(code: int, *, wait_s: float = 1.0) -> None:
    """Exit the process even if calls that can't be stopped are running; an interrupted write is rolled back later.

    Args:
        code: The exit code.
        wait_s: How long to wait for each such call.
    """
    for thread in threading.enumerate():
        is_work = not thread.daemon and not thread.name.startswith(RANKING_THREAD_PREFIX)
        if is_work and thread is not threading.main_thread():
            thread.join(wait_s)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)


def mount_jobs(service: JobService, hub: Hub, stop: StopSignal) -> Mount:
    """Create the mount of chats, tasks and runs, and of what belongs to them: presets, models, what was spent.

    Args:
        service: Has what is open, and what goes on; it ends with the mount.
        hub: The vaults; the caller closes it.
        stop: Set when the server stops; turns and tasks end then, and runs can be resumed.
    """
    specs = (
        *chat.chat_routes(service),
        *chat.session_routes(service),
        *models.model_routes(hub, service),
        *tasks.task_routes(service),
        *tasks.preset_routes(service),
        *runs.run_routes(service),
        *feed.history_routes(hub, service),
    )
    return Mount(
        routes=[*map(openapi.make_route, specs)], lifespan=background.job_lifespan(stop, service.end, service.shut)
    )


def open_schedule_runner(service: JobService) -> ScheduleRunner:
    """Open what runs schedules among a server's jobs."""
    with workers.IMPORT_LOCK:
        from knapper.app.schedules import ScheduleRunner  # noqa: PLC0415 - a server's start needn't wait for it

    def begin(client_chats: ClientChats, session_id: str, work: JobFunction, text: str) -> TurnJob:
        return service.jobs.begin(client_chats.turns, session_id, work, text)

    return ScheduleRunner(clients=service.clients, begin=begin)


@contextlib.asynccontextmanager
async def run_schedules(
    open_runner: Callable[[], ScheduleRunner], vaults: Sequence[str], *, poll_s: float = SCHEDULE_POLL_S
) -> AsyncGenerator[None]:
    """Run what is due within the block; at its end, a run that goes on is cancelled, and what it has is kept.

    Args:
        open_runner: Opens what runs schedules; called in a thread for each vault, after the first pause.
        vaults: Their names; none waits for another's runs.
        poll_s: Pause between two looks at the schedules.
    """

    async def keep(vault: str) -> None:
        await asyncio.sleep(poll_s)
        runner = await asyncio.to_thread(open_runner)
        while True:
            # One mistake must not end all schedules until the server is started again.
            (problem,) = await asyncio.gather(runner.run_due(vault), return_exceptions=True)
            if isinstance(problem, Exception):
                LOG.error("the schedules can't be run: %s", type(problem).__name__)
            await asyncio.sleep(poll_s)

    tasks = [asyncio.create_task(keep(vault), name=f"schedules of {vault}") for vault in vaults]
    try:
        yield
    finally:
        for task in tasks:
            _ = task.cancel()
        _ = await asyncio.gather(*tasks, return_exceptions=True)


def serve_vaults(
    hub: Hub,
    settings: Settings,
    bound_socket: socket.socket,
    *,
    watch: bool = True,
    service: bool = False,
    on_start: Callable[[ServerRecord, str], None],
) -> None:
    """Serve a hub's vaults until a signal comes.

    Args:
        hub: The vaults.
        settings: The clients and the limits of the server.
        bound_socket: From `knapper.server.addresses.bind_socket`; it is closed at the end.
        watch: Keep the indexes up to date while serving.
        service: Whether the server's record says that it is the system's service.
        on_start: Called once requests are answered, with the server's record, and an address that signs a browser in to
            the page, once.

    Raises:
        SetupError: Others could reach it without a token.
        StorageError: A token can't be read or written.
    """
    server = settings.server
    _ = workers.share_arenas()
    private.tighten(settings.state_dir, thorough=True)
    sessions = credentials.open_browser_sessions(settings.state_dir)
    threads = WorkerThreads(server.threads)
    readers = ReaderPool(hub, threads)
    work = ServerRuntime(threads=threads, readers=readers)
    own_url = addresses.socket_url(bound_socket)
    mounts = [
        *list_mounts(hub, sessions, work, watch=watch),
        Mount(lifespan=readers.run),
        Mount(lifespan=workers.return_memory),
        *([terminal.mount_terminal(hub, work, own_url)] if server.answers_commands else []),
    ]
    application = app.create_app(hub, server, security.load_client_tokens(settings), work, mounts)
    hub.page_address = server.public_url or own_url
    server_record = addresses.make_record(own_url, work.instance, service=service)

    def announce() -> None:
        addresses.write_record(settings.state_dir, server_record)
        on_start(server_record, page_url)

    try:
        page_url = credentials.sign_in_url(server_record.url, sessions.new_code())
        run_uvicorn(
            application,
            bound_socket,
            stop=work.stop,
            stop_s=server.stop_seconds,
            on_start=announce,
        )
    finally:
        addresses.remove_record(settings.state_dir, server_record)
        bound_socket.close()
        work.threads.close()
    exit_process(0)


def list_mounts(hub: Hub, sessions: BrowserSessions, runtime: ServerRuntime, *, watch: bool) -> list[Mount]:
    """List the mounts beside the routes of tools."""
    opens = workers.engine_openers(hub) if watch else {}
    codes = credentials.open_codes(hub.settings.state_dir)
    service = JobService(hub)
    sources = [feed.task_source(hub, service), feed.run_source(hub, service)]
    return [
        Mount(lifespan=lambda: workers.run_watchers(opens)),
        mount_mcp(hub, runtime.threads, runtime.stop),
        page.mount_page(sessions, hub.names_for("page")),
        clients.mount_clients(PairingService(hub, codes, runtime.instance), hub, runtime.threads),
        browsing.mount_blocks(hub, runtime.threads),
        browsing.mount_browsing(hub, runtime.threads),
        indexing.mount_index(hub, runtime.threads, runtime.stop),
        settings_routes.mount_settings(hub, runtime.threads),
        mount_jobs(service, hub, runtime.stop),
        feed.mount_feed(hub, runtime.threads, runtime.stop, sources),
        schedules.mount_schedules(hub, runtime.threads, lambda: open_schedule_runner(service)),
        Mount(lifespan=lambda: run_schedules(lambda: open_schedule_runner(service), hub.vaults)),
    ]


MCP_PRELOAD_S: Final = 10.0
"""Time after a server's start from which on MCP is opened, even if nobody has asked."""
MCP_RETRY_PAUSE_S: Final = 5.0
"""Pause after a failed opening of MCP, before a request opens it again."""


def mount_mcp(hub: Hub, threads: WorkerThreads, stop: StopSignal, *, preload_s: float = MCP_PRELOAD_S) -> Mount:
    """Create the mount for ``/mcp``, with the tools that the settings offer there.

    Its libraries take longer to import than all else of a server's start together. So they are imported by the first
    request, or after a while.

    Args:
        hub: The vaults; the caller closes it.
        threads: The worker threads.
        stop: Set when the server stops; requests that wait for the import then are refused.
        preload_s: Time after the start, in seconds, from which on it is opened anyway.
    """

    def make() -> Starlette:
        with workers.IMPORT_LOCK:
            from knapper.server.mcp import http  # noqa: PLC0415 - a server's start needn't wait for it

        return http.make_app(hub, threads)

    mcp = AppOpenedLater(make, stop, preload_s)
    return mount_asgi(security.MCP_PATH, mcp, mcp.run)


class AppOpenedLater:
    """An ASGI app that is made by its first request, and has its lifespan from then on.

    Where it can't be opened, requests get the error for a pause; the next one after that opens it again.
    """

    def __init__(
        self,
        make: Callable[[], Starlette],
        stop: StopSignal,
        preload_s: float,
        retry_pause_s: float = MCP_RETRY_PAUSE_S,
    ) -> None:
        self._make = make
        self._stop = stop
        self._preload_s = preload_s
        self._retry_pause_s = retry_pause_s
        self._is_wanted = asyncio.Event()
        self._opened: asyncio.Future[Starlette] | None = None
        self._retry_at = 0.0
        self._logged = ""
        """The last failure that was logged; it isn't logged again while it lasts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; the first ones wait until the app is there.

        Raises:
            StorageError: The server stops (code ``stopping``), and the app wasn't there before.
            Exception: What kept the app from being opened.
        """
        if self._opened is None:
            raise RuntimeError("a request came outside the app's lifespan")
        if self._opened.done() and self._opened.exception() is not None and time.monotonic() >= self._retry_at:
            self._opened = asyncio.get_running_loop().create_future()
        if self._opened.done():
            await self._opened.result()(scope, receive, send)
            return
        self._is_wanted.set()
        app = await asyncio.shield(self._opened)
        # MCP's library would begin an answer and break it off at once.
        if self._stop.is_cancelled:
            raise StorageError("the server stops", hint="try again in a moment", code="stopping")
        await app(scope, receive, send)

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Let the app be opened within the block, and close it at its end."""
        self._opened, is_over = asyncio.get_running_loop().create_future(), asyncio.Event()
        # A task of its own, as what an app's lifespan enters has to be left in the same task.
        holding = asyncio.create_task(self._hold(is_over), name="MCP")
        try:
            yield
        finally:
            is_over.set()
            self._is_wanted.set()
            await holding

    async def _hold(self, is_over: asyncio.Event) -> None:
        """Open the app once it is wanted, and hold it to the end; after a failure, try again at a later request."""
        with contextlib.suppress(TimeoutError):
            _ = await asyncio.wait_for(self._is_wanted.wait(), self._preload_s)
        while self._opened is not None and not is_over.is_set():
            opened = self._opened
            try:
                app = await asyncio.to_thread(self._make)
                async with app.router.lifespan_context(app):
                    opened.set_result(app)
                    _ = await is_over.wait()
            except Exception as error:
                if opened.done():
                    raise
                if repr(error) != self._logged:
                    LOG.exception("MCP can't be opened; a request after %.0f s tries again", self._retry_pause_s)
                self._logged, self._retry_at = repr(error), time.monotonic() + self._retry_pause_s
                if not is_over.is_set():  # at the end nothing sets it again, and the wait below would never end
                    self._is_wanted.clear()
                opened.set_exception(error)  # each request raises it until the next attempt
                _ = opened.exception()  # else asyncio logs an error that no request has raised
            _ = await self._is_wanted.wait()
