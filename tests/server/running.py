"""Serve runs over a small vault, with a brain that judges, plans and answers as a test says."""

import contextlib
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
from starlette.testclient import TestClient

from knapper.agents.runs.engine import AskPerson, NodeRetriever, RetrievalRequest, RunEngine
from knapper.agents.runs.model import RetrievedContext
from knapper.app import Hub
from knapper.app.open_clients import ModelOpeners
from knapper.app.runs import OpenedRuns
from knapper.config import ClientSettings, Settings
from knapper.config.sections import RunSettings
from knapper.server import addresses, credentials, lifecycle, security
from knapper.server.http import app
from knapper.server.http.app import Mount, ServerRuntime
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents.run_world import Brain, Part
from tests.server import apps, chats
from tests.server.chats import Heard, Live

NOTES = {
    "Alpha.md": "# Alpha\n\nAlpha grows tall.\n",
    "Beta.md": "# Beta\n\nBeta stays small.\n",
    "Private/Diary.md": "# Diary\n\nThe secret of alpha.\n",
}
PLAN = {"T": [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"])]}
Retrieves = Callable[[OpenedRuns], NodeRetriever]
SEARCH = RunSettings(code_mode=False)
"""Retrieve by search, so that no sandbox is needed."""


def mounted(hub: Hub, stop: StopSignal, brain: Brain, retrieve: Retrieves | None = None) -> Mount:
    """Have runs carried out by a brain, over the vault's own notes unless a test finds them."""

    def opened(tasks: OpenedRuns, model: str, person: AskPerson | None) -> RunEngine:
        del model
        made = replace(tasks.engine_of(brain.open(), "scripted", person), poll_s=0.02)
        return made if retrieve is None else replace(made, retrieve=retrieve(tasks))

    return chats.jobs(hub, stop, ModelOpeners(engine=opened))


def settings(
    base: Path, *clients: ClientSettings, notes: Mapping[str, str] = NOTES, section: RunSettings = SEARCH
) -> Settings:
    return replace(apps.settings(base, notes), clients=clients, runs=section)


@dataclass(frozen=True, kw_only=True)
class World:
    """Hold a server of this thread, and its clients."""

    hub: Hub
    settings: Settings
    app: Any
    tokens: dict[str, str]

    @property
    def root(self) -> Path:
        return self.settings.vault.path

    def as_(self, client: TestClient, token: str) -> Callable[..., httpx2.Response]:
        """Ask as somebody else, by their token."""

        def ask(method: str, path: str, **more: Any) -> httpx2.Response:  # noqa: ANN401 - a request's
            return client.request(method, path, headers={"authorization": f"Bearer {token}"}, **more)

        return ask


@contextlib.contextmanager
def asking(
    base: Path,
    brain: Brain,
    *clients: ClientSettings,
    found: Settings | None = None,
    retrieve: Retrieves | None = None,
    who: credentials.TokenName = "api",
) -> Generator[tuple[TestClient, World]]:
    """Give a client of a server in this thread."""
    own = found or settings(base, *clients)
    with Hub(own) as hub:
        stop = StopSignal()
        work = ServerRuntime(threads=WorkerThreads(4), stop=stop)
        made = app.create_app(
            hub, own.server, security.load_client_tokens(own), work, [mounted(hub, stop, brain, retrieve)]
        )
        shown = {name: credentials.read_or_make_token(own.state_dir, name) for name in ("api", "page")}
        world = World(hub=hub, settings=own, app=made, tokens=shown)
        headers = {"authorization": f"Bearer {shown[who]}"}
        with TestClient(made, base_url=apps.HOST, headers=headers, raise_server_exceptions=False) as client:
            yield client, world


@contextlib.contextmanager
def serving(
    base: Path, brain: Brain, *clients: ClientSettings, retrieve: Retrieves | None = None, gate: "Gate | None" = None
) -> Generator[Live]:
    """Serve runs from a thread of its own, as `knap serve` does."""
    own = settings(base, *clients)
    work, ready = ServerRuntime(threads=WorkerThreads(4)), threading.Event()
    taken = addresses.bind_socket("127.0.0.1", 0)
    with Hub(own) as hub:
        made = app.create_app(
            hub, own.server, security.load_client_tokens(own), work, [mounted(hub, work.stop, brain, retrieve)]
        )
        told: dict[str, Any] = {"stop": work.stop, "stop_s": 20, "on_start": ready.set}
        thread = threading.Thread(target=lifecycle.run_uvicorn, args=(made, taken), kwargs=told)
        thread.start()
        assert ready.wait(30)
        shown = {name: credentials.read_or_make_token(own.state_dir, name) for name in ("api", "page")}
        try:
            yield Live(address=addresses.socket_url(taken), tokens=shown, stop=work.stop, thread=thread)
        finally:
            if gate is not None:
                gate.opened.set()
            work.stop.cancel()
            thread.join()


@dataclass(kw_only=True)
class Gate:
    """Hold a brain before one of its answers."""

    task: str
    kind: str = "answer"
    opened: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)

    def __call__(self, kind: str, task: str) -> None:
        if (kind, task) == (self.kind, self.task):
            self.reached.set()
            assert self.opened.wait(30)


def heard(client: httpx2.Client | TestClient, run_id: str, after: int = 0) -> list[Heard]:
    """Hear a run to its end, from an event on."""
    return chats.again(client, f"/runs/{run_id}", after)


def begun(client: httpx2.Client | TestClient, task: str = "T", **more: object) -> str:
    """Begin a run; gives its id."""
    made = client.post("/runs", json={"task": task, **more})
    assert made.status_code == 202, made.text
    return str(made.json()["id"])


def done(client: httpx2.Client | TestClient, task: str = "T", **more: object) -> str:
    """Begin a run, and wait for its end; gives its id."""
    run_id = begun(client, task, **more)
    assert heard(client, run_id)[-1].name == "run_done"
    return run_id


def poor(tasks: OpenedRuns) -> NodeRetriever:
    """Find nothing for anything, so that a person is asked; what they say is found then."""

    async def find(need: RetrievalRequest) -> RetrievedContext:
        kept = tasks.checkpoints.find(need.model.run, need.node.id, need.node.task)
        if kept is not None and kept.answer is not None:
            return RetrievedContext(context=f"They said: {kept.answer.text or kept.answer.notes}")
        if not need.attended:
            return RetrievedContext(context="", tier="C")
        return RetrievedContext(
            context="",
            tier="C",
            checkpoint=tasks.checkpoints.ask(need.model.run, need.node.id, need.node.task, {}).id,
        )

    return find
