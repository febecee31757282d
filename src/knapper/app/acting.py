"""Open vaults as agents see them that act for clients: as far as the agent and each of those may see and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.app import narrowing
from knapper.changes.writer import SubmitOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from knapper.app.hub import Hub
    from knapper.tools.context import Context


CLIENT: Final = "agent"
"""Whose policy holds for what a model does."""


def opened(hub: Hub, vault: str, run_id: str, clients: Iterable[str]) -> Context:
    """Open a vault for a run or a turn.

    Args:
        hub: Holds the vaults.
        vault: The vault's name.
        run_id: The run's, or the turn's.
        clients: For whom the agent acts; empty for nobody but itself.

    Raises:
        SetupError: What all may see can't be joined.
    """
    context = hub.context(client=CLIENT, vault=vault, asked=SubmitOptions(run=run_id))
    for name in dict.fromkeys(clients):
        context = narrowing.narrowed(context, hub.settings.client(name))
    return context


def check(hub: Hub, vault: str, client: str) -> None:
    """See that an agent can act for a client in a vault, before anything is begun that finds out late.

    Raises:
        SetupError: What both may see, or write, can't be joined.
    """
    _ = opened(hub, vault, "", (client,))
    _ = narrowing.grants(hub.settings.client(CLIENT).grants, hub.settings.client(client).grants)
