"""Read a vault's presets and apply a request's overrides to them; no model is opened."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from knapper.agents.pipeline import scopes, store
from knapper.agents.pipeline.records import TaskLimits
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.pipeline.store import AgentToggles, Preset
from knapper.errors import KnapError, SetupError
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from knapper.agents.pipeline.store import Presets
    from knapper.app.hub import Hub
    from knapper.config import Settings
    from knapper.vault.access import Grants
    from knapper.vault.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultPresets:
    """The presets of a vault, and the defaults without one."""

    presets: Presets
    settings: Settings

    def default(self, name: str = "") -> Preset:
        """Return the defaults of a task.

        Args:
            name: The name of a preset; empty for the configuration with the agents used last.

        Raises:
            NotFound: There is no such preset.
            SetupError: All agents are switched off.
        """
        return default_preset(self.presets, self.settings, name)


@contextmanager
def open_vault_presets(hub: Hub, vault: str = "") -> Generator[VaultPresets]:
    """Open the presets of a vault for a while.

    Args:
        hub: Holds the vaults.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The presets can't be opened.
    """
    preset_store = store.open_presets(hub.open(vault).folder)
    try:
        yield VaultPresets(presets=preset_store, settings=hub.settings)
    finally:
        preset_store.shut()


def default_preset(preset_store: Presets, settings: Settings, name: str = "") -> Preset:
    """Return the defaults of a task; see `VaultPresets.default`."""
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
        scope, rules, toggles = base.scope, base.rules, base.toggles
        return replace(
            base,
            toggles=AgentToggles(
                scout=toggles.scout if self.scout is None else self.scout,
                web=toggles.web if self.web is None else self.web,
                task=toggles.task if self.task is None else self.task,
            ),
            scope=ContextScopeConfig(
                link_depth=scope.link_depth if self.link_depth is None else self.link_depth,
                include_same_folder=scope.include_same_folder if self.same_folder is None else self.same_folder,
                excluded_folders=scope.excluded_folders
                if self.excluded_folders is None
                else tuple(self.excluded_folders),
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
    excluded_folders = tuple(folder for folder in scope.excluded_folders if _is_folder_visible(view, folder))
    return replace(
        preset,
        scope=replace(scope, excluded_folders=excluded_folders),
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


def _is_folder_visible(view: View, raw: str) -> bool:
    folder = raw.strip().strip("/")
    return bool(folder) and is_visible(view, folder) and is_visible(view, NotePath(f"{folder}/{_PROBE_NOTE}"))


def _difference(every: Iterable[str], shown: Iterable[str]) -> list[str]:
    shown_set = set(shown)
    return [item for item in every if item not in shown_set]
