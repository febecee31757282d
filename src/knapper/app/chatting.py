"""Hold the conversations of a server: each client has its own in each vault, and its agent sees no more than it."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from knapper.agents import background
from knapper.agents.chat.conversations import Conversations
from knapper.agents.sessions import store
from knapper.app import acting, chats
from knapper.app.chats import Chats
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, RefusedError
from knapper.tools import files
from knapper.vault import paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from knapper.agents.chat.turn import ChatConfig
    from knapper.agents.sessions.store import Session, SessionStore
    from knapper.app.hub import Hub
    from knapper.tools.context import Context
    from knapper.tools.shapes import Answer


FOLDER: Final = "chats"
"""Of clients' sessions, in a vault's state folder."""
_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Hold what one client says in one vault."""

    client: str
    chats: Chats
    turns: background.TurnJobs = field(default_factory=background.make_turn_jobs)
    """Those that go on, or have ended a while ago; used from the server's event loop only."""
    open_chat: Callable[[Chats], ChatConfig] = Chats.chat
    may_write: bool = True

    @property
    def store(self) -> SessionStore:
        """Give the client's sessions."""
        return self.chats.store

    @property
    def conversations(self) -> Conversations:
        """Give what answers in them."""
        return self.chats.conversations

    def session(self, active_file: str) -> Session:
        """Find the session of an open note, or the one that is meant where none is open.

        Raises:
            RefusedError: The note is hidden from the client (code ``note_hidden``).
        """
        self.check(active_file)
        return self.conversations.route(active_file)

    def check(self, active_file: str) -> None:
        """See that a note isn't hidden from the client; the disk isn't told from what isn't there.

        Raises:
            RefusedError: It is (code ``note_hidden``), or it lies outside the vault.
            BadInput: The text can be no path.
        """
        raw = active_file.strip()
        if not raw:
            return
        view = self.conversations.context_of("").view
        if not view.visible(paths.parse(raw, root=view.root)):
            raise RefusedError(
                "the active file is hidden from this client, or from its agent",
                hint="leave active_file out, or have the owner show it: `knap config` tells what hides it",
                code="note_hidden",
            )

    def chat(self) -> ChatConfig:
        """Open the configured model with the vault's tools.

        Raises:
            SetupError: There is none, or no key for it.
        """
        chat = self.open_chat(self.chats)
        return chat if self.may_write else replace(chat, may_write=False)

    def context(self, run: str) -> Context:
        """Open the vault as the client itself sees it, for what it orders by its own word."""
        chats = self.chats
        return chats.hub.context(client=self.client, vault=chats.vault, asked=SubmitOptions(run=run))

    def export(self, session_id: str, path: str = "") -> Answer:
        """Write a session as a note, by the client's own word.

        Args:
            session_id: The session's.
            path: Of the new note; empty for one below Chats/.

        Raises:
            NotFound: There is no such session.
            BadInput: Nothing was said in it yet (code ``session_empty``).
            KnapError: The note can't be made.
        """
        session, turns = self.store.get(session_id), self.store.turns(session_id)
        if not turns:
            raise BadInput("nothing was said in this session yet", hint="say something first", code="session_empty")
        text = store.write_session_markdown(session, turns)
        return files.create_file(self.context(session_id), path or store.export_path(session, turns), text)


class Chatting:
    """Hold the rooms of a server's clients; any thread may ask for one."""

    def __init__(self, hub: Hub, open_chat: Callable[[Chats], ChatConfig] = Chats.chat) -> None:
        """Begin without any.

        Args:
            hub: The vaults; it stays open, and is the caller's to close.
            open_chat: Opens what answers.
        """
        self._hub = hub
        self._open_chat = open_chat
        self._lock = threading.Lock()
        self._vaults: dict[str, Chats] = {}
        self._rooms: dict[tuple[str, str], Room] = {}

    def room(self, client: str, vault: str = "") -> Room:
        """Give a client's room in a vault.

        Args:
            client: Who asks.
            vault: The vault's name; empty for the first.

        Raises:
            NotFound: There is no such vault.
            StorageError: The sessions can't be opened.
            SetupError: What the client and its agent may see can't be joined.
        """
        name = self._hub.open(vault).vault.name
        with self._lock:
            room = self._rooms.get((client, name))
            if room is None:
                room = self._rooms[client, name] = self._open(client, name)
        return room

    def rooms(self, client: str = "") -> list[Room]:
        """List the rooms of a client that are open; empty for everybody's."""
        return [room for (owner, _), room in list(self._rooms.items()) if client in {"", owner}]

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            for room in self._rooms.values():
                room.store.shut()
            for shared in self._vaults.values():
                shared.close()
            self._rooms.clear()
            self._vaults.clear()

    def _open(self, client: str, vault: str) -> Room:
        hub = self._hub
        shared = self._vaults.get(vault)
        if shared is None:
            shared = self._vaults[vault] = chats.open_chats(hub, vault)
        acting.check(hub, vault, client)
        folder = folder_of(shared.conversations.folder, client)
        own = hub.settings.model
        sessions = store.open_session_store(folder, chats.now)
        _ = sessions.prune(max_days=own.session_days, max_bytes=own.sessions_mb * 1_000_000)

        def opened(run: str) -> Context:
            return acting.opened(hub, vault, run, (client,))

        talks = Conversations(store=sessions, folder=folder, context_of=opened, wait_s=0)
        return Room(
            client=client,
            chats=replace(shared, conversations=talks, store=sessions),
            open_chat=self._open_chat,
            may_write=not hub.settings.client(client).grants.is_read_only,
        )


def folder_of(base: Path, client: str) -> Path:
    """Make the folder of a client's sessions in a vault's state folder.

    Names that a disk can't tell apart have folders of their own.
    """
    digest = hashlib.sha256(client.encode()).hexdigest()[:12]
    folder = base / FOLDER / f"{_NOT_PLAIN.sub('-', client.lower())[:32]}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
