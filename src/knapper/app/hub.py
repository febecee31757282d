"""Hold several vaults open for as long as a server runs."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from knapper.app.closing import Closing
from knapper.app.scripting import Scripts
from knapper.config import Vault, spelling
from knapper.errors import KnapError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from knapper.agents.offers import AgentRequest
    from knapper.app.opened import OpenedVault
    from knapper.changes.writer import SubmitOptions
    from knapper.config import Settings
    from knapper.tools.context import Context
    from knapper.tools.registry import ToolTable
    from knapper.tools.shapes import Answer

    Offer = Callable[["Hub", Context, AgentRequest], Answer]
    """Does by a hub's vaults what a client asks the agents' own tools for."""


class Hub(Closing):
    """Give any client any of the vaults.

    Any thread may use it. A vault is opened when it is first asked for.
    """

    def __init__(self, settings: Settings, offer: Offer | None = None, *, only: bool = False) -> None:
        """Take the vaults of the configuration.

        Args:
            settings: What the configuration says.
            offer: Does what the agents' own tools are asked for; None where nobody does it.
            only: Leave out all vaults but the chosen one.

        Raises:
            SetupError: There is no vault, or none could be chosen.
        """
        choice = settings.choice
        known = () if only else settings.vaults
        if isinstance(choice, Vault):
            known = (choice, *(vault for vault in known if vault.path != choice.path))
        elif not known:
            raise choice
        self.settings = settings
        self._offer = offer
        self._vaults = {vault.name: vault for vault in reversed(known)}
        self._names = tuple(reversed(self._vaults))
        self._opened: dict[str, OpenedVault] = {}
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._table: ToolTable | None = None
        self._scripts = Scripts(settings, lambda: self.table)
        self._stack.callback(self._scripts.close)

    @property
    def vaults(self) -> Sequence[str]:
        """Name the vaults; the first is the one that is meant where none is named."""
        return self._names

    @property
    def table(self) -> ToolTable:
        """Give the tools of all layers."""
        if self._table is None:
            from knapper.agents.offers import AgentTools  # noqa: PLC0415 - as below
            from knapper.app import tables  # noqa: PLC0415 - schemas are made only where tools are called by name

            offers = AgentTools() if self._offer is None else AgentTools(partial(self._offer, self))
            self._table = tables.whole(self._names, offers)
        return self._table

    def open(self, vault: str = "") -> OpenedVault:
        """Open a vault, or give the one that is open.

        Args:
            vault: Its name; empty for the first.

        Raises:
            NotFound: There is no vault of that name.
            SetupError: Its state folder lies inside it.
            StorageError: Its index can't be opened.
        """
        name = vault or self._names[0]
        chosen = self._vaults.get(name)
        if chosen is None:
            hint = spelling.did_you_mean(name, self._names, f"there are: {', '.join(self._names)}")
            raise NotFound(f"there is no vault '{name}'", hint=hint, code="no_vault")
        from knapper.app.opened import OpenedVault  # noqa: PLC0415 - a handshake needn't pay for the index's libraries

        with self._lock:
            opened = self._opened.get(name)
            if opened is None:
                opened = self._opened[name] = OpenedVault(self.settings, chosen)
                self._stack.callback(opened.close)
        return opened

    def context(self, *, client: str, vault: str = "", asked: SubmitOptions | None = None) -> Context:
        """Give a vault as *client* sees it; closing it closes nothing.

        Args:
            client: Whose policy holds.
            vault: Its name; empty for the first.
            asked: How what is written is meant.

        Raises:
            KnapError: As for `open`.
        """
        found = self.open(vault).context(client, asked=asked)
        try:
            return self._scripts.allowed(found, lambda name: self.context(client=client, vault=name, asked=asked))
        except KnapError as error:  # a folder for scripts that is gone is no reason to refuse a note
            return replace(found, open_sandbox=_failing(error))

    def close(self) -> None:
        """Close all vaults."""
        with self._lock:
            self._stack.close()
            self._opened.clear()


def _failing(error: KnapError) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail
