"""The runs of a vault, each carried out in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from knapper.agents import work_store
from knapper.agents.prompting import Prompts
from knapper.agents.runs import model, retrieving, store
from knapper.agents.runs.engine import RunEngine, Strategies
from knapper.agents.runs.model import RunLimits
from knapper.agents.runs.retrieving import VaultRetriever
from knapper.app import models
from knapper.app.hub import ScriptRuntime, local_now
from knapper.codemode import checkpoints
from knapper.codemode.tasks import Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence

    from pydantic_ai.models import Model

    from knapper.agents.model.usage import Meter
    from knapper.agents.runs.engine import AskPerson
    from knapper.agents.runs.model import CheckpointEvent, RunRecord
    from knapper.agents.runs.store import RunStore
    from knapper.agents.work_store import WorkStore
    from knapper.app.hub import Hub
    from knapper.codemode.checkpoints import CheckpointStore
    from knapper.config import Settings
    from knapper.config.sections import RunSettings
    from knapper.tools.context import Context


def read_thresholds(settings: RunSettings) -> Thresholds:
    """Return what the owner calls a good enough retrieval; the settings have percents where the scores are shares."""
    return Thresholds(
        min_context_chars=settings.min_context_chars,
        min_citations=settings.min_citations,
        low_score=settings.low_score_percent / 100,
        low_confidence=settings.low_confidence_percent / 100,
        regens_per_node=settings.regens_per_node,
        regens_per_run=settings.regens_per_run,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRuns:
    """The runs of one vault, and the engine that carries them out."""

    store: RunStore
    work: WorkStore = field(repr=False)
    """Holds the runs."""
    meter: Meter
    checkpoints: CheckpointStore
    scripts: ScriptRuntime = field(repr=False)
    hub: Hub = field(repr=False)
    vault: str

    def engine(
        self,
        model: str = "",
        *,
        person: AskPerson | None = None,
        roots: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> RunEngine:
        """Open a model and its engine; nothing is sent yet.

        Args:
            model: Its name; empty for the configured one.
            person: Asks a person; None if nobody can answer.
            roots: Folders that scripts may read, beyond those of the configuration.
            hosts: Hosts that they may get pages from, beyond those of the configuration.

        Raises:
            SetupError: There is no such model, or no key for it.
        """
        opened_model, name = models.open_model(self.hub.settings, model)
        engine = self.engine_of(opened_model, str(name), person)
        if not roots and not hosts:
            return engine  # with the hub's own sandbox

        def open_context(run_id: str, clients: tuple[str, ...]) -> Context:
            opened = partial(self.hub.open_as_agent, run_id=run_id, clients=clients)
            return self.scripts.with_scripting(opened(self.vault), opened, roots=roots, hosts=hosts)

        return replace(engine, open_context=open_context)

    def engine_of(self, model: Model, name: str, person: AskPerson | None = None) -> RunEngine:
        """Return the engine for an open model.

        Args:
            model: The model.
            name: Its name.
            person: Asks a person; None if nobody can answer.
        """
        settings = self.hub.settings
        prompts, thresholds = settings.config_file.parent / "prompts", read_thresholds(settings.runs)
        return RunEngine(
            model=model,
            name=name,
            store=self.store,
            open_context=partial(self.hub.open_as_agent, self.vault),
            retrieve=VaultRetriever(checkpoints=self.checkpoints, thresholds=thresholds),
            thresholds=thresholds,
            strategies=configured_strategies(settings),
            prompts=Prompts(folder=prompts),
            meter=self.meter,
            ask_person=person,
            context_tokens=settings.model.context_tokens,
        )

    def context(self, run_id: str) -> Context:
        """Return the vault as a run sees it: what both the agent and the run's client may see.

        Raises:
            NotFound: There is no such run.
        """
        return self.hub.open_as_agent(self.vault, run_id, (self.store.get(run_id).order.client,))

    async def wait_for_answer(self, point: CheckpointEvent, *, most_s: float = 0) -> str:
        """Wait for a person's answer from any surface; the `person` of an engine without a terminal.

        Args:
            point: The question.
            most_s: How long to wait; 0 for no limit.
        """
        return await retrieving.wait_for_answer(self.checkpoints, point, most_s=most_s)

    def delete(self, run_id: str) -> None:
        """Delete a run and its questions; its notes stay and can be undone.

        Raises:
            NotFound: There is no such run.
            ConflictError: It goes on.
        """
        self.store.delete(run_id)
        _ = self.checkpoints.forget(run_id)

    def questions(self, run_id: str) -> Sequence[CheckpointEvent]:
        """List a run's unanswered questions, in the form of its events.

        Raises:
            NotFound: There is no such run.
        """
        open_ids = {checkpoint.id for checkpoint in self.checkpoints.waiting(run_id)}
        nodes = self.store.show(run_id).nodes
        events = (model.make_checkpoint_event(node, node.asking) for node in nodes if node.asking)
        return [event for event in events if event.id in open_ids]

    def count_questions(self, runs: Sequence[RunRecord]) -> Mapping[str, int]:
        """Count the unanswered questions of the listed runs; runs without any are left out."""
        asking_run_ids = {checkpoint.run for checkpoint in self.checkpoints.waiting()}
        counts = {run.id: len(self.questions(run.id)) for run in runs if run.id in asking_run_ids}
        return {run_id: number for run_id, number in counts.items() if number}

    def is_ready(self) -> bool:
        """Return whether the sandbox can run scripts without being prepared first."""
        return self.scripts.sandbox().code.is_ready()

    def check_sandbox(self) -> None:
        """Check that scripts can run here; preparing the sandbox may take some seconds.

        Raises:
            SetupError: They can't (code ``no_sandbox``).
        """
        _ = self.scripts.sandbox().code.file

    def check_vaults(self, names: Sequence[str], client: str = "cli") -> None:
        """Check that vaults of these names exist, and that a client may open them.

        Raises:
            NotFound: There is none of one (code ``no_vault``).
        """
        for name in names:
            _ = self.hub.open(self.hub.name_for(client, name))


@contextmanager
def open_runs(hub: Hub, vault: str = "") -> Generator[OpenedRuns]:
    """Open the runs of a vault.

    Args:
        hub: Holds the vaults; it stays open as long as the runs are used.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The runs can't be opened.
    """
    opened_vault = hub.open(vault)
    folder = opened_vault.folder
    with ExitStack() as stack:
        work = work_store.open_work(folder)
        _ = stack.callback(work.shut)
        run_store = store.RunStore(work)
        _ = run_store.prune(hub.settings.runs.days)
        meter = hub.open_meter(vault)
        _ = stack.callback(meter.shut)
        questions = checkpoints.open_checkpoints(folder, local_now)
        _ = stack.callback(questions.shut)
        scripts = ScriptRuntime(hub.settings, lambda: hub.table)
        _ = stack.callback(scripts.close)
        yield OpenedRuns(
            store=run_store,
            work=work,
            meter=meter,
            checkpoints=questions,
            scripts=scripts,
            hub=hub,
            vault=opened_vault.vault.name,
        )


def configured_limits(settings: Settings) -> RunLimits:
    """Return the configured limits of a run."""
    run_settings = settings.runs
    return RunLimits(
        depth=run_settings.depth,
        nodes=run_settings.nodes,
        seconds=run_settings.minutes * 60.0,
        tokens=run_settings.tokens,
        cents=run_settings.cents,
        parallel=run_settings.parallel,
    )


def configured_strategies(settings: Settings) -> Strategies:
    """Find the strategies; the person's own are in the folder ``strategies`` beside the configuration file."""
    return Strategies(folder=settings.config_file.parent / "strategies")


