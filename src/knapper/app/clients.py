"""What clients have in a vault: presets of tasks, sessions, and restrictions that a person lifts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from knapper.agents import stages, work_store
from knapper.agents.pipeline import records, scopes
from knapper.agents.pipeline.records import TaskLimits
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.pipeline.store import AgentToggles, PausedRuns, Preset, Presets
from knapper.agents.sessions.store import SessionStore
from knapper.agents.stages import Stages
from knapper.app.hub import local_now
from knapper.changes.disk import repair
from knapper.errors import BadInput, KnapError, NotFound, RefusedError, SetupError
from knapper.tools import answers
from knapper.tools.context import missing_folders
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from knapper.agents.pipeline.store import PausedRun
    from knapper.agents.sessions.store import Session
    from knapper.agents.work_store import WorkStore
    from knapper.app.hub import Hub
    from knapper.changes.proposals.taint import Taint
    from knapper.config import ClientSettings, Settings
    from knapper.tools.context import Context
    from knapper.vault.access import Grants
    from knapper.vault.view import View


@contextmanager
def open_vault_presets(hub: Hub, vault: str = "") -> Generator[Presets]:
    """Open the presets of a vault for a while.

    Args:
        hub: Holds the vaults.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The presets can't be opened.
    """
    work = work_store.open_work(hub.open(vault).folder)
    try:
        yield Presets(work)
    finally:
        work.shut()


def default_preset(preset_store: Presets, settings: Settings, name: str = "") -> Preset:
    """Return the defaults of a task.

    Args:
        preset_store: The vault's presets.
        settings: What the owner configured.
        name: The name of a preset; empty for the configuration with the agents used last.

    Raises:
        NotFound: There is no such preset.
        SetupError: All agents are switched off.
    """
    if name:
        return preset_store.find(name)
    base_preset = configured_preset(settings)
    return replace(base_preset, toggles=preset_store.toggles(base_preset.toggles))


def configured_preset(settings: Settings) -> Preset:
    """Return the configured preset.

    Raises:
        SetupError: All agents are switched off.
    """
    agent_settings = settings.agents
    if not (agent_settings.scout_on or agent_settings.web_on or agent_settings.task_on):
        hint = "set agents.task, agents.scout or agents.web to on"
        raise SetupError("no agent is switched on", hint=hint, code="no_agent")
    return Preset(
        name="",
        scope=ContextScopeConfig(
            link_depth=agent_settings.link_depth,
            include_same_folder=agent_settings.same_folder,
            excluded_folders=agent_settings.excluded_folders,
        ),
        rules=EditRules(editable=agent_settings.editable, can=scopes.read_abilities(agent_settings.can)),
        toggles=AgentToggles(scout=agent_settings.scout_on, web=agent_settings.web_on, task=agent_settings.task_on),
    )


_PROBE_NOTE = "x.md"
"""A note that might lie in a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetOverrides:
    """The choices of a request; None keeps the default."""

    scout: bool | None = None
    web: bool | None = None
    task: bool | None = None
    link_depth: int | None = None
    same_folder: bool | None = None
    excluded_folders: Sequence[str] | None = None
    editable: str | None = None
    can: Sequence[str] | None = None
    added: Sequence[str] = ()
    """Notes that come beside the usual ones."""

    def apply_to(self, base: Preset) -> Preset:
        """Return a preset with these choices applied.

        Raises:
            BadInput: No agent would work, or a value is out of its range.
        """
        scope, rules = base.scope, base.rules
        return replace(
            base,
            toggles=replace(base.toggles, **records.set_fields(self, "scout", "web", "task")),
            scope=replace(
                scope,
                include_same_folder=scope.include_same_folder if self.same_folder is None else self.same_folder,
                excluded_folders=tuple(
                    scope.excluded_folders if self.excluded_folders is None else self.excluded_folders
                ),
                **records.set_fields(self, "link_depth"),
            ),
            rules=EditRules(
                editable=rules.editable if self.editable is None else scopes.read_editable_scope(self.editable),
                can=rules.can if self.can is None else scopes.read_abilities(list(self.can)),
            ),
            added=(*base.added, *self.added),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrder:
    """A client's task with its choices."""

    task: str
    note: str = ""
    session_id: str = ""
    preset: str = ""
    choice: PresetOverrides = PresetOverrides()
    token_limit: int | None = None
    chat_history_length: int | None = None
    orchestrate: bool | None = None
    debug: bool = False
    """Whether the models' conversations are told."""
    limits: TaskLimits = field(default_factory=TaskLimits)


def restrict_to_visible(preset: Preset, view: View) -> Preset:
    """Return a preset as a client may see it: without the notes and folders that are hidden from it."""
    scope = preset.scope
    excluded: list[str] = []
    for raw in scope.excluded_folders:
        folder = raw.strip().strip("/")
        if folder and is_visible(view, folder) and is_visible(view, NotePath(f"{folder}/{_PROBE_NOTE}")):
            excluded.append(raw)
    return replace(
        preset,
        scope=replace(scope, excluded_folders=tuple(excluded)),
        added=tuple(added_path for added_path in preset.added if is_visible(view, added_path)),
    )


def keep_hidden_parts(preset: Preset, stored: Preset, view: View) -> Preset:
    """Return a preset that a client changes, keeping the parts of the stored one that it can't see."""
    visible_preset = restrict_to_visible(stored, view)
    return replace(
        preset,
        scope=replace(
            preset.scope,
            excluded_folders=(
                *preset.scope.excluded_folders,
                *_difference(stored.scope.excluded_folders, visible_preset.scope.excluded_folders),
            ),
        ),
        added=(*preset.added, *_difference(stored.added, visible_preset.added)),
    )


def excluded_in_vain(context: Context, folders: Sequence[str]) -> list[str]:
    """Return a remark for each folder to exclude that the client doesn't see, with the nearest."""
    if folders:
        _ = context.freshen(meaning=False)  # the nearest are those that the index knows
    return list(missing_folders(context, folders))


def may_see_paused(run: PausedRun, client: ClientSettings) -> bool:
    """Return whether a client may see a waiting task: its own; a person from whom nothing is hidden may see any."""
    return run.client == client.name or (client.grants.is_person and not (client.hidden or client.read))


def list_paused(hub: Hub, client: str, work: WorkStore) -> list[PausedRun]:
    """List the tasks of a vault that wait for an answer and that a client may see, the latest first.

    Raises:
        StorageError: They can't be read.
    """
    return [run for run in PausedRuns(work, local_now).list() if may_see_paused(run, hub.settings.client(client))]


def restrict_to_grants(preset: Preset, grants: Grants) -> Preset:
    """Leave out what the client itself may not do to notes."""
    capabilities = {"navigate"} if grants.is_read_only else grants.capabilities
    rules = preset.rules
    return replace(
        preset, rules=replace(rules, can=frozenset(ability for ability in rules.can if ability in capabilities))
    )


def is_visible(view: View, raw: str) -> bool:
    """Return whether a client may know of a path; the disk isn't asked."""
    try:
        return view.visible(view.parse(raw))
    except KnapError:
        return False


def _difference(every: Iterable[str], shown: Iterable[str]) -> list[str]:
    shown_set = set(shown)
    return [item for item in every if item not in shown_set]


def list_restricted(context: Context) -> Sequence[Taint]:
    """List the restricted clients and runs: clients that call without a session first, then the newest.

    Raises:
        RefusedError: The client isn't a person.
    """
    rights = context.rights
    if not rights.grants.is_person:
        raise RefusedError(
            "only a person is shown who has read foreign text",
            hint="use `knap trust`, or the page",
            code="persons_only",
        )
    return sorted(rights.taints.entries(), key=lambda taint: bool(taint.run))


def trust(context: Context, *, client: str = "", run: str = "", everyone: bool = False) -> Sequence[Taint]:
    """Lift the restriction of a client, of one of its runs, or of all; proposals that were made stay as they are.

    Args:
        context: A vault, as the person sees it; what is lifted holds for all vaults.
        client: The client's name.
        run: Only this run or session of the client; empty for all of its own.
        everyone: Lift all restrictions.

    Returns:
        What was lifted.

    Raises:
        RefusedError: The client of the context isn't a person.
        NotFound: That client or run isn't restricted (code ``not_tainted``).
        BadInput: Nobody is named, or a client beside all.
    """
    if bool(client) == everyone:
        raise BadInput("it isn't clear who is to be trusted", hint="name one client, or all")
    restricted = list_restricted(context)
    rights = context.rights
    if everyone:
        rights.taints.clear_all(by=rights.grants)
        return restricted
    named = [taint for taint in restricted if taint.client == client and run in {"", taint.run}]
    if not named:
        clients = ", ".join(dict.fromkeys(taint.client for taint in restricted))
        hint = f"these are: {clients}" if clients else "no client is"
        raise NotFound(f"'{client}' isn't held to proposals", hint=hint, code="not_tainted")
    for taint in named:
        _ = rights.taints.clear(taint.client, taint.run, by=rights.grants)
    return named


class RestrictionRow(TypedDict):
    """Who only proposes because of what was read, as every surface shows it."""

    client: str
    run: str
    """The run, session or connection; empty for the client itself."""
    since: str
    until: str | None
    """When it ends by itself; null where it doesn't."""
    source: str
    """What was read first."""
    inherited: bool
    """Whether a restricted client only began it."""


def describe_restriction(taint: Taint) -> RestrictionRow:
    """Return a restriction in the shape that every surface shows."""
    return {
        "client": taint.client,
        "run": taint.run,
        "since": taint.at.isoformat(timespec="seconds"),
        "until": taint.until and taint.until.isoformat(timespec="seconds"),
        "source": taint.source,
        "inherited": taint.inherited,
    }


@contextmanager
def open_work(hub: Hub, vault: str = "") -> Generator[WorkStore]:
    """Open the sessions, turns and runs of a vault, of which a copy is made once a day.

    Args:
        hub: Holds the vaults.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: They can't be opened.
    """
    folder = hub.open(vault).folder
    work = work_store.open_work(folder)
    try:
        _ = repair.back_up_daily(folder, max_bytes=hub.settings.journal.backup_mb * 1_000_000)
        yield work
    finally:
        work.shut()


def open_sessions(hub: Hub, work: WorkStore, client: str = "") -> SessionStore:
    """Return a client's sessions, after dropping the old ones, and the oldest of too many.

    Args:
        hub: Holds the vaults.
        work: The vault's sessions.
        client: The client's name; empty for the agent of the person at the terminal.

    Raises:
        StorageError: They can't be read.
    """
    model_settings = hub.settings.model
    session_store = SessionStore(work, local_now, client)
    _ = session_store.prune(max_days=model_settings.session_days, max_bytes=model_settings.sessions_mb * 1_000_000)
    return session_store


def open_stages(hub: Hub) -> Stages:
    """Return the agents that a message may name: those that come with Knapper, and the owner's by the configuration."""
    settings = hub.settings
    vaults = tuple(dict.fromkeys(vault.path for vault in (*hub.vault_folders, *settings.vaults)))
    tool_names = frozenset(row.name for row in hub.table.specs)
    return Stages(folder=settings.config_file.parent / stages.OWN_FOLDER, vaults=vaults, tool_names=tool_names)


def list_sessions(
    stores: Mapping[str, SessionStore], *, limit: int, offset: int = 0, query: str = ""
) -> tuple[Sequence[tuple[str, Session]], int]:
    """List the sessions of several clients, the last used first, each with its client, and their total number.

    Args:
        stores: Their sessions, by the clients' names.
        limit: How many at most.
        offset: How many of the last used to skip.
        query: As `SessionStore.list` takes it.
    """
    rows: list[tuple[str, Session]] = []
    total = 0
    for client, kept in stores.items():
        sessions, number = kept.list(limit=limit + offset, query=query)
        rows += [(client, session) for session in sessions]
        total += number
    rows.sort(key=lambda row: (-row[1].updated.timestamp(), row[1].id))
    return rows[offset : offset + limit], total


def fork(
    hub: Hub, session_store: SessionStore, session_id: str, upto: int | None = None, *, client: str = ""
) -> Session:
    """Create a session that continues a copy of another one of the agent's, and has read what that has read.

    Args:
        hub: Holds the vault.
        session_store: The vault's sessions.
        session_id: The session to copy.
        upto: The last turn to copy; None for all.
        client: For whom the agent acts in it; empty for nobody but itself.

    Raises:
        NotFound: There is no such session.
    """
    context = hub.open_as_agent("", session_id, filter(None, (client,)))
    return session_store.fork(session_id, upto=upto, before_commit=answers.taint_copier(context, session_id))
