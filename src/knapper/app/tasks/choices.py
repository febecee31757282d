"""Say how a task is to be done, where that isn't as usual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from knapper.agents.pipeline import scopes
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.agents.pipeline.store import AgentToggles, Preset
from knapper.errors import KnapError
from knapper.vault import paths
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from collections.abc import Iterable

    from knapper.vault.access import Grants
    from knapper.vault.view import View


_PROBE = "x.md"
"""A note that might lie in a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Hold what somebody says; None for what they leave as usual."""

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

    @property
    def switches(self) -> bool:
        """Tell whether a switch of an agent is said."""
        return not (self.scout is self.web is self.task is None)

    def applied(self, usual: Preset) -> Preset:
        """Give what a task is done with.

        Raises:
            BadInput: No agent would work, or a value is out of its range.
        """
        scope, rules, toggles = usual.scope, usual.rules, usual.toggles
        return replace(
            usual,
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
            added=(*usual.added, *self.added),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Hold what a client wants done."""

    task: str
    note: str = ""
    session_id: str = ""
    preset: str = ""
    choice: Choice = Choice()
    token_limit: int | None = None
    orchestrate: bool | None = None


def seen(preset: Preset, view: View) -> Preset:
    """Give a preset as a client may see it: without the notes and folders that are hidden from it."""
    scope = preset.scope
    walls = tuple(folder for folder in scope.excluded_folders if _shows_folder(view, folder))
    return replace(
        preset,
        scope=replace(scope, excluded_folders=walls),
        added=tuple(one for one in preset.added if shows(view, one)),
    )


def joined(preset: Preset, known: Preset, view: View) -> Preset:
    """Give a preset that a client changes, with what it can't see of the one that is known kept as it is."""
    shown = seen(known, view)
    return replace(
        preset,
        scope=replace(
            preset.scope,
            excluded_folders=(
                *preset.scope.excluded_folders,
                *_rest(known.scope.excluded_folders, shown.scope.excluded_folders),
            ),
        ),
        added=(*preset.added, *_rest(known.added, shown.added)),
    )


def allowed(preset: Preset, grants: Grants) -> Preset:
    """Leave out what the client itself may not do to notes."""
    own = {"navigate"} if grants.is_read_only else grants.capabilities
    rules = preset.rules
    return replace(preset, rules=replace(rules, can=frozenset(one for one in rules.can if one in own)))


def shows(view: View, raw: str) -> bool:
    """Tell whether a client may know of a path; the disk isn't asked."""
    try:
        return view.visible(paths.parse(raw, root=view.root))
    except KnapError:
        return False


def _shows_folder(view: View, raw: str) -> bool:
    folder = raw.strip().strip("/")
    return bool(folder) and shows(view, folder) and shows(view, NotePath(f"{folder}/{_PROBE}"))


def _rest(every: Iterable[str], shown: Iterable[str]) -> list[str]:
    known = set(shown)
    return [one for one in every if one not in known]
