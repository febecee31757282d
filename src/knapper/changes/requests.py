"""Requests: what a caller asks of a vault, one change each.

Paths are as the caller wrote them. ``base`` is the hash of the file that the caller saw, or empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class EditText:
    """Replacement of text that occurs exactly ``count`` times."""

    path: str
    old: str
    new: str
    count: int = 1
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPosition:
    """Change at a position such as ``after:## Heading`` or ``replace:3-5``; see `positions.parse_position`."""

    path: str
    position: str
    content: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSection:
    """Change of a heading's section; see `positions.find_section`."""

    path: str
    heading: str
    content: str
    how: Literal["replace", "replace_body", "append", "prepend"]
    strict: bool = False
    """The heading has to be written with its ``#`` signs."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddText:
    """Text for a note's start, after its properties, or for its end."""

    path: str
    content: str
    where: Literal["start", "end"]
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditProperty:
    """Change of one property: set, remove, append or rename."""

    path: str
    word: Literal["set", "remove", "append", "rename"]
    name: str
    value: JSONValue = ""
    """Text is read as a person types it; any other value keeps its type. For ``rename``, the new name."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Replacement of a whole note; ``base`` has to be the hash of the replaced text."""

    path: str
    content: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """New note; nothing is ever overwritten."""

    path: str
    content: str = ""
    properties: Mapping[str, JSONValue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTag:
    """New name for a tag and those below it, in some notes or in all that have it."""

    old: str
    new: str
    paths: tuple[str, ...] = ()
    """Empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameHeading:
    """New title for a heading, with the links that lead to it."""

    path: str
    heading: str
    title: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameBlock:
    """New id for a block, with the links that lead to it."""

    path: str
    old: str
    new: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """New path for a note, an attachment or a folder; links follow."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trash:
    """Move of a file to the trash."""

    path: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Move of a file out of the vault's trash, to where it was or to another path."""

    path: str
    """Below ``.trash/``, with or without that."""
    destination: str = ""


TextRequest: TypeAlias = EditText | AtPosition | EditSection | AddText | EditProperty | Rewrite
"""Requests that change one note's text: several for one note are applied to one snapshot."""
Request: TypeAlias = TextRequest | Create | RenameTag | RenameHeading | RenameBlock | Move | Trash | Restore


def subject(request: Request) -> str:
    """Return the path that a request is about, as its caller wrote it; empty for a tag, which may be in many notes."""
    match request:
        case Move():
            return request.source
        case RenameTag():
            return ""
        case _:
            return request.path
