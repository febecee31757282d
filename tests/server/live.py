"""Run the server in a thread of the test, with a tool that waits."""

import contextlib
import json
import socket
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import httpx2
from typing_extensions import TypedDict

from knapper.app import Hub, tables
from knapper.config import Settings
from knapper.server import addresses, credentials, lifecycle, security
from knapper.server.http import app
from knapper.server.http.app import Mount, ServerRuntime
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.tools.context import Context
from knapper.tools.registry import ToolEffect, ToolSpec, ToolTable
from knapper.tools.shapes import Answer
from tests.server import apps


class Waited(TypedDict):
    """Say that the wait is over."""

    success: bool


@dataclass(kw_only=True)
class Door:
    """Hold calls until it is opened."""

    opened: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    left: threading.Event = field(default_factory=threading.Event)
    """Set once the client of a call has gone."""
    count: int = 0
    """Calls that have come to the door."""

    def wait(self, context: Context) -> Annotated[Answer, Waited]:
        """Wait until the door is opened."""
        _ = context.on_cancel(self.left.set)
        self.count += 1
        self.waiting.release()
        self.opened.wait(60)
        return {"success": True}

    def until_waiting(self, calls: int) -> None:
        """Wait until so many more calls stand at the door."""
        for _ in range(calls):
            assert self.waiting.acquire(timeout=30)


class SlowHub(Hub):
    """Offer one tool more."""

    def __init__(self, settings: Settings, door: Door, effect: ToolEffect, *, takes_long: bool = False) -> None:
        super().__init__(settings)
        slow = ToolSpec(
            function=door.wait, alias="wait", effect=effect, has_submit_options=False, takes_long=takes_long
        )
        self._with_slow = ToolTable([*tables.build_table(self.vaults).specs, slow], self.vaults)

    @property
    def table(self) -> ToolTable:
        return self._with_slow


@dataclass(kw_only=True)
class Live:
    """Hold a server that runs in a thread."""

    address: str
    token: str
    door: Door
    stop: StopSignal
    thread: threading.Thread

    def client(self, *, timeout_s: float = 30.0) -> httpx2.Client:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=timeout_s, trust_env=False, verify=False)

    def end(self) -> None:
        """Stop the server, and wait until it has."""
        self.stop.cancel()
        self.thread.join()


def connected(address: str) -> socket.socket:
    """Connect with a server, and ask nothing yet."""
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


@contextlib.contextmanager
def asked(address: str, token: str, path: str, said: Mapping[str, object] | None = None) -> Generator[None]:
    """Post something, and go away without an answer when the block ends, however long that takes."""
    body = json.dumps(said or {}).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {address.removeprefix('http://')}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    with connected(address) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        yield


@contextlib.contextmanager
def serving(
    base: Path,
    *mounts: Mount,
    threads: WorkerThreads | None = None,
    effect: ToolEffect = "read",
    takes_long: bool = False,
    stop_s: int = 30,
) -> Generator[Live]:
    """Serve a small vault."""
    settings, door = apps.settings(base), Door()
    work, ready = ServerRuntime(threads=threads or WorkerThreads(4)), threading.Event()
    taken = addresses.bind_socket("127.0.0.1", 0)
    with SlowHub(settings, door, effect, takes_long=takes_long) as hub:
        made = app.create_app(hub, settings.server, security.load_client_tokens(settings), work, mounts)
        thread = threading.Thread(
            target=lifecycle.run_uvicorn,
            args=(made, taken),
            kwargs={"stop": work.stop, "stop_s": stop_s, "on_start": ready.set},
        )
        thread.start()
        assert ready.wait(30)
        token = credentials.read_or_make_token(settings.state_dir, "api")
        try:
            yield Live(address=addresses.socket_url(taken), token=token, door=door, stop=work.stop, thread=thread)
        finally:
            door.opened.set()
            work.stop.cancel()
            thread.join()
            work.threads.close()
