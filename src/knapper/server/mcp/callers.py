"""Do a request's work in a thread, on behalf of the client that sent it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from knapper.app import Hub
from knapper.changes.writer import Asked
from knapper.tools.context import Context
from knapper.tools.tables import Open

_THREADS = 32
"""Requests that are worked on at once; others wait their turn."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Caller:
    """Say who a client is, and what it may reach."""

    client: str
    """Whose policy holds."""
    run: str = ""
    """The session, where there is one: who has read foreign text in it only proposes for the rest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Work for the clients of one server."""

    hub: Hub
    identify: Callable[[], Caller]
    """Tells who sent the request that is being answered."""
    threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_THREADS))

    async def work(self, do: Callable[[Open], Result]) -> Result:
        """Do something with vaults as the client sees them; nothing else waits for it.

        A cancelled request is left at once; a write that has begun is brought to its end.
        """
        caller = self.identify()
        return await anyio.to_thread.run_sync(
            do, partial(self._open, caller), abandon_on_cancel=True, limiter=self.threads
        )

    def _open(self, caller: Caller, vault: str) -> Context:
        context = self.hub.context(client=caller.client, vault=vault)
        return replace(context, asked=Asked(run=caller.run)) if caller.run else context
