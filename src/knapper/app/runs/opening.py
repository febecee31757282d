"""Make what runs work with: the model, the notes with a sandbox, and where all is kept, as the configuration says."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from knapper.agents.model import providers, usage
from knapper.agents.model.providers import ModelTimeouts
from knapper.agents.model.replies import SurrogateSafeModel
from knapper.agents.prompting import Prompts
from knapper.agents.runs import retrieving, store
from knapper.agents.runs.engine import RunEngine, RunPrompts, Strategies
from knapper.agents.runs.model import RunLimits
from knapper.agents.runs.retrieving import VaultRetriever
from knapper.agents.runs.service import VaultRuns
from knapper.app import acting, model_choice
from knapper.app.chats import now
from knapper.app.closing import Closing
from knapper.app.scripting import Scripts
from knapper.codemode import checkpoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.models import Model

    from knapper.agents.model.usage import Meter
    from knapper.agents.runs.engine import AskPerson
    from knapper.agents.runs.model import CheckpointEvent
    from knapper.agents.runs.store import RunStore
    from knapper.app.hub import Hub
    from knapper.codemode.checkpoints import CheckpointStore
    from knapper.config import Settings
    from knapper.tools.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRuns(Closing):
    """Hold the runs of one vault, and open what carries them out."""

    runs: VaultRuns
    store: RunStore
    meter: Meter
    checkpoints: CheckpointStore
    scripts: Scripts = field(repr=False)
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
        """Open a model, and what it works with; nothing is sent yet.

        Args:
            model: Its name; empty for the configured one.
            person: Asks a person; None where nobody is there.
            roots: Folders that scripts may read, beyond those of the configuration.
            hosts: Hosts that they may get pages from, beyond those of the configuration.

        Raises:
            SetupError: There is no such model, or no key for it.
        """
        settings = self.hub.settings
        own = settings.model
        wanted = model_choice.wanted(settings, model)
        patience = ModelTimeouts(timeout_s=own.timeout_s, retries=own.retries)
        opened = providers.open_model(wanted, model_choice.keys(settings).find, patience)

        def context_of(run_id: str) -> Context:
            return self._context(run_id, roots, hosts)

        return replace(self.engine_of(opened, str(wanted[0]), person), context_of=context_of)

    def engine_of(self, model: Model, name: str, person: AskPerson | None = None) -> RunEngine:
        """Give what works with a model that is open.

        Args:
            model: The model.
            name: What it is called.
            person: Asks a person; None where nobody is there.
        """
        settings = self.hub.settings
        prompts = settings.config_file.parent / "prompts"
        return RunEngine(
            model=SurrogateSafeModel(model),
            name=name,
            store=self.store,
            folder=self.runs.folder,
            context_of=self.context,
            retrieve=VaultRetriever(checkpoints=self.checkpoints),
            words=RunPrompts(folder=prompts),
            strategies=strategies(settings),
            prompts=Prompts(folder=prompts),
            meter=self.meter,
            person=person,
            context_tokens=settings.model.context_tokens,
        )

    def context(self, run_id: str) -> Context:
        """Give the vault as a run sees it: what both the agent and the client may see on whose behalf it is.

        Raises:
            NotFound: There is no such run.
        """
        return self._context(run_id, (), ())

    async def elsewhere(self, point: CheckpointEvent, *, most_s: float = 0) -> str:
        """Wait for a person's answer on whatever surface: the `person` of an engine where nobody sits beside it.

        Args:
            point: What is asked.
            most_s: How long to wait for them; 0 for as long as it takes.
        """
        return await retrieving.wait_for_answer(self.checkpoints, point, most_s=most_s)

    def delete(self, run_id: str) -> None:
        """Forget a run with what it asked; what it wrote stays, and can be undone.

        Raises:
            NotFound: There is no such run.
            ConflictError: It goes on.
        """
        self.runs.delete(run_id)
        _ = self.checkpoints.forget(run_id)

    def is_ready(self) -> bool:
        """Tell whether the sandbox can run scripts at once, or has to be prepared first."""
        return self.scripts.sandbox().code.is_ready()

    def check_sandbox(self) -> None:
        """See that scripts can be run here, be it after some seconds in which the sandbox is prepared.

        Raises:
            SetupError: They can't (code ``no_sandbox``).
        """
        _ = self.scripts.sandbox().code.file

    def check_vaults(self, names: Sequence[str]) -> None:
        """See that there are vaults of these names.

        Raises:
            NotFound: There is none of one (code ``no_vault``).
        """
        for name in names:
            _ = self.hub.open(name)

    def close(self) -> None:
        """Close what is open; the hub stays open."""
        self.scripts.close()
        self.checkpoints.shut()
        self.meter.shut()
        self.store.shut()

    def _context(self, run_id: str, roots: Sequence[str], hosts: Sequence[str]) -> Context:
        client = self.store.get(run_id).order.client

        def opened(vault: str) -> Context:
            return acting.opened(self.hub, vault, run_id, (client,))

        if not roots and not hosts:
            return opened(self.vault)  # with the hub's own sandbox
        return self.scripts.allowed(opened(self.vault), opened, roots=roots, hosts=hosts)


def open_runs(hub: Hub, vault: str = "") -> TaskRuns:
    """Open the runs of a vault.

    Args:
        hub: Holds the vaults; it stays open as long as the runs are used.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The runs can't be opened.
    """
    opened = hub.open(vault)
    folder = opened.folder
    own = hub.settings.model
    allowed = usage.SpendingLimits(run_tokens=own.run_tokens, day_tokens=own.day_tokens, day_cents=own.day_cents)
    with ExitStack() as stack:
        kept = store.open_run_store(folder)
        _ = stack.callback(kept.shut)
        _ = kept.prune(hub.settings.runs.days)
        meter = usage.open_meter(folder, allowed, now)
        _ = stack.callback(meter.shut)
        made = TaskRuns(
            runs=VaultRuns(store=kept, folder=folder),
            store=kept,
            meter=meter,
            checkpoints=checkpoints.open_checkpoints(folder, now),
            scripts=Scripts(hub.settings, lambda: hub.table),
            hub=hub,
            vault=opened.vault.name,
        )
        _ = stack.pop_all()
    return made


def limits(settings: Settings) -> RunLimits:
    """Give what the configuration lets a run take."""
    own = settings.runs
    return RunLimits(
        depth=own.depth,
        nodes=own.nodes,
        seconds=own.minutes * 60.0,
        tokens=own.tokens,
        cents=own.cents,
        parallel=own.parallel,
    )


def strategies(settings: Settings) -> Strategies:
    """Find the strategies: the person's own lie in the folder ``strategies`` beside the configuration file."""
    return Strategies(folder=settings.config_file.parent / "strategies")
