"""Limits that one task sets in place of the configured ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from knapper.agents.pipeline import scopes

if TYPE_CHECKING:
    from knapper.agents.pipeline.records import ResearchSettings, ScoutSettings
    from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Limits of one task; None leaves what is configured.

    ``TaskLimits(rounds=2)`` gives the scout two rounds and leaves all else.
    """

    rounds: int | None = None
    """Of the scout's tool calls."""
    notes: int | None = None
    """How many notes the scout may select."""
    linked_notes: int | None = None
    """How many notes go with the open one for links alone."""
    keyword_limit: int | None = None
    tools: tuple[str, ...] | None = None
    """The scout's optional tools that are switched on."""
    show_tags: bool | None = None
    timeout_s: int | None = None
    """How long the scout may take."""
    snippet_limit: int | None = None
    """How many results a search of the web gives."""
    fetch_limit: int | None = None
    """How many pages are read."""
    token_budget: int | None = None
    """How many tokens of pages are read."""
    auto_search: bool | None = None
    orchestrator_steps: int | None = None
    orchestrator_tokens: int | None = None
    """0 for no limit."""

    def for_scout(self, usual: ScoutSettings) -> ScoutSettings:
        """Return the scout's settings with these limits.

        Raises:
            BadInput: A number is out of its range, or there is no such tool.
        """
        tools = usual.tools if self.tools is None else frozenset({scopes.UPDATE_SELECTION, *self.tools})
        numbers = self._given("rounds", "notes", "keyword_limit", "show_tags", "timeout_s")
        return replace(usual, tools=tools, **numbers)

    def for_web(self, usual: ResearchSettings) -> ResearchSettings:
        """Return the web search's settings with these limits.

        Raises:
            BadInput: A number is out of its range.
        """
        return replace(usual, **self._given("snippet_limit", "fetch_limit", "token_budget", "auto_search"))

    def as_dict(self) -> dict[str, JSONValue]:
        """Return those that are set, by name."""
        given = self._given(*NAMES)
        return given if self.tools is None else {**given, "tools": [*self.tools]}

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}


NAMES = tuple(one.name for one in fields(TaskLimits))
"""Of all limits."""


def read_limits(data: Mapping[str, Any]) -> TaskLimits:
    """Read limits by their names; unknown ones are left out."""
    numbers: dict[str, Any] = {name: data.get(name) for name in NAMES if name != "tools"}
    tools = data.get("tools")
    return TaskLimits(tools=None if tools is None else tuple(map(str, tools)), **numbers)
