"""The work of MCP requests in threads, on behalf of the client that sent them."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from knapper.app import Hub
from knapper.errors import KnapError, StorageError
from knapper.index import database
from knapper.server import logs
from knapper.server.workers import WorkerThreads, WorkKind
from knapper.tools.context import Context
from knapper.tools.registry import VaultOpener

_DEFAULT_THREADS = 8

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Caller:
    """A client's identity, and what it may reach."""

    client: str
    """The client whose policy applies."""
    run: str = ""
    """The session, where there is one: who has read foreign text in it only proposes for the rest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSession:
    """The work for all clients of one server."""

    hub: Hub
    identify: Callable[[], Caller]
    """Tells who sent the request that is being answered."""
    threads: WorkerThreads = field(default_factory=lambda: WorkerThreads(_DEFAULT_THREADS))

    def vaults(self) -> Sequence[str]:
        """Return the names of the vaults that the client may open."""
        return self.hub.names_for(self.identify().client)

    async def run_blocking(self, do: Callable[[VaultOpener], Result], kind: WorkKind = "read") -> Result:
        """Run work with vaults as the client sees them, without blocking other requests.

        A cancelled request is abandoned at once; a write that has started is finished.

        Raises:
            KnapError: As the work says, too much waits already, the system refuses, or a file of the program's state is
                damaged; where these lie on the machine stands in the log alone, since a model hears of errors.
        """
        try:
            return await self._done(do, kind)
        except KnapError as error:
            redacted = logs.redaction_for_settings(self.hub.settings).redact_error(error)
            if (redacted.message, redacted.hint) == (error.message, error.hint):
                raise
            logs.REDACTION_LOG.warning("%s: %r", error.code, error.message)
            raise redacted from error

    async def _done(self, do: Callable[[VaultOpener], Result], kind: WorkKind) -> Result:
        try:
            return await self.threads.run(kind, partial(do, partial(self._open, self.identify())))
        except OSError as error:
            hint = "`knap doctor` checks folders, permissions and space"
            raise StorageError(f"the system refused: {error.strerror or type(error).__name__}", hint=hint) from error
        except sqlite3.DatabaseError as error:
            storage_error = database.as_storage_error(error)
            if storage_error is None:
                raise
            raise storage_error from error

    def _open(self, caller: Caller, vault: str) -> Context:
        context = self.hub.context(client=caller.client, vault=vault)
        if not caller.run:
            return context
        from knapper.changes.writer import SubmitOptions  # noqa: PLC0415 - the handshake needn't pay for it

        return replace(context, submit_options=SubmitOptions(run=caller.run))
