"""Name what a caller asks of a vault: each request is one thing to be done.

Paths are as the caller wrote them. ``base`` is the hash of the file that the caller saw, or empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class EditText:
    """Put new text in the place of old text that stands there so many times."""

    path: str
    old: str
    new: str
    count: int = 1
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPosition:
    """Change text at a position such as ``after:## Heading`` or ``replace:3-5``; see `positions`."""

    path: str
    position: str
    content: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSection:
    """Change what a heading owns; see `sections`."""

    path: str
    heading: str
    content: str
    how: Literal["replace", "replace_body", "append", "prepend"]
    strict: bool = False
    """The heading has to be written with its ``#`` signs."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddText:
    """Put text at a note's start, after its properties, or at its end."""

    path: str
    content: str
    where: Literal["start", "end"]
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditProperty:
    """Set, remove, append to or rename one property."""

    path: str
    word: Literal["set", "remove", "append", "rename"]
    name: str
    value: JSONValue = ""
    """Text is read as a person types it; any other value is written as just that type. The new name to rename."""
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Replace a whole note; the hash of what is replaced has to be given."""

    path: str
    content: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Make a new note; nothing is ever overwritten."""

    path: str
    content: str = ""
    properties: Mapping[str, JSONValue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTag:
    """Rename a tag, and those below it, in some notes or in all that have it."""

    old: str
    new: str
    paths: tuple[str, ...] = ()
    """Empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameHeading:
    """Rename a heading, and the links that lead to it."""

    path: str
    heading: str
    title: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameBlock:
    """Rename a block id, and the links that lead to it."""

    path: str
    old: str
    new: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Give a note, an attachment or a folder another path; links follow."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trash:
    """Put a file into the trash."""

    path: str
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Take a file out of the vault's trash, to where it was or to another path."""

    path: str
    """Below ``.trash/``, with or without that."""
    destination: str = ""


TextRequest: TypeAlias = EditText | AtPosition | EditSection | AddText | EditProperty | Rewrite
"""What changes one note's text, so that several of them go into one snapshot."""
Request: TypeAlias = TextRequest | Create | RenameTag | RenameHeading | RenameBlock | Move | Trash | Restore


def subject(request: Request) -> str:
    """Return which file a request is about, as its caller wrote it; empty where it is about no one file."""
    match request:
        case Move():
            return request.source
        case RenameTag():
            return ""
        case _:
            return request.path
