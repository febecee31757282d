"""The sessions of a vault, opened without a model."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from knapper.agents.sessions import store
from knapper.app import clients
from knapper.changes.disk import databases
from knapper.tools import derived

if TYPE_CHECKING:
    from collections.abc import Generator

    from knapper.agents.sessions.store import Session, SessionStore
    from knapper.app.hub import Hub


@contextmanager
def open_sessions(hub: Hub, vault: str = "") -> Generator[SessionStore]:
    """Open the sessions of a vault for a while; old ones, and the oldest of too many, are dropped.

    Args:
        hub: Holds the vaults.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The sessions can't be opened.
    """
    session_store = open_store(hub, vault)
    try:
        yield session_store
    finally:
        session_store.shut()


def open_store(hub: Hub, vault: str = "") -> SessionStore:
    """Open the sessions of a vault until they are closed; raises as `open_sessions` does."""
    model_settings = hub.settings.model
    session_store = store.open_session_store(hub.open(vault).folder, local_now)
    with ExitStack() as stack:
        _ = stack.callback(session_store.shut)
        max_backup_bytes = hub.settings.journal.backup_mb * 1_000_000
        _ = databases.back_up_daily(hub.open(vault).folder, max_bytes=max_backup_bytes)
        _ = session_store.prune(max_days=model_settings.session_days, max_bytes=model_settings.sessions_mb * 1_000_000)
        _ = stack.pop_all()
    return session_store


def fork(hub: Hub, session_store: SessionStore, session_id: str, upto: int | None = None) -> Session:
    """Create a session that continues a copy of another one of the agent's, and has read what that has read.

    Args:
        hub: Holds the vault.
        session_store: The vault's sessions.
        session_id: The session to copy.
        upto: The last turn to copy; None for all.

    Raises:
        NotFound: There is no such session.
    """
    context = clients.open_as_agent(hub, "", session_id, ())
    return session_store.fork(session_id, upto=upto, before_commit=derived.taint_copier(context, session_id))


def local_now() -> datetime:
    """Return the local time."""
    return datetime.now().astimezone()
