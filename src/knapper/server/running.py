"""Run the server until it is told to stop."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from knapper.index.snapshot import RANKING_THREAD_PREFIX
from knapper.server.connections import Connection
from knapper.server.stopping import Stop

_KEEP_ALIVE_S: Final = 30
_BACKLOG: Final = 1_024
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""What asks the program to end: Ctrl-C, a service manager, a closed terminal, and Ctrl-Break on Windows."""


class _Server(uvicorn.Server):
    """End quietly on the system's signals, and tell long answers to end first."""

    def __init__(self, config: uvicorn.Config, stop: Stop, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop
        self._on_start = on_start
        _ = stop.on(self._end)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take the signals for the time of the block; a second one ends at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {name: signal.signal(name, self.handle_exit) for name in _SIGNALS}
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; the second time, leave running calls behind."""
        del sig, frame
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let streams end, and running calls finish."""
        self._stop.tell()
        await super().shutdown(sockets)

    def _end(self) -> None:
        self.should_exit = True


def serve(app: ASGIApp, taken: socket.socket, *, stop: Stop, stop_s: int, on_start: Callable[[], None]) -> None:
    """Answer requests at an address until a signal comes, or somebody tells *stop*.

    Args:
        app: What answers.
        taken: The address, as `sockets.bind` took it; it is closed at the end.
        stop: Told when the server stops; who tells it, stops the server.
        stop_s: How long running calls may take to finish, in seconds.
        on_start: Called once requests are answered.
    """
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
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
    asyncio.run(_Server(config, stop, on_start).serve(sockets=[taken]))


def leave(code: int, *, wait_s: float = 1.0) -> None:
    """End the process although calls run on that can't be stopped; every write is whole or taken back later.

    Args:
        code: The exit code.
        wait_s: How long such calls are waited for, each.
    """
    for thread in threading.enumerate():
        is_work = not thread.daemon and not thread.name.startswith(RANKING_THREAD_PREFIX)
        if is_work and thread is not threading.main_thread():
            thread.join(wait_s)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
