"""Serve runs beside the page, with a model and finders that do what a test tells them."""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from playwright.sync_api import Locator, Page, expect
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from knapper.agents.chat.turn import ChatConfig
from knapper.agents.runs.engine import AskPerson, RetrievalRequest, RunEngine
from knapper.agents.runs.model import RetrievedContext
from knapper.app import Hub
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.app.runs import OpenedRuns
from knapper.codemode.checkpoints import CheckpointStore
from knapper.config import Settings
from knapper.server.http import browsing, feed
from knapper.server.http.app import Mount
from knapper.server.http.background import JobService
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents import run_world, scripted
from tests.agents.run_world import Brain
from tests.agents.scripted import Model
from tests.page import sites
from tests.page.sites import Site

NOTES: Final = {**sites.NOTES, **run_world.NOTES}


@dataclass
class Gated(Brain):
    """Keep those waiting who ask about what is held."""

    held: set[str] = field(default_factory=set[str])

    def open(self) -> FunctionModel:
        return FunctionModel(self._held)

    async def _held(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = await self._reply(messages, info)
        kind, task = run_world.meant(messages, info)
        while f"{kind} {task}" in self.held:  # noqa: ASYNC110 - a test lets it go on from another thread
            await asyncio.sleep(0.01)
        return said


@dataclass
class Finder:
    """Find what a test says for a task, or the note that it names by its first letter; ask a person where told to."""

    found: Mapping[str, RetrievedContext] = field(default_factory=dict[str, RetrievedContext])
    asks: Sequence[str] = ()
    words: list[str] = field(default_factory=list[str])
    """What persons have answered."""

    def of(self, checkpoints: CheckpointStore) -> Callable[[RetrievalRequest], "asyncio.Future[RetrievedContext]"]:
        def retrieve(need: RetrievalRequest) -> "asyncio.Future[RetrievedContext]":
            return asyncio.ensure_future(self._find(need, checkpoints))

        return retrieve

    async def _find(self, need: RetrievalRequest, checkpoints: CheckpointStore) -> RetrievedContext:
        task = need.node.task
        known = checkpoints.find(need.model.run, need.node.id, task)
        if known is not None and known.answer is not None:
            self.words.append(known.answer.text or known.answer.choice)
        elif task in self.asks:
            asked = checkpoints.ask(need.model.run, need.node.id, task, {})
            return RetrievedContext(context="", score=0.1, tier="C", checkpoint=asked.id)
        return self.found.get(task) or run_world.read(need.context, f"{task[0].upper()}.md")


@contextmanager
def serving(
    base: Path,
    brain: Brain,
    finder: Finder | None = None,
    *,
    change: Callable[[Settings], Settings] = lambda found: found,
    work: Callable[[OpenedRuns, RunEngine], RunEngine] = lambda _, made: made,
) -> Generator[Site]:
    """Serve notes below *base*; *work* changes what carries runs out."""
    found = finder or Finder()

    def engine(tasks: OpenedRuns, model: str, person: AskPerson | None) -> RunEngine:
        made = tasks.engine_of(brain.open(), model or "scripted", person)
        return work(tasks, replace(made, retrieve=found.of(tasks.checkpoints), poll_s=0.05))

    services: list[JobService] = []

    def service(hub: Hub) -> JobService:
        services.append(JobService(hub, ModelOpeners(chat=answering, engine=engine)))
        return services[0]

    def mounts(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
        news = feed.mount_feed(hub, threads, stop, [feed.run_source(hub, services[0])])
        return [news, browsing.mount_browsing(hub, threads)]

    def answering(chats: VaultChats, name: str) -> ChatConfig:
        return (
            chats.chat(name)
            if name
            else scripted.chat(Model([["Yes."]]).open(), chats.hub.table.specs, meter=chats.meter)
        )

    threads = WorkerThreads(2)
    with sites.serving(
        base, Model([["Yes."]]).open, notes=NOTES, change=change, more=mounts, open_service=service
    ) as site:
        yield site
    threads.close()


def begin(site: Site, tab: Page, task: str, *, by_scripts: bool = False) -> None:
    """Begin a run by the form; the browser is signed in already."""
    tab.goto(f"{site.address}/app/runs?new=1")
    tab.get_by_label("Task", exact=True).fill(task)
    ticked = tab.get_by_role("checkbox", name="Let the model write scripts")
    if ticked.is_enabled():
        ticked.set_checked(by_scripts)
    tab.get_by_role("button", name="Start").click()
    expect(tab.locator(".k-run-task")).to_have_text(task)


def state(tab: Page) -> Locator:
    return tab.locator(".k-run-state")


def part(tab: Page, node_id: str) -> Locator:
    """Give the row of a part in the tree."""
    return tab.locator(f"[role=treeitem][data-node='{node_id}']")


def pane(tab: Page) -> Locator:
    """Give the pane, where a part is shown."""
    return tab.locator(".k-pane")


def more(tab: Page, name: str) -> None:
    """Do what stands in the menu of the run."""
    tab.get_by_role("button", name="More", exact=True).click()
    tab.get_by_role("menuitem", name=name).click()
