"""Open a vault with its index, for any number of clients."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from knapper import config
from knapper.app import outside
from knapper.index.embedders.base import EmbedderSettings
from knapper.index.embedders.registry import open_embedder
from knapper.index.engine import Engine
from knapper.tools.context import Context
from knapper.vault import obsidian, walk
from knapper.vault.access import Policy
from knapper.vault.view import View

if TYPE_CHECKING:
    from pathlib import Path

    from knapper.app.writing import Desks
    from knapper.changes.writer import SubmitOptions, Writer
    from knapper.config import Client, Settings, Vault


_RULES = (walk.IGNORE_FILE, obsidian.APP_FILE)


def open_vault(settings: Settings, *, client: str = "cli") -> Context:
    """Open the chosen vault for *client*, with its index; what writing needs is opened when it is first asked for.

    Args:
        settings: What the configuration says.
        client: Whose policy holds.

    Raises:
        SetupError: No vault could be chosen, or the state folder lies inside it.
        StorageError: The index can't be opened.
    """
    opened = OpenedVault(settings, settings.vault)
    return opened.context(client, close=opened.close)


class OpenedVault:
    """Hold a vault's index open, and what its writers share.

    Any thread may use it.
    """

    def __init__(self, settings: Settings, vault: Vault) -> None:
        """Open the index.

        Raises:
            SetupError: The state folder lies inside the vault.
            StorageError: The index can't be opened.
        """
        # what the owner hides from everybody is kept out of the index too, and so from an embedder elsewhere
        owner = View.open(vault.path, Policy(client="owner", read=vault.read, hidden=vault.hidden))
        self.vault = vault
        self.folder = config.state_folder(settings, vault)  # the index makes it
        self.engine = _open_index(settings, self.folder / "index", owner)
        self._settings = settings
        self._stack = contextlib.ExitStack()
        self._stack.callback(self.engine.close)
        self._lock = threading.Lock()
        self._desks: Desks | None = None
        self._policies: dict[str, Policy] = {}
        self._outside = outside.Outside(settings, self.folder)
        self._stack.callback(self._outside.close)
        self._rules = _stamps(vault.path)

    def context(
        self, client: str, *, asked: SubmitOptions | None = None, close: outside.Close = outside.nothing
    ) -> Context:
        """Give the vault as *client* sees it.

        Args:
            client: Whose policy holds.
            asked: How what is written is meant.
            close: What closing the context does.
        """
        allowed = self._settings.client(client)
        self._follow_rules()
        view = self.engine.view.seen_by(self._policy(allowed))
        return Context(
            vault=self.vault.name,
            view=view,
            index=self.engine,
            open_writer=_Once(lambda: self._writer(view, allowed)),
            close=close,
            asked=asked,
            open_web=self._outside.web,
            open_transcriber=self._outside.transcriber,
        )

    def close(self) -> None:
        """Close all that is open."""
        self._stack.close()

    def _policy(self, client: Client) -> Policy:
        known = self._policies.get(client.name)
        if known is None:
            vault = self.vault
            known = self._policies[client.name] = Policy(
                client=client.name,
                read=vault.read,
                within=client.read,
                hidden=vault.hidden + client.hidden,
                foreign_folders=vault.foreign_folders,
                foreign_properties=vault.foreign_properties,
            )
        return known

    def _writer(self, view: View, client: Client) -> Writer:
        with self._lock:
            if self._desks is None:
                from knapper.app.writing import Desks  # noqa: PLC0415 - searching needn't pay for it

                self._desks = Desks.open(self._settings, self.engine, self.folder, self._stack)
        return self._desks.writer(view, client.grants)

    def _follow_rules(self) -> None:
        """Look again at what the vault itself hides, where that was changed: a server runs for days."""
        found = _stamps(self.vault.path)
        if found != self._rules:
            self.engine.read_rules()
            self._rules = found


class _Once:
    """Make a writer when it is first asked for, and give the same one from then on."""

    def __init__(self, make: outside.MakeWriter) -> None:
        self._make = make
        self._made: Writer | None = None

    def __call__(self) -> Writer:
        if self._made is None:
            self._made = self._make()
        return self._made


def _stamps(root: Path) -> tuple[tuple[int, int] | None, ...]:
    return tuple(_stamp(root / name) for name in _RULES)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size)


def _open_index(settings: Settings, folder: Path, view: View) -> Engine:
    embeddings = settings.embeddings
    chosen = EmbedderSettings(
        kind=embeddings.kind, model=embeddings.model, base_url=embeddings.base_url, api_key=embeddings.api_key
    )
    return Engine(
        folder,
        view,
        open_embedder=lambda: open_embedder(chosen),
        fusion=settings.search.fusion,
        compare_every_s=60.0 * settings.index_interval_minutes,
    )
