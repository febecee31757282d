"""Scopes of a task: the notes that a model reads and edits, and the scout's tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue, Record, is_object, is_sequence

EditableScope = Literal["current", "linked", "context"]
"""The open note; that note and those that it links with; every note that the model was shown."""
Ability = Literal["add", "delete", "create", "navigate"]
"""Insert lines; replace and delete them; create notes; open notes for the person."""

EDITABLE_SCOPES: Final[tuple[EditableScope, ...]] = get_args(EditableScope)
ABILITIES: Final[tuple[Ability, ...]] = get_args(Ability)
MAX_LINK_DEPTH: Final = 3
DEFAULT_LINK_DEPTH: Final = 2
_SCOPE_FIELDS: Final[Mapping[str, str]] = {
    "link_depth": "link_depth",
    "linkDepth": "link_depth",
    "include_same_folder": "include_same_folder",
    "includeSameFolder": "include_same_folder",
    "excluded_folders": "excluded_folders",
    "excludedFolders": "excluded_folders",
}
_ABILITY_SWITCHES: Final[Mapping[str, Ability]] = {
    "canAdd": "add",
    "canDelete": "delete",
    "canCreate": "create",
    "canNavigate": "navigate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextScopeConfig(Record):
    """The notes that accompany the open one.

    ``ContextScopeConfig(link_depth=1)`` adds the notes that it links to and those that link to it.

    Raises:
        BadInput: The depth is out of its range.
    """

    link_depth: int = DEFAULT_LINK_DEPTH
    """How many links are followed in both directions, 0 to 3; 0 is the open note alone."""
    include_same_folder: bool = False
    """Whether the notes of its folder are added."""
    excluded_folders: tuple[str, ...] = ()
    """Folders whose notes are left out; links through them aren't followed either."""

    def __post_init__(self) -> None:
        """Check the depth's range."""
        if not 0 <= self.link_depth <= MAX_LINK_DEPTH:
            raise BadInput(
                f"the link depth is {self.link_depth}", hint=f"give 0 to {MAX_LINK_DEPTH}", code="link_depth"
            )


_LEGACY_SCOPES: Final[Mapping[str, ContextScopeConfig]] = {
    "current": ContextScopeConfig(link_depth=0),
    "linked": ContextScopeConfig(link_depth=1),
    "folder": ContextScopeConfig(link_depth=0, include_same_folder=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRules(Record):
    """What a model may do, and to which notes."""

    editable: EditableScope = "context"
    can: frozenset[Ability] = field(default_factory=lambda: frozenset(ABILITIES))

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        return {"editable": self.editable, "can": [one for one in ABILITIES if one in self.can]}


def read_scope(value: object) -> ContextScopeConfig:
    """Read a context scope: an object, its JSON in either spelling of the names, or a legacy name.

    ``"folder"`` is depth 0 with the same folder; ``{"linkDepth": 1}`` is depth 1.

    Raises:
        BadInput: It is none of these.
    """
    if isinstance(value, ContextScopeConfig):
        return value
    if isinstance(value, str):
        if value not in _LEGACY_SCOPES:
            raise BadInput(
                f"there is no context scope '{value}'", hint=f"old names: {', '.join(_LEGACY_SCOPES)}; or give a depth"
            )
        return _LEGACY_SCOPES[value]
    if not is_object(value):
        raise BadInput("a context scope is an object", hint='such as {"link_depth": 2, "include_same_folder": false}')
    if unknown := [name for name in value if name not in _SCOPE_FIELDS]:
        raise BadInput(
            f"a context scope has no '{unknown[0]}'", hint="link_depth, include_same_folder, excluded_folders"
        )
    fields = {_SCOPE_FIELDS[name]: each for name, each in value.items()}
    depth, folder = fields.get("link_depth", DEFAULT_LINK_DEPTH), fields.get("include_same_folder", False)
    folders = fields.get("excluded_folders", ())
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise BadInput("link_depth isn't a whole number", hint=f"give 0 to {MAX_LINK_DEPTH}", code="link_depth")
    if not isinstance(folder, bool) or not is_sequence(folders):
        raise BadInput("include_same_folder is true or false, and excluded_folders a list")
    names = tuple(map(str, folders))
    return ContextScopeConfig(link_depth=depth, include_same_folder=folder, excluded_folders=names)


def read_editable_scope(value: str) -> EditableScope:
    """Check the name of an editable scope.

    Raises:
        BadInput: There is no scope of that name.
    """
    if value not in EDITABLE_SCOPES:
        raise BadInput(f"there is no editable scope '{value}'", hint=f"give {', '.join(EDITABLE_SCOPES)}")
    return value


def read_abilities(value: object) -> frozenset[Ability]:
    """Read a model's abilities: a list of words, or switches such as ``canAdd``, which are on where left out.

    Raises:
        BadInput: There is no such ability.
    """
    if is_object(value):
        if unknown := value.keys() - _ABILITY_SWITCHES.keys():
            raise BadInput(f"there is no capability '{min(unknown)}'", hint=f"give {', '.join(_ABILITY_SWITCHES)}")
        return frozenset(word for name, word in _ABILITY_SWITCHES.items() if value.get(name, True))
    words = [str(word) for word in value] if is_sequence(value) else [str(value)]
    if unknown := sorted(word for word in words if word not in ABILITIES):
        raise BadInput(f"there is no capability '{unknown[0]}'", hint=f"give {', '.join(ABILITIES)}")
    return frozenset(ability for ability in ABILITIES if ability in words)


UPDATE_SELECTION: Final = "update_selection"
ASK_USER: Final = "ask_user"
OPTIONAL_SCOUT_TOOLS: Final = (
    "list_notes",
    "search_keyword",
    "search_semantic",
    "search_task_relevant",
    "fetch_note",
    "get_links",
    "get_links_recursive",
    "view_all_notes",
    "explore_vault",
    "list_all_tags",
    ASK_USER,
)
"""The tools that can be switched off."""
SCOUT_TOOLS: Final = (UPDATE_SELECTION, *OPTIONAL_SCOUT_TOOLS)
