"""Let contexts run scripts: the sandbox, and what the owner lets scripts use."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.errors import BadInput, NotFound
from knapper.tools.context import ScriptAccess, ScriptLimits, ToolSignature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from knapper.codemode.sandbox.pool import WorkerPool
    from knapper.config import Settings
    from knapper.tools.context import Context
    from knapper.tools.registry import ToolTable


FOLDER: Final = "sandbox"
"""Of machine code, in the state folder."""
_OK: Final = range(200, 300)
_NOT_IN_SCRIPTS: Final = frozenset({"run_script", "find_tool", "call_tool"})


class Scripts:
    """Hold one sandbox for all vaults and clients; any thread may use it."""

    def __init__(self, settings: Settings, table: Callable[[], ToolTable]) -> None:
        """Take what the configuration says.

        Args:
            settings: What the configuration says.
            table: Gives the tools of all layers.
        """
        self._settings = settings
        self._table = table
        self._lock = threading.Lock()
        self._sandbox: WorkerPool | None = None
        self._signatures: Sequence[ToolSignature] | None = None

    def sandbox(self) -> WorkerPool:
        """Open the sandbox, once."""
        from knapper.codemode.sandbox.pool import WorkerPool  # noqa: PLC0415 - only where scripts are run

        with self._lock:
            if self._sandbox is None:
                said = self._settings.scripts
                limits = ScriptLimits(
                    timeout_s=said.timeout_s, memory_mb=said.memory_mb, result_bytes=said.result_kb * 1_000
                )
                self._sandbox = WorkerPool(self._settings.state_dir / FOLDER, limits, workers=said.workers)
            return self._sandbox

    def allowed(
        self,
        context: Context,
        open_vault: Callable[[str], Context],
        *,
        roots: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> Context:
        """Let a context run scripts.

        Args:
            context: The vault, as the client sees it.
            open_vault: Opens another vault for the same client.
            roots: Folders that scripts may read, beyond those of the configuration.
            hosts: Hosts that they may get pages from, beyond those of the configuration.

        Raises:
            NotFound: A folder isn't there.
            SetupError: A host is none.
        """
        said = self._settings.scripts
        names = (*said.net_allow, *hosts)
        scripting = ScriptAccess(
            roots=tuple(_folder(root) for root in (*said.fs_read, *roots)),
            http_get=_getter(names) if names else None,
            hosts=names,
            open_vault=open_vault,
            tools=self.signatures,
            call=lambda own, name, arguments: self._table().call(
                name, arguments, lambda vault: own.scripting.open_vault(vault) if vault else own
            ),
        )
        return replace(context, open_sandbox=self.sandbox, scripting=scripting)

    def signatures(self) -> Sequence[ToolSignature]:
        """List the tools that scripts can call: those that only read, and only the vault."""
        if self._signatures is None:
            from knapper.tools import registry  # noqa: PLC0415 - schemas are made only where tools are called

            self._signatures = [
                ToolSignature(
                    name=row.name,
                    summary=registry.summarize(row),
                    parameters=registry.parameter_schema(row, brief=True),
                )
                for row in self._table().rows
                if row.effect == "read" and not row.open_world and row.name not in _NOT_IN_SCRIPTS
            ]
        return self._signatures

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.close()
                self._sandbox = None


def prepare(settings: Settings) -> bool:
    """Begin to make the sandbox's machine code in the background, where that was never done.

    Returns:
        Whether something was begun; it goes on when this process ends.
    """
    from knapper.codemode.sandbox.machine_code import MachineCode  # noqa: PLC0415 - only a person's first index needs it

    return MachineCode(folder=settings.state_dir / FOLDER).in_background() is not None


def _folder(raw: str) -> Path:
    try:
        folder = Path(raw).expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise NotFound(f"there is no folder '{raw}' that scripts could read", hint="check the path") from None
    if not folder.is_dir():
        raise BadInput(f"'{raw}' is no folder", hint="name a folder, and scripts read the files below it")
    return folder


def _getter(hosts: Sequence[str]) -> Callable[[str], str]:
    from knapper.net.guard import Guard, parse_hosts  # noqa: PLC0415 - only scripts that fetch need it

    _ = parse_hosts(hosts)
    guard = Guard()

    def get(url: str) -> str:
        answer = guard.get(url, allowed_hosts=hosts)
        if answer.status not in _OK:
            raise NotFound(f"the server answers with status {answer.status}", code="bad_status")
        try:
            return answer.body.decode(answer.charset or "utf-8", errors="replace")
        except LookupError:
            return answer.body.decode(errors="replace")

    return get
