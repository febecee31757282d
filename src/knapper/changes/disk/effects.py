"""Name what one transaction does to files.

``[Rename(source=a, target=b), Write(path=b, content=…, base=…)]`` is read in order: the write finds *b* where the
rename put it. Hashes are ``sha256:`` and hex; ``stat:`` and a size with a time where the file is too large to read.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from knapper.vault.paths import NotePath

TrashPlace = Literal["vault", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Put content at a path: over the file whose hash is *base*, or where no file is."""

    path: NotePath
    content: bytes
    base: str | None = None
    """Hash of the file that is replaced; None where none may exist (parent folders are made)."""
    mode: int | None = None
    """Permission bits of a new file; None for the system's default. A replaced file keeps its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Give a file, or a folder with all it holds, another path; never over an existing one."""

    source: NotePath
    target: NotePath
    base: str | None = None
    """Hash that the file must have; None for any, and for folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trash:
    """Move a file or folder to the trash: ``.trash/`` in the vault, or the system's."""

    path: NotePath
    base: str | None = None
    where: TrashPlace = "vault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Take a file away and keep its content in the journal only; how undo takes back a new file."""

    path: NotePath
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeFolder:
    """Make a folder and those above it; nothing happens where it exists."""

    path: NotePath
    mode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFolder:
    """Remove an empty folder."""

    path: NotePath
    keep_filled: bool = False
    """True leaves a missing folder, or one that holds something, as it is; False is a conflict then."""


Effect: TypeAlias = Write | Rename | Trash | Remove | MakeFolder | RemoveFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Say who makes a change, and why."""

    client: str
    run: str = ""
    """The run that the change belongs to; empty outside runs."""
    reason: str = ""
    proposal: str = ""
    """The proposal that was accepted; empty where none was."""
    undoes: tuple[str, ...] = ()
    """Changes that this one takes back."""
