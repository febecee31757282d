"""Open what a person has set for tasks of several agents, without a model to do one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from knapper.agents.pipeline import scopes, store
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.pipeline.store import AgentToggles, Preset
from knapper.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Generator

    from knapper.agents.pipeline.store import Presets
    from knapper.app.hub import Hub
    from knapper.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Hold the presets of a vault, and what holds without one."""

    kept: Presets
    settings: Settings

    def usual(self, name: str = "") -> Preset:
        """Give what a task is done with where nothing else is said.

        Args:
            name: Of a preset; empty for the configuration's choice, with the switches as they were last.

        Raises:
            NotFound: There is no such preset.
            SetupError: All agents are switched off.
        """
        return usual(self.kept, self.settings, name)


@contextmanager
def open_choices(hub: Hub, vault: str = "") -> Generator[Choices]:
    """Open the presets of a vault for a while.

    Args:
        hub: Holds the vaults.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The presets can't be opened.
    """
    kept = store.open_presets(hub.open(vault).folder)
    try:
        yield Choices(kept=kept, settings=hub.settings)
    finally:
        kept.shut()


def usual(kept: Presets, settings: Settings, name: str = "") -> Preset:
    """Give what a task is done with where nothing else is said; `Choices.usual` says more."""
    if name:
        return kept.find(name)
    own = configured(settings)
    return replace(own, toggles=kept.toggles(own.toggles))


def configured(settings: Settings) -> Preset:
    """Give what a task is done with by the configuration.

    Raises:
        SetupError: All agents are switched off.
    """
    own = settings.agents
    if not (own.scout_on or own.web_on or own.task_on):
        hint = "set agents.task, agents.scout or agents.web to on"
        raise SetupError("no agent is switched on", hint=hint, code="no_agent")
    return Preset(
        name="",
        scope=ContextScopeConfig(
            link_depth=own.link_depth, include_same_folder=own.same_folder, excluded_folders=own.excluded_folders
        ),
        rules=EditRules(editable=own.editable, can=scopes.read_abilities(own.can)),
        toggles=AgentToggles(scout=own.scout_on, web=own.web_on, task=own.task_on),
    )
