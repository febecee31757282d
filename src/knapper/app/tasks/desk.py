"""Do tasks with several agents for the clients of a server: each sees its own, and its agents no more than it does."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from knapper.agents.background import BackgroundJobs, FinalEventSpec
from knapper.agents.pipeline import store
from knapper.agents.pipeline.records import PipelineOutcome
from knapper.agents.pipeline.store import Preset
from knapper.app import chats, model_choice
from knapper.app.tasks import choices
from knapper.app.tasks import presets as set_up
from knapper.app.tasks.pipelines import Pipelines
from knapper.errors import BadInput, NotFound

if TYPE_CHECKING:
    from knapper.agents.chat.turn import ChatConfig
    from knapper.agents.pipeline.context import TaskRequest
    from knapper.agents.pipeline.service import PipelineService
    from knapper.agents.pipeline.store import AgentToggles, PausedRuns, Presets
    from knapper.app.chats import Chats
    from knapper.app.chatting import Room
    from knapper.app.tasks.choices import Choice, Order
    from knapper.config import Client
    from knapper.tools.context import Context


MOST_PRESETS: Final = 500
TASK: Final = FinalEventSpec(
    kind=PipelineOutcome, make=lambda state, run_id: PipelineOutcome(run_id=run_id, state=state, answer="", pipeline={})
)
"""What ends a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Hold what the tasks of one client in one vault are done with."""

    room: Room
    opened: Pipelines
    switches: Presets
    """Keeps the switches as the client set them last; those of persons are the vault's own."""
    lives: BackgroundJobs[PipelineOutcome] = field(default_factory=lambda: BackgroundJobs(TASK))
    """Tasks that go on, or have ended a while ago; used from the server's event loop only."""

    @property
    def client(self) -> Client:
        """Give what the client may see and change."""
        return self.opened.hub.settings.client(self.room.client)

    def acting(self, run_id: str) -> Context:
        """Open the vault as the agents see it that act for the client."""
        return self.room.conversations.context_of(run_id)

    def usual(self, preset: str = "") -> Preset:
        """Give what a task is done with where nothing else is said, as far as the client may see and do it.

        Raises:
            NotFound: There is no such preset.
        """
        if preset:
            return self._own(self.opened.presets.find(preset))
        own = self.configured()
        return replace(own, toggles=self.switches.toggles(own.toggles))

    def configured(self) -> Preset:
        """Give what the configuration says, as far as the client may see and do it.

        Raises:
            SetupError: All agents are switched off.
        """
        return self._own(set_up.configured(self.opened.hub.settings))

    def presets(self) -> list[Preset]:
        """List the presets as the client may see them."""
        view = self.acting("").view
        return [choices.seen(one, view) for one in self.opened.presets.list()]

    def answering(self, model: str = "") -> PipelineService:
        """Open the models; nothing is sent yet.

        Raises:
            SetupError: There is no such model, or no key for it.
            RefusedError: The client may not have it work.
        """
        return replace(self.opened.answering(self.model(model)), wait_s=0)

    def model(self, name: str) -> str:
        """Give the name of the model that a client means; empty for the configured one.

        Raises:
            RefusedError: The client may not have it work.
        """
        settings = self.opened.hub.settings
        model_choice.check(settings, name, self.client.grants)
        return "" if name == settings.model.name else name

    def request(self, order: Order) -> TaskRequest:
        """Make a request of what the client says, and keep the switches if it says them.

        Raises:
            NotFound: There is no such note, preset or session.
            SetupError: Only the web is to be searched, and the owner doesn't allow it.
            BadInput: No agent would work, or a value is out of its range.
        """
        made = self._made(order)
        context = self.acting(made.run_id)
        for path in filter(None, (made.current, *made.added)):
            _ = context.view.path(path)
        if made.toggles.web and not (made.toggles.scout or made.toggles.task):
            _ = context.open_web()
        if made.session_id:
            _ = self.room.store.get(made.session_id)
        if order.choice.switches:
            chosen = order.choice.applied(self.usual(order.preset))  # not what is switched on for want of a note
            self.switches.set_toggles(chosen.toggles)
        return made

    def switch(self, choice: Choice) -> AgentToggles:
        """Keep the switches for the next task; those that aren't said stay.

        Raises:
            BadInput: No agent would work (code ``no_agent``).
        """
        toggles = choice.applied(self.usual()).toggles
        self.switches.set_toggles(toggles)
        return toggles

    def planned(self, order: Order) -> TaskRequest:
        """Make the request whose context is to be shown; nothing is kept, and there may be no task.

        Raises:
            NotFound: There is no such preset.
            BadInput: A value is out of its range.
        """
        return self._made(replace(order, task=order.task or "-"))

    def save(self, preset: Preset) -> Preset:
        """Keep a preset; what the client can't see of one of the same name stays.

        Raises:
            BadInput: It can't be kept.
        """
        kept, view = self.opened.presets, self.acting("").view
        try:
            whole = choices.joined(preset, kept.find(preset.name), view)
        except NotFound:
            whole = preset
            if len(kept.list()) >= MOST_PRESETS:
                raise BadInput(f"there are {MOST_PRESETS} presets", hint="delete one", code="too_many") from None
        kept.save(whole)
        return choices.seen(kept.find(preset.name), view)

    def _made(self, order: Order) -> TaskRequest:
        chosen = order.choice.applied(self.usual(order.preset))
        chosen = choices.allowed(chosen, self.client.grants)
        made = self.opened.request(order.task, chosen, current=order.note.strip(), session_id=order.session_id)
        return replace(
            made,
            token_limit=made.token_limit if order.token_limit is None else order.token_limit,
            orchestrate=made.orchestrate if order.orchestrate is None else order.orchestrate,
        ).settled()

    def _own(self, preset: Preset) -> Preset:
        return choices.allowed(choices.seen(preset, self.acting("").view), self.client.grants)


class Tasking:
    """Hold the desks of a server's clients; any thread may ask for one."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._vaults: dict[str, tuple[PausedRuns, Presets]] = {}
        self._desks: dict[tuple[str, str], Desk] = {}

    def desk(self, room: Room) -> Desk:
        """Give the desk of a room.

        Raises:
            StorageError: A file of the state folder can't be opened.
        """
        key = (room.client, room.chats.vault)
        with self._lock:
            desk = self._desks.get(key)
            if desk is None:
                desk = self._desks[key] = self._open(room)
        return desk

    def desks(self, client: str) -> list[Desk]:
        """List the desks of a client that are open."""
        return [desk for (owner, _), desk in list(self._desks.items()) if owner == client]

    def close(self) -> None:
        """Close all."""
        with self._lock:
            self._stack.close()
            self._desks.clear()
            self._vaults.clear()

    def _open(self, room: Room) -> Desk:
        hub, vault = room.chats.hub, room.chats.vault
        waiting, named = self._shared(room)
        is_person = hub.settings.client(room.client).grants.is_person
        switches = named if is_person else store.open_presets(room.conversations.folder)
        if not is_person:
            self._stack.callback(switches.shut)
        return Desk(
            room=room,
            opened=Pipelines(
                chats=room.chats,
                runs=waiting,
                presets=named,
                hub=hub,
                vault=vault,
                owner=room.client,
                open_chat=lambda own, model: _opened(room, own, model),
            ),
            switches=switches,
        )

    def _shared(self, room: Room) -> tuple[PausedRuns, Presets]:
        vault = room.chats.vault
        if vault not in self._vaults:
            folder = room.chats.hub.open(vault).folder
            waiting = store.open_paused_runs(folder, chats.now)
            self._stack.callback(waiting.shut)
            named = store.open_presets(folder)
            self._stack.callback(named.shut)
            self._vaults[vault] = waiting, named
        return self._vaults[vault]


def _opened(room: Room, own: Chats, model: str) -> ChatConfig:
    return own.chat(model) if model else room.chat()
