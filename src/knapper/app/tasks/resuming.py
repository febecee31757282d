"""Go on with tasks that asked a person something, whoever they are of."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from knapper.agents.pipeline import store
from knapper.agents.sessions import store as sessions_store
from knapper.app import acting, chats, chatting, sessions
from knapper.app.acting import CLIENT

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from knapper.agents.pipeline.service import PipelineService
    from knapper.agents.pipeline.store import PausedRun
    from knapper.agents.sessions.store import SessionStore
    from knapper.app.hub import Hub
    from knapper.app.tasks.pipelines import Pipelines
    from knapper.config import Client
    from knapper.tools.context import Context


def waiting(opened: Pipelines, by: Client) -> list[PausedRun]:
    """List the runs that a client may go on with, the latest first."""
    return [run for run in opened.runs.list() if _may(run, by)]


def find(opened: Pipelines, run_id: str, by: Client) -> PausedRun:
    """Give a run that a client may go on with.

    Raises:
        NotFound: No such run waits, or it is another client's (code ``no_run``).
    """
    found = opened.runs.find(run_id)
    if not _may(found, by):
        raise store.missing_paused_run(run_id)
    return found


@contextmanager
def opened_for(
    opened: Pipelines, run: PausedRun, by: Client, model: str = ""
) -> Generator[tuple[PipelineService, Context]]:
    """Open what goes on with a run: its owner's sessions, and no more of the vault than its owner and who answers see.

    Args:
        opened: Of the vault.
        run: What waits.
        by: Who answers.
        model: The model's name; empty for the configured one.

    Raises:
        SetupError: There is no model, or what both may see can't be joined.
    """
    answering = replace(opened.answering(model), owner="" if run.client == CLIENT else run.client)
    context = joined(opened.hub, opened.vault, run.id, (run.client, by.name))
    if run.client == opened.owner:
        yield answering, context
        return
    kept, folder = _sessions(opened.hub, opened.vault, run.client)
    try:
        yield replace(answering, store=kept, folder=folder), context
    finally:
        kept.shut()


def joined(hub: Hub, vault: str, run_id: str, clients: tuple[str, ...]) -> Context:
    """Open a vault as the agents see it that act for some clients.

    Raises:
        SetupError: What all may see can't be joined.
    """
    return acting.opened(hub, vault, run_id, [name for name in clients if name != CLIENT])


def _may(run: PausedRun, by: Client) -> bool:
    """Tell whether a client may see a run: its own, and a person from whom nothing is kept any."""
    return run.client == by.name or (by.grants.is_person and not (by.hidden or by.read))


def _sessions(hub: Hub, vault: str, owner: str) -> tuple[SessionStore, Path]:
    folder = hub.open(vault).folder
    if owner == CLIENT:
        return sessions.open_store(hub, vault), folder
    own = chatting.folder_of(folder, owner)
    return sessions_store.open_session_store(own, chats.now), own
