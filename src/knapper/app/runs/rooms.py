"""Hold the runs of a server: each client has a room of its own in each vault."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from knapper.app.runs import opening
from knapper.app.runs.room import RunRoom

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.agents.runs.engine import AskPerson, RunEngine
    from knapper.app.hub import Hub
    from knapper.app.runs.opening import TaskRuns
    from knapper.app.runs.room import OpenEngine


class RunRooms:
    """Hold the rooms of a server's clients; any thread may ask for one."""

    def __init__(
        self, hub: Hub, open_engine: OpenEngine | None = None, is_leaving: Callable[[], bool] = lambda: False
    ) -> None:
        """Begin without any.

        Args:
            hub: The vaults; it stays open, and is the caller's to close.
            open_engine: Opens what works for runs; None for what the configuration says.
            is_leaving: Tells whether the server ends.
        """
        self._hub = hub
        self._open_engine = open_engine or _configured
        self._is_leaving = is_leaving
        self._lock = threading.Lock()
        self._vaults: dict[str, TaskRuns] = {}

    def room(self, client: str, vault: str = "") -> RunRoom:
        """Give a client's room in a vault.

        Args:
            client: Who asks.
            vault: The vault's name; empty for the first.

        Raises:
            NotFound: There is no such vault.
            StorageError: The runs can't be opened.
        """
        name = self._hub.open(vault).vault.name
        with self._lock:
            tasks = self._vaults.get(name)
            if tasks is None:
                tasks = self._vaults[name] = opening.open_runs(self._hub, name)
        return RunRoom(client=client, tasks=tasks, open_engine=self._engine)

    def close(self) -> None:
        """Close all runs."""
        with self._lock:
            for tasks in self._vaults.values():
                tasks.close()
            self._vaults.clear()

    def _engine(self, tasks: TaskRuns, model: str, person: AskPerson | None) -> RunEngine:
        return replace(self._open_engine(tasks, model, person), is_leaving=self._is_leaving)


def _configured(tasks: TaskRuns, model: str, person: AskPerson | None) -> RunEngine:
    return tasks.engine(model, person=person)
