"""Tell whose runs a client sees: its own, and a person others' that show nothing hidden from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knapper.app import acting, narrowing
from knapper.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.app.hub import Hub
    from knapper.app.runs.opening import TaskRuns


def clients(tasks: TaskRuns, client: str) -> Sequence[str]:
    """Name those whose runs of a vault a client sees."""
    hub = tasks.hub
    if not hub.settings.client(client).grants.is_person:
        return (client,)
    kept = tasks.store.clients().items()
    return [name for name, also in kept if name == client or _sees(hub, client, name, (tasks.vault, *also))]


def _sees(hub: Hub, person: str, other: str, vaults: Sequence[str]) -> bool:
    """Tell whether a person may see what an agent sees in these vaults that works for another client."""
    known = [vault for vault in vaults if vault in hub.vaults]  # of one that is gone, nobody says what is hidden
    return all(_covers(hub, person, other, vault) for vault in known)


def _covers(hub: Hub, person: str, other: str, vault: str) -> bool:
    own = hub.context(client=person, vault=vault).view.policy
    try:
        return narrowing.covers(own, acting.opened(hub, vault, "", (other,)).view.policy)
    except SetupError:  # by now its rules can't be joined with the agent's
        return False
