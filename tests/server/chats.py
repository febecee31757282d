"""Serve chats over a small vault, with models that say what a test tells them to."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model as AnyModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from starlette.testclient import TestClient

from knapper.agents.chat.turn import ChatConfig
from knapper.app import Hub
from knapper.app.chats import OpenChat, VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.config import ClientSettings
from knapper.config.sections import ServerSettings
from knapper.server import addresses, credentials, lifecycle, security
from knapper.server.http import app
from knapper.server.http.app import Mount, ServerRuntime
from knapper.server.http.background import JobService
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents import scripted
from tests.agents.scripted import Model
from tests.server import apps

Opens = Callable[[], AnyModel]


def opener(open_model: Opens) -> OpenChat:
    """Have chats answered by a model, with the vault's own tools, unless a message names another one."""

    def opened(chats: VaultChats, name: str) -> ChatConfig:
        return chats.chat(name) if name else scripted.chat(open_model(), chats.hub.table.specs, meter=chats.meter)

    return opened


def mounted(hub: Hub, stop: StopSignal, open_model: Opens) -> Mount:
    return jobs(hub, stop, ModelOpeners(chat=opener(open_model)))


def jobs(hub: Hub, stop: StopSignal, openers: ModelOpeners | None = None) -> Mount:
    """Mount chats, tasks and runs."""
    return lifecycle.mount_jobs(JobService(hub, openers), hub, stop)


@contextlib.contextmanager
def asking(
    base: Path,
    model: Model | Opens,
    *clients: ClientSettings,
    token: str | None = None,
    server: ServerSettings = apps.NO_LIMIT,
) -> Generator[TestClient]:
    """Give a client of a server in this thread."""
    opens = model.open if isinstance(model, Model) else model
    with apps.world(base, *clients, server=server) as world:
        mount = mounted(world.hub, world.stop, opens)
        with world.client(token, mount) as client:
            yield client


@dataclass(kw_only=True)
class Gate:
    """A model that says a word, waits until it may go on, and says another one."""

    words: Sequence[str] = ("One. ", "Two.")
    opened: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    asked: list[list[ModelMessage]] = field(default_factory=list[list[ModelMessage]])

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream)

    def until_waiting(self, turns: int = 1) -> None:
        """Wait until so many more turns stand at the gate."""
        for _ in range(turns):
            assert self.waiting.acquire(timeout=30)

    async def _stream(self, messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
        self.asked.append(list(messages))
        yield self.words[0]
        self.waiting.release()
        while not self.opened.is_set():  # noqa: ASYNC110 - another thread opens it
            await asyncio.sleep(0.005)
        for word in self.words[1:]:
            yield word


@dataclass(kw_only=True)
class Live:
    """Hold a server that runs in a thread of its own, as `knap serve` runs it."""

    address: str
    tokens: dict[str, str]
    stop: StopSignal
    thread: threading.Thread

    def client(self, name: str = "api", *, timeout_s: float = 30.0) -> httpx2.Client:
        headers = {"authorization": f"Bearer {self.tokens[name]}"}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=timeout_s, trust_env=False, verify=False)

    def end(self) -> None:
        """Stop the server, and wait until it has."""
        self.stop.cancel()
        self.thread.join()


@contextlib.contextmanager
def serving(base: Path, open_model: Opens, *clients: ClientSettings, gate: Gate | None = None) -> Generator[Live]:
    """Serve chats over a small vault."""
    settings = replace(apps.settings(base), clients=clients)
    work, ready = ServerRuntime(threads=WorkerThreads(4)), threading.Event()
    taken = addresses.bind_socket("127.0.0.1", 0)
    with Hub(settings) as hub:
        made = app.create_app(
            hub, settings.server, security.load_client_tokens(settings), work, [mounted(hub, work.stop, open_model)]
        )
        told: dict[str, Any] = {"stop": work.stop, "stop_s": 20, "on_start": ready.set}
        thread = threading.Thread(target=lifecycle.run_uvicorn, args=(made, taken), kwargs=told)
        thread.start()
        assert ready.wait(30)
        state = settings.state_dir
        shown = {
            "api": credentials.read_or_make_token(state, "api"),
            "page": credentials.read_or_make_token(state, "page"),
        }
        try:
            yield Live(address=addresses.socket_url(taken), tokens=shown, stop=work.stop, thread=thread)
        finally:
            if gate is not None:
                gate.opened.set()
            work.stop.cancel()
            thread.join()


@dataclass(frozen=True, kw_only=True)
class Heard:
    """One event as it came over the wire."""

    id: int
    name: str
    data: dict[str, Any]


def events(lines: Iterator[str]) -> Iterator[Heard]:
    """Read a stream of events; comments are passed over."""
    number, name = 0, ""
    for line in lines:
        field_name, _, value = line.partition(": ")
        if field_name == "id":
            number = int(value)
        elif field_name == "event":
            name = value
        elif field_name == "data":
            yield Heard(id=number, name=name, data=json.loads(value))


@contextlib.contextmanager
def streaming(client: httpx2.Client, path: str, said: Mapping[str, object]) -> Generator[Iterator[Heard]]:
    """Say something, and hear what comes of it as it happens."""
    with client.stream("POST", path, json=said) as stream:
        assert stream.status_code == 200, stream.read()
        yield events(stream.iter_lines())


def again(client: httpx2.Client | TestClient, path: str, after: int = 0) -> list[Heard]:
    """Hear what goes on at a path to its end, from an event on."""
    headers = {"last-event-id": str(after)} if after else {}
    with client.stream("GET", f"{path}/events", headers=headers) as stream:
        assert stream.status_code == 200, stream.read()
        return list(events(stream.iter_lines()))