T = TypeVar("T")
_MAX_THREADS: Final = 128
"""Of one run at most: each node that looks for notes has one, and waits in it for its model."""


async def run_in_thread(work: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
    """Run work in a thread of its own; cancellation is passed on, and waits until the work has ended.

    Args:
        work: Creates the coroutine, in that thread.
        name: The thread's.

    Raises:
        CancelledError: It was cancelled, and has ended.
    """
    outer = asyncio.get_running_loop()
    begun: asyncio.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = outer.create_future()
    ended: asyncio.Future[asyncio.Task[T]] = outer.create_future()

    async def watched() -> None:
        """Run the work and report its end at once: threads that it left behind may take longer."""
        inner = asyncio.get_running_loop()
        inner.set_default_executor(ThreadPoolExecutor(_MAX_THREADS))
        task = asyncio.ensure_future(work())
        with contextlib.suppress(RuntimeError):  # whoever waited has gone
            _ = outer.call_soon_threadsafe(begun.set_result, (inner, task))
        _ = await asyncio.wait({task})
        with contextlib.suppress(RuntimeError):  # the same
            _ = outer.call_soon_threadsafe(ended.set_result, task)

    def cancel(one: asyncio.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]]) -> None:
        inner, task = one.result()
        with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended
            _ = inner.call_soon_threadsafe(task.cancel)

    threading.Thread(target=lambda: asyncio.run(watched()), name=name, daemon=True).start()
    try:
        return (await asyncio.shield(ended)).result()
    except asyncio.CancelledError:
        # Not awaited: a second cancellation, before the work has begun, would leave it going.
        begun.add_done_callback(cancel)
        _ = await asyncio.wait({ended})
        task = ended.result()
        if not task.cancelled():
            _ = task.exception()  # it ended by itself meanwhile; whoever cancels wants no more of it
        raise
