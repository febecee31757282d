"""Say which notes a model is given, which of them it may change, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

EditableScope = Literal["current", "linked", "context"]
"""The open note; that and the notes that it links with; every note that the model was given."""
Ability = Literal["add", "delete", "create", "navigate"]
"""Insert lines; replace and delete them; make notes; open notes for the person."""

EDITABLE: Final[tuple[EditableScope, ...]] = get_args(EditableScope)
ABILITIES: Final[tuple[Ability, ...]] = get_args(Ability)
DEEPEST: Final = 3
DEPTH: Final = 2
_NAMES: Final[Mapping[str, str]] = {
    "link_depth": "link_depth",
    "linkDepth": "link_depth",
    "include_same_folder": "include_same_folder",
    "includeSameFolder": "include_same_folder",
    "excluded_folders": "excluded_folders",
    "excludedFolders": "excluded_folders",
}
_SWITCHES: Final[Mapping[str, Ability]] = {
    "canAdd": "add",
    "canDelete": "delete",
    "canCreate": "create",
    "canNavigate": "navigate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextScopeConfig:
    """Say which notes go with the open one.

    ``ContextScopeConfig(link_depth=1)`` takes the notes that it links to, and those that link to it.

    Raises:
        BadInput: The depth is out of its range.
    """

    link_depth: int = DEPTH
    """How many links are followed, out and back, 0 to 3; 0 is the open note alone."""
    include_same_folder: bool = False
    """The notes of its folder go with it, too."""
    excluded_folders: tuple[str, ...] = ()
    """Walls: notes below these are left out, and no link is followed through them."""

    def __post_init__(self) -> None:
        """Refuse a depth that can't be one."""
        if not 0 <= self.link_depth <= DEEPEST:
            raise BadInput(f"the link depth is {self.link_depth}", hint=f"give 0 to {DEEPEST}", code="link_depth")

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        folders: list[JSONValue] = [*self.excluded_folders]
        return {
            "link_depth": self.link_depth,
            "include_same_folder": self.include_same_folder,
            "excluded_folders": folders,
        }


_OLD: Final[Mapping[str, ContextScopeConfig]] = {
    "current": ContextScopeConfig(link_depth=0),
    "linked": ContextScopeConfig(link_depth=1),
    "folder": ContextScopeConfig(link_depth=0, include_same_folder=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRules:
    """Say what a model may do to which notes."""

    editable: EditableScope = "context"
    can: frozenset[Ability] = field(default_factory=lambda: frozenset(ABILITIES))

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        can: list[JSONValue] = [one for one in ABILITIES if one in self.can]
        return {"editable": self.editable, "can": can}


def normalize(given: object) -> ContextScopeConfig:
    """Read a context scope: one of today, its JSON in either spelling of names, or an old name.

    ``"folder"`` is depth 0 with the same folder; ``{"linkDepth": 1}`` is depth 1.

    Raises:
        BadInput: It is none of these.
    """
    if isinstance(given, ContextScopeConfig):
        return given
    if isinstance(given, str):
        if given not in _OLD:
            raise BadInput(
                f"there is no context scope '{given}'", hint=f"old names: {', '.join(_OLD)}; or give a depth"
            )
        return _OLD[given]
    if not isinstance(given, Mapping):
        raise BadInput("a context scope is an object", hint='such as {"link_depth": 2, "include_same_folder": false}')
    return _read(cast("Mapping[str, object]", given))


def editable(given: str) -> EditableScope:
    """Read an editable scope.

    Raises:
        BadInput: There is none of that name.
    """
    if given not in EDITABLE:
        raise BadInput(f"there is no editable scope '{given}'", hint=f"give {', '.join(EDITABLE)}")
    return given


def abilities(given: object) -> frozenset[Ability]:
    """Read what a model may do: a list of words, or the switches ``canAdd`` and so on, which are on where left out.

    Raises:
        BadInput: A word is none of these.
    """
    if isinstance(given, Mapping):
        switches = cast("Mapping[str, object]", given)
        if unknown := switches.keys() - _SWITCHES.keys():
            raise BadInput(f"there is no capability '{min(unknown)}'", hint=f"give {', '.join(_SWITCHES)}")
        return frozenset(word for name, word in _SWITCHES.items() if switches.get(name, True))
    words = (
        {str(one) for one in cast("tuple[object, ...]", given)} if isinstance(given, list | tuple | set) else {given}
    )
    if unknown := sorted(str(word) for word in words if word not in ABILITIES):
        raise BadInput(f"there is no capability '{unknown[0]}'", hint=f"give {', '.join(ABILITIES)}")
    return frozenset(cast("set[Ability]", words))


def _read(given: Mapping[str, object]) -> ContextScopeConfig:
    if unknown := [name for name in given if name not in _NAMES]:
        raise BadInput(
            f"a context scope has no '{unknown[0]}'", hint="link_depth, include_same_folder, excluded_folders"
        )
    said = {_NAMES[name]: value for name, value in given.items()}
    depth, folder = said.get("link_depth", DEPTH), said.get("include_same_folder", False)
    folders = said.get("excluded_folders", ())
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise BadInput("link_depth is no whole number", hint=f"give 0 to {DEEPEST}", code="link_depth")
    if not isinstance(folder, bool) or not isinstance(folders, list | tuple):
        raise BadInput("include_same_folder is true or false, and excluded_folders a list")
    names = tuple(map(str, cast("tuple[object, ...]", folders)))
    return ContextScopeConfig(link_depth=depth, include_same_folder=folder, excluded_folders=names)
