"""The open vaults of a server, with one sandbox for their scripts."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from knapper.config import declarations, loading
from knapper.errors import BadInput, KnapError, NotFound, SetupError
from knapper.system import private
from knapper.tools.context import ScriptAccess, ScriptLimits, ToolSignature, page_places
from knapper.vault import access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from knapper.agents.model.usage import Meter, SpendingLimits
    from knapper.app.tables import AgentRequest
    from knapper.app.vault import OpenedVault
    from knapper.changes.writer import SubmitOptions, Writer
    from knapper.codemode.sandbox.pool import WorkerPool
    from knapper.config import ClientSettings, Settings, Vault
    from knapper.tools.context import Context, Rights
    from knapper.tools.registry import ToolTable
    from knapper.tools.shapes import Answer


_SUCCESS_STATUSES: Final = range(200, 300)
_EXCLUDED_TOOLS: Final = frozenset({"run_script", "find_tool", "call_tool"})


class ScriptRuntime:
    """One sandbox for all vaults and clients; safe to use from any thread."""

    def __init__(self, settings: Settings, table: Callable[[], ToolTable]) -> None:
        """Store the configuration; nothing is opened yet.

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
                script_settings = self._settings.scripts
                limits = ScriptLimits(
                    timeout_s=script_settings.timeout_s,
                    memory_mb=script_settings.memory_mb,
                    result_bytes=script_settings.result_kb * 1_000,
                )
                self._sandbox = WorkerPool(
                    self._settings.state_dir / private.SANDBOX_NAME,
                    limits,
                    workers=script_settings.workers,
                    walls_required=script_settings.walls == "required",
                )
            return self._sandbox

    def with_scripting(
        self,
        context: Context,
        open_vault: Callable[[str], Context],
        *,
        roots: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> Context:
        """Return a context that can run scripts.

        Args:
            context: The vault, as the client sees it.
            open_vault: Opens another vault for the same client.
            roots: Folders that scripts may read, beyond those of the configuration.
            hosts: Hosts that they may get pages from, beyond those of the configuration.

        Raises:
            NotFound: A folder isn't there.
            SetupError: A host is none.
        """
        script_settings = self._settings.scripts
        allowed_hosts = (*script_settings.net_allow, *hosts)
        folders: list[Path] = []
        for raw in (*script_settings.fs_read, *roots):
            try:
                folder = Path(raw).expanduser().resolve(strict=True)
            except (OSError, RuntimeError):
                raise NotFound(f"there is no folder '{raw}' that scripts could read", hint="check the path") from None
            if not folder.is_dir():
                raise BadInput(f"'{raw}' is no folder", hint="name a folder, and scripts read the files below it")
            folders.append(folder)
        scripting = ScriptAccess(
            roots=tuple(folders),
            http_get=_make_http_get(allowed_hosts) if allowed_hosts else None,
            hosts=allowed_hosts,
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
                for row in self._table().specs
                if row.effect == "read" and not row.open_world and row.name not in _EXCLUDED_TOOLS
            ]
        return self._signatures

    def close(self) -> None:
        """Stop the workers."""
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.close()
                self._sandbox = None


def prepare_sandbox(settings: Settings) -> bool:
    """Start compiling the sandbox's machine code in the background, unless it is compiled already.

    Returns:
        Whether that was started; it continues after this process ends.
    """
    from knapper.codemode.sandbox.machine_code import MachineCode  # noqa: PLC0415 - only a person's first index needs it

    return MachineCode(folder=settings.state_dir / private.SANDBOX_NAME).compile_in_background() is not None


def _make_http_get(hosts: Sequence[str]) -> Callable[[str], str]:
    from knapper.net.guard import Guard, parse_hosts  # noqa: PLC0415 - only scripts that fetch need it

    _ = parse_hosts(hosts)
    guard = Guard()

    def get(url: str) -> str:
        answer = guard.get(url, allowed_hosts=hosts)
        if answer.status not in _SUCCESS_STATUSES:
            raise NotFound(f"the server answers with status {answer.status}", code="bad_status")
        try:
            return answer.body.decode(answer.charset or "utf-8", errors="replace")
        except LookupError:
            return answer.body.decode(errors="replace")

    return get


AGENT_CLIENT: Final = "agent"
"""Whose policy holds for what a model does."""


def local_now() -> datetime:
    """Return the local time."""
    return datetime.now().astimezone()


def narrow_context(context: Context, asker: ClientSettings, asker_run: str = "") -> Context:
    """Return a vault as an agent that works for a client sees it.

    Args:
        context: The vault as the agent sees it by its own rules.
        asker: The client, whose rules hold too.
        asker_run: The session or connection in which it hears of the answer; empty for none.

    Raises:
        NotFound: The client may not open this vault.
        SetupError: The lists of what both may see, or write, can't hold at once.
    """
    if not asker.may_open(context.vault):
        raise NotFound(f"there is no vault '{context.vault}'", hint="name one that you may open", code="no_vault")
    view = context.view.with_policy(
        access.join_policy(context.view.policy, asker.name, read=asker.read, hidden=asker.hidden)
    )

    def rights() -> Rights:
        from knapper.changes.proposals.taint import Reader  # noqa: PLC0415 - only who writes or has read needs it

        own = context.rights
        reader = Reader(client=asker.name, run=asker_run)
        taints = own.taints if asker.grants.is_person else own.taints.shared_with(reader)
        return replace(own, grants=access.join_grants(own.grants, asker.grants), taints=taints)

    def writer() -> Writer:
        own = context.open_writer()
        return replace(own, context=replace(own.context, view=view))

    def other(name: str) -> Context:
        return narrow_context(context.scripting.open_vault(name), asker, asker_run)

    scripting = replace(context.scripting, open_vault=other)
    vaults = tuple(name for name in context.vaults if asker.may_open(name))
    return replace(context, view=view, vaults=vaults, open_writer=writer, open_rights=rights, scripting=scripting)


if TYPE_CHECKING:
    Offer = Callable[["Hub", Context, AgentRequest], Answer]
    """Does by a hub's vaults what a client asks the agents' own tools for."""


class Hub(contextlib.AbstractContextManager["Hub", None]):
    """The vaults of a server, for any of its clients.

    Safe to use from any thread. A vault is opened on first use.
    """

    def __init__(
        self,
        settings: Settings,
        find_offer: Callable[[], Offer] | None = None,
        *,
        only: bool = False,
        client: str = "",
        reads_only: bool = False,
    ) -> None:
        """Prepare the vaults of the configuration.

        Args:
            settings: What the configuration says.
            find_offer: Imports what carries out calls of the agents' own tools, at the first one; None if nothing can.
            only: Leave out all vaults but the chosen one.
            client: The only client of this hub: vaults that it may not open are left out.
            reads_only: Leave changes that were cut short to another process, such as the one that began this.

        Raises:
            SetupError: There is no vault, or the one that is named is unknown, or the client may open none.
        """
        vaults = () if only else settings.vaults
        # Another one mustn't take the place of a vault that is named: while its folder is missing, its calls fail.
        first = settings.usual_vault if vaults else settings.vault
        if first is not None:
            vaults = (first, *(vault for vault in vaults if vault.path != first.path))
        if client:
            vaults = tuple(vault for vault in vaults if settings.client(client).may_open(vault.name))
            if not vaults:
                raise SetupError(
                    f"the client '{client}' may open none of these vaults",
                    hint=f"the owner says which in [clients.{client}] in the configuration file",
                )
        self.settings = settings
        self.page_address = ""
        """Of the server that serves the vaults; empty where none does."""
        self._find_offer = find_offer
        self._offer: Offer | None = None
        self._reads_only = reads_only
        self._vaults = {vault.name: vault for vault in reversed(vaults)}
        self._names = tuple(reversed(self._vaults))
        self._opened: dict[str, OpenedVault] = {}
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._table: ToolTable | None = None
        self._scripts = ScriptRuntime(settings, lambda: self.table)
        self._stack.callback(self._scripts.close)

    @property
    def vaults(self) -> Sequence[str]:
        """Return the names of the vaults; the first is the default."""
        return self._names

    @property
    def vault_folders(self) -> Sequence[Vault]:
        """Return the vaults as they are configured, in the same order; none is opened for that."""
        return tuple(self._vaults[name] for name in self._names)

    def names_for(self, client: str) -> Sequence[str]:
        """Return the names of the vaults that a client may open; the first is its default."""
        rules = self.settings.client(client)
        return tuple(name for name in self._names if rules.may_open(name))

    def name_for(self, client: str, vault: str = "") -> str:
        """Return the name of the vault that a client means.

        Args:
            client: Who asks.
            vault: What it says; empty for its default.

        Raises:
            NotFound: There is no vault of that name, or none that this client may open; both sound the same.
        """
        names = self.names_for(client)
        name = vault or next(iter(names), "")
        if name not in names:
            raise _missing_vault(name, names)
        return name

    @property
    def table(self) -> ToolTable:
        """Return the tools of all layers."""
        if self._table is None:
            from knapper.app import tables  # noqa: PLC0415 - schemas are made only where tools are called by name
            from knapper.app.tables import AgentTools  # noqa: PLC0415 - as below

            find_offer, offers = self._find_offer, AgentTools()
            if find_offer is not None:

                def ask(context: Context, asked: AgentRequest) -> Answer:
                    if self._offer is None:
                        self._offer = find_offer()
                    return self._offer(self, context, asked)

                offers = AgentTools(ask)
            self._table = tables.build_table(self._names, offers)
        return self._table

    def open(self, vault: str = "") -> OpenedVault:
        """Return a vault, opening it on first use.

        Args:
            vault: Its name; empty for the first.

        Raises:
            NotFound: There is no vault of that name.
            SetupError: Its folder isn't there (code ``vault_missing``), or its state folder lies inside it.
            StorageError: Its index can't be opened.
        """
        name = vault or self._names[0]
        vault_config = self._vaults.get(name)
        if vault_config is None:
            raise _missing_vault(name, self._names)
        from knapper.app.vault import OpenedVault  # noqa: PLC0415 - a handshake needn't pay for the index's libraries

        with self._lock:
            opened = self._opened.get(name)
            if opened is None:
                if isinstance(missing := loading.check_vault_folder(vault_config), SetupError):
                    raise missing
                opened = self._opened[name] = OpenedVault(self.settings, vault_config, reads_only=self._reads_only)
                self._stack.callback(opened.close)
        return opened

    def context(self, *, client: str, vault: str = "", submit_options: SubmitOptions | None = None) -> Context:
        """Return a vault as *client* sees it; closing that closes nothing.

        Args:
            client: The client whose policy applies.
            vault: Its name; empty for the first that the client may open.
            submit_options: How changes are submitted.

        Raises:
            KnapError: As for `open`.
        """
        context = self.open(self.name_for(client, vault)).context(client, submit_options=submit_options)
        context = replace(context, vaults=tuple(self.names_for(client)))
        if self.page_address:
            page = page_places(self.page_address, context.vault if len(self._names) > 1 else "")
            context = replace(context, review=replace(context.review, page=page))
        try:
            return self._scripts.with_scripting(
                context, lambda name: self.context(client=client, vault=name, submit_options=submit_options)
            )
        except KnapError as error:  # a folder for scripts that is gone is no reason to refuse a note
            failure = error

            def fail() -> NoReturn:
                raise failure

            return replace(context, open_sandbox=fail)

    def open_as_agent(self, vault: str, run_id: str, clients: Iterable[str], asker_run: str = "") -> Context:
        """Return a vault as the agent sees it in a run or a turn.

        Args:
            vault: The vault's name.
            run_id: The run's, or the turn's.
            clients: For whom the agent acts; empty for nobody but itself.
            asker_run: The session or connection in which they hear of the answer; empty for none.

        Raises:
            NotFound: One of them may not open this vault.
            SetupError: The rules of all can't be combined.
        """
        from knapper.changes.writer import SubmitOptions  # noqa: PLC0415 - a handshake needn't pay for it

        context = self.context(client=AGENT_CLIENT, vault=vault, submit_options=SubmitOptions(run=run_id))
        for name in dict.fromkeys(clients):
            context = narrow_context(context, self.settings.client(name), asker_run)
        return context

    def check_can_act(self, vault: str, client: str) -> None:
        """Check that an agent can act for a client in a vault, before any work starts.

        Raises:
            SetupError: The rules of both can't be combined.
        """
        _ = self.open_as_agent(vault, "", (client,))
        _ = access.join_grants(self.settings.client(AGENT_CLIENT).grants, self.settings.client(client).grants)

    def covers_agent_view(self, person: str, other: str, vault: str) -> bool:
        """Return whether a person may see all that an agent working for another client sees in a vault."""
        try:
            person_policy = self.context(client=person, vault=vault).view.policy
            return access.policy_covers(person_policy, self.open_as_agent(vault, "", (other,)).view.policy)
        # By now one of them may not open it, or the rules can't be joined with the agent's.
        except (NotFound, SetupError):
            return False

    def open_meter(self, vault: str, *, has_turns: bool = False) -> Meter:
        """Open the account of what models use in a vault, with the limits as they are configured at each request.

        Args:
            vault: The vault's name.
            has_turns: Whether each use is a chat turn, which has a limit of its own.

        Raises:
            StorageError: The account can't be opened.
        """
        from knapper.agents.model import usage  # noqa: PLC0415 - 2 s that only who asks a model should pay

        def limits() -> SpendingLimits:
            own = self.settings.model
            return usage.SpendingLimits(
                turn_tokens=own.turn_tokens if has_turns else 0,
                run_tokens=own.run_tokens,
                day_tokens=own.day_tokens,
                day_cents=own.day_cents,
            )

        return usage.open_meter(self.open(vault).folder, limits, local_now)

    def __exit__(self, *_: object) -> None:
        """Close all vaults."""
        self.close()

    def close(self) -> None:
        """Close all vaults."""
        with self._lock:
            self._stack.close()
            self._opened.clear()


def _missing_vault(name: str, names: Sequence[str]) -> NotFound:
    hint = declarations.did_you_mean(name, names, f"there are: {', '.join(names)}") if names else "ask the owner"
    return NotFound(f"there is no vault '{name}'", hint=hint, code="no_vault")
