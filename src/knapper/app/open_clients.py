"""What is open for the clients of a server: their chats, tasks and runs, opened on first use and shared by threads."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from knapper.agents.runs.engine import AskPerson, RunEngine
    from knapper.agents.work_store import WorkStore
    from knapper.app.chats import ClientChats, OpenChat, VaultChats
    from knapper.app.client_runs import ClientRuns, OpenEngine
    from knapper.app.hub import Hub
    from knapper.app.pipelines import ClientPipelines
    from knapper.app.runs import OpenedRuns

    T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOpeners:
    """Open what answers; where one is None, the configuration says it."""

    chat: OpenChat | None = None
    """For chats and tasks."""
    engine: OpenEngine | None = None
    """For runs."""


class OpenClients:
    """The chats, tasks and runs of each vault, and of each client in it.

    Models and what runs are carried out with are imported by the first call that needs them: seconds, which a server
    without chats needn't wait for.
    """

    def __init__(
        self, hub: Hub, openers: ModelOpeners | None = None, is_leaving: Callable[[], bool] = lambda: False
    ) -> None:
        """Start empty; nothing is opened yet.

        Args:
            hub: The vaults; the caller closes it.
            openers: Open what answers; None for what the configuration says.
            is_leaving: Returns whether the server is stopping, when runs are interrupted.
        """
        self.hub = hub
        self._openers = openers or ModelOpeners()
        self._is_leaving = is_leaving
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._vault_chats: dict[str, VaultChats] = {}
        self._vault_runs: dict[str, OpenedRuns] = {}
        self._chats: dict[tuple[str, str], ClientChats] = {}
        self._pipelines: dict[tuple[str, str], ClientPipelines] = {}

    def chats(self, client: str, vault: str = "") -> ClientChats:
        """Return a client's chats in a vault.

        Args:
            client: Who asks.
            vault: The vault's name; empty for the first.

        Raises:
            NotFound: There is no such vault.
            StorageError: The sessions can't be opened.
            SetupError: The rules of the client and its agent can't be combined.
        """
        from knapper.app import chats  # noqa: PLC0415 - as the class says

        name = self._name(client, vault)
        with self._lock:
            if (client, name) not in self._chats:
                shared = self._shared(self._vault_chats, name, lambda: chats.open_chats(self.hub, name))
                open_chat = self._openers.chat or chats.VaultChats.chat
                opened = chats.open_client_chats(shared, client, open_chat)
                self._chats[client, name] = self._stack.enter_context(opened)
            return self._chats[client, name]

    def pipelines(self, client: str, vault: str = "") -> ClientPipelines:
        """Return a client's tasks in a vault; raises as `chats` does."""
        from knapper.app import pipelines  # noqa: PLC0415 - as the class says

        client_chats = self.chats(client, vault)
        key = (client, client_chats.chats.vault)
        with self._lock:
            if key not in self._pipelines:
                self._pipelines[key] = pipelines.open_client_pipelines(client_chats)
            return self._pipelines[key]

    def runs(self, client: str, vault: str = "") -> ClientRuns:
        """Return a client's runs in a vault.

        Raises:
            NotFound: There is no such vault.
            StorageError: The runs can't be opened.
        """
        from knapper.app import client_runs, runs  # noqa: PLC0415 - as the class says

        name = self._name(client, vault)
        with self._lock:
            opened = self._shared(self._vault_runs, name, lambda: runs.open_runs(self.hub, name))
        return client_runs.ClientRuns(client=client, opened_runs=opened, open_engine=self._engine)

    def find_work(self, vault: str) -> WorkStore | None:
        """Return the sessions of a vault by its name, if they are open."""
        shared = self._vault_chats.get(vault)
        return shared.work if shared else None

    def list_chats(self) -> list[ClientChats]:
        """List the chats that are open, of all clients."""
        return list(self._chats.values())

    def list_pipelines(self, client: str) -> list[ClientPipelines]:
        """List the tasks of a client that are open."""
        return [opened for (owner, _), opened in list(self._pipelines.items()) if owner == client]

    def close(self) -> None:
        """Close everything; the hub stays open."""
        with self._lock:
            self._stack.close()
            for opened in (self._chats, self._pipelines, self._vault_chats, self._vault_runs):
                opened.clear()

    def _name(self, client: str, vault: str) -> str:
        return self.hub.open(self.hub.name_for(client, vault)).vault.name

    def _shared(self, opened: dict[str, T], vault: str, open_it: Callable[[], AbstractContextManager[T]]) -> T:
        """Return what all clients of a vault share, opening it on first use."""
        if vault not in opened:
            opened[vault] = self._stack.enter_context(open_it())
        return opened[vault]

    def _engine(self, opened: OpenedRuns, model: str, person: AskPerson | None) -> RunEngine:
        open_engine = self._openers.engine
        engine = open_engine(opened, model, person) if open_engine else opened.engine(model, person=person)
        return replace(engine, is_shutting_down=self._is_leaving)
