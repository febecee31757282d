"""List the tasks, each with what has to hold afterwards, and with what a perfect model would say."""

from dataclasses import dataclass, field
from typing import Final

from knapper.agents.presets import AgentToggles
from knapper.agents.scopes import ContextScopeConfig, EditRules
from knapper.agents.suite.checks import Check

Edit = tuple[str, str, str]
"""File, position and text."""
SCOUTING: Final = AgentToggles(scout=True)
LOOKING: Final = AgentToggles(scout=True, task=False)
ALONE: Final = ContextScopeConfig(link_depth=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perfect:
    """Say what a perfect model would."""

    summary: str = "Done."
    edits: tuple[Edit, ...] = ()
    selects: tuple[str, ...] = ()
    """What it chooses where it explores."""
    asks: str = ""
    """What it asks instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Hold one task."""

    id: str
    text: str
    perfect: Perfect
    checks: tuple[Check, ...]
    current: str = ""
    toggles: AgentToggles = field(default_factory=AgentToggles)
    scope: ContextScopeConfig = field(default_factory=ContextScopeConfig)
    rules: EditRules = field(default_factory=EditRules)
    added: tuple[str, ...] = ()
