"""Effects, the steps that carry them out, and the files as they would be after them."""

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from knapper.changes.disk.files import HASH_OPEN, FileKind, Files, Stamp
from knapper.errors import BadInput, ConflictError, RefusedError
from knapper.vault import paths
from knapper.vault.paths import NotePath

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without letters that look like digits."""

_TIME_DIGITS = 9
_RANDOM_DIGITS = 8


def make_id() -> str:
    """Return a new id: 9 digits of time in milliseconds, 8 random ones.

    ``0gpx4k2e9-7h2mq9xw``; ids of the same millisecond sort in any order.
    """
    moment = time.time_ns() // 1_000_000
    digits = (ALPHABET[moment >> shift & 31] for shift in range(5 * (_TIME_DIGITS - 1), -1, -5))
    return "".join(digits) + "-" + "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM_DIGITS))


TrashPlace = Literal["vault", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Write of content to a path: over the file whose hash is *base*, or to a new file."""

    path: NotePath
    content: bytes
    base: str | None = None
    """Hash of the file that is replaced; None for a new file, whose parent folders are made."""
    mode: int | None = None
    """Permission bits of a new file; None for the system's default. A replaced file keeps its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """New path for a file, or for a folder with all it holds; never over an existing one."""

    source: NotePath
    target: NotePath
    base: str | None = None
    """Hash that the file must have; None for any, and for folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToTrash:
    """Move of a file or folder to the trash: ``.trash/`` in the vault, or the system's."""

    path: NotePath
    base: str | None = None
    where: TrashPlace = "vault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Deletion of a file, whose content is kept in the journal only; undo takes back a new file by it."""

    path: NotePath
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeFolder:
    """New folder with those above it; nothing happens if it exists."""

    path: NotePath
    mode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFolder:
    """Removal of an empty folder."""

    path: NotePath
    keep_filled: bool = False
    """True skips a missing folder, or one that holds something; False makes it a conflict."""


Effect: TypeAlias = Write | Rename | MoveToTrash | Remove | MakeFolder | RemoveFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeMeta:
    """Who makes a change, and why."""

    client: str
    run: str = ""
    """The run that the change belongs to; empty outside runs."""
    reason: str = ""
    proposal: str = ""
    """The proposal that was accepted; empty where none was."""
    undoes: tuple[str, ...] = ()
    """Changes that this one takes back."""


StepKind = Literal["replace", "create", "remove", "move", "discard", "mkdir", "rmdir"]
NO_PATH = NotePath("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan, with enough to do it, to see after a kill whether it was done, and to take it back.

    A replaced note has the same ``source`` and ``target``, a new one no source, a removed one no target.
    """

    kind: StepKind
    source: NotePath = NO_PATH
    """Path in the vault before; empty where nothing was."""
    target: NotePath = NO_PATH
    """Path in the vault after; empty where nothing is."""
    source_at: str = ""
    """Path of the source below the vault's real folder, symbolic links followed."""
    target_at: str = ""
    before: str | None = None
    """Hash before; None for folders."""
    after: str | None = None
    mode: int | None = None
    """Permission bits of what was there before, or of the new file or folder."""
    temp: str = ""
    """The temp file's place below the vault's real folder; empty where none is needed."""
    inode: str = ""
    """Of what is moved; as text, since some systems' numbers are too large for an integer of SQLite."""
    is_folder: bool = False
    """Whether a folder is moved."""

    @property
    def path(self) -> str:
        """The path to name in messages."""
        return self.source or self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """Result of a change for one file, or for a folder that was moved as a whole.

    A moved and edited note has one result, one that was made and removed within the change none.
    """

    before_path: NotePath | None
    after_path: NotePath | None
    before_hash: str | None
    after_hash: str | None
    is_folder: bool = False

    @property
    def path(self) -> NotePath:
        """The path now, or the last one it had."""
        return self.after_path or self.before_path or NO_PATH


def file_results(steps: Iterable[Step]) -> tuple[FileResult, ...]:
    """Return the results of steps by file, in the order in which the files were first touched."""
    collected: list[FileResult] = []
    at: dict[str, int] = {}
    for step in steps:
        if step.kind in {"mkdir", "rmdir"}:
            continue
        number = at.pop(step.source, None)
        if number is None:
            number = len(collected)
            collected.append(
                FileResult(
                    before_path=step.source or None,
                    after_path=step.target or None,
                    before_hash=step.before,
                    after_hash=step.after,
                    is_folder=step.is_folder,
                )
            )
        else:
            collected[number] = replace(collected[number], after_path=step.target or None, after_hash=step.after)
        if step.is_folder:
            prefix = step.source + "/"
            for place, one in enumerate(collected):
                if one.after_path and one.after_path.startswith(prefix):
                    moved = NotePath(f"{step.target}/{one.after_path[len(prefix) :]}")
                    collected[place] = replace(one, after_path=moved)
            at = {one.after_path: place for place, one in enumerate(collected) if one.after_path}
        elif step.target:
            at[step.target] = number
    return tuple(one for one in collected if one.before_path or one.after_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Effect that doesn't fit the disk any more."""

    effect: int
    """Its index in the list of effects."""
    path: str
    problem: str
    expected: str | None
    current: str | None
    """Current hash; None if nothing is there, or a folder."""


@dataclass(slots=True, kw_only=True)
class ChangePlan:
    """The steps to carry out; none of them is carried out unless ``conflicts`` is empty."""

    steps: list[Step] = field(default_factory=list[Step])
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """What the steps replace, remove and write, by hash."""
    stamps: dict[int, Stamp] = field(default_factory=dict[int, Stamp])
    """Stamps of the moved files, by step."""
    conflicts: list[Conflict] = field(default_factory=list[Conflict])
    notices: list[str] = field(default_factory=list[str])


def check_conflicts(plan: ChangePlan) -> None:
    """Check that a plan fits the disk.

    Raises:
        ConflictError: It doesn't; ``details["conflicts"]`` has each file with its expected and its current hash.
    """
    if not plan.conflicts:
        return
    problems = list(dict.fromkeys(f"'{one.path}' {one.problem}" for one in plan.conflicts))
    more = len(problems) - 5
    raise ConflictError(
        "; ".join(problems[:5]) + (f"; and {more} more" if more > 0 else "") + "; nothing was changed",
        hint="read the file again and make the change against what it holds now",
        details={
            "current_hash": plan.conflicts[0].current,
            "conflicts": [
                {"path": one.path, "problem": one.problem, "expected_hash": one.expected, "current_hash": one.current}
                for one in plan.conflicts
            ],
        },
    )


def changed_error(step: Step, current: str | None) -> ConflictError:
    """Build the error for a file that an editor saved while it was being changed."""
    if current == HASH_OPEN:
        return ConflictError(
            f"'{step.path}' is open for writing in another program; nothing was changed",
            hint="close it there, then try again",
            details={"path": step.path, "current_hash": None},
        )
    return ConflictError(
        f"'{step.path}' was saved by another program meanwhile; nothing was changed",
        hint="read the file again and make the change against what it holds now",
        details={"path": step.path, "current_hash": current},
    )


def appeared_error(step: Step, current: str | None) -> ConflictError:
    """Build the error for a file that appeared where a step was to create one."""
    return ConflictError(
        f"'{step.target}' was made by another program meanwhile; nothing was changed",
        hint="choose another name, or edit that file",
        details={"path": step.target, "current_hash": None if current == HASH_OPEN else current},
    )


def symlink_error(folder: str) -> ConflictError:
    """Build the error for a folder that became a symbolic link while something in it was being changed."""
    return ConflictError(
        f"'{folder}' became a symbolic link meanwhile; nothing was changed",
        hint="look at who put it there, then try again",
        details={"path": folder, "current_hash": None},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayEntry:
    """What a path will refer to after the planned steps."""

    kind: FileKind
    at: str
    """Where it will lie below the vault's real folder."""
    disk: Path | None
    """Where it lies now; None if a planned step makes it."""
    stamp: Stamp | None = None
    hash: str | None = None
    """Of planned content; None where it has to be read from the disk."""
    step: int | None = None
    """The planned step that writes it."""
    new_mode: int | None = None
    """Permission bits that a planned step gives it; None for the system's default."""

    @property
    def mode(self) -> int | None:
        """The permission bits that it will have, as far as they are known."""
        return self.stamp.mode if self.stamp else self.new_mode


class Overlay:
    """View of the vault's paths as if the planned steps had been carried out."""

    def __init__(self, root: Path, files: Files) -> None:
        """Start with the vault as it is on disk.

        Args:
            root: The vault's real folder, symbolic links followed.
            files: The disk.
        """
        self._root = root
        self._files = files
        self._known: dict[str, OverlayEntry | None] = {}
        self._parents: dict[str, str] = {"": ""}

    def entry(self, path: str) -> OverlayEntry | None:
        """Return what a path will refer to; None for nothing.

        Raises:
            RefusedError: A symbolic link leads out of the vault.
        """
        if path in self._known:
            return self._known[path]
        origin = self._origin(path)
        if origin is None:
            at = self._at(path)
            return self._seen(at, self._root / at)
        holder = self._known[origin]
        if holder is None or holder.disk is None:
            return None
        relative = path[len(origin) + 1 :]
        disk = holder.disk / relative
        if os.path.realpath(disk.parent) != str(disk.parent):
            msg = f"'{path}' lies behind a symbolic link in a folder that this change moves"
            raise BadInput(msg, hint="edit the link's target first, then move the folder")
        return self._seen(f"{holder.at}/{relative}", disk)

    def place(self, path: str) -> str:
        """Return where a path that names nothing yet will lie below the vault's real folder.

        Raises:
            RefusedError: A symbolic link leads out of the vault.
        """
        origin = self._origin(path)
        holder = self._known[origin] if origin else None
        if origin is None or holder is None:
            return self._at(path)
        return f"{holder.at}/{path[len(origin) + 1 :]}"

    def target(self, entry: OverlayEntry) -> OverlayEntry:
        """Return the entry of the file that a symbolic link leads to; any other entry as it is.

        Raises:
            RefusedError: It leads out of the vault.
        """
        if entry.kind != "link" or entry.disk is None:
            return entry
        real = Path(os.path.realpath(entry.disk))
        if not real.is_relative_to(self._root):
            raise outside_vault_error(entry.at)
        stamp = self._files.stamp(real)
        at = real.relative_to(self._root).as_posix()
        planned = self._known.get(at)
        return planned or OverlayEntry(kind=stamp.kind if stamp else "other", at=at, disk=real, stamp=stamp)

    def put(self, path: str, entry: OverlayEntry) -> None:
        """Record that a path will refer to *entry*."""
        self._known[path] = entry

    def write(self, path: str, entry: OverlayEntry) -> None:
        """Record new content for a path, or for the link's target if it is a symbolic link."""
        entry_before = self.entry(path)
        self._known[entry.at if entry_before is not None and entry_before.kind == "link" else path] = entry

    def drop(self, path: str) -> None:
        """Record that a path and all paths below it will refer to nothing."""
        for below in self._below(path):
            del self._known[below]
        self._known[path] = None

    def move(self, source: str, target: str, entry: OverlayEntry, *, at: str) -> None:
        """Record that *source*, with all below it, will be at *target*."""
        for path in self._below(source):
            inner = self._known.pop(path)
            if inner is not None and inner.at.startswith(entry.at + "/"):
                inner = replace(inner, at=at + inner.at[len(entry.at) :])
            self._known[target + path[len(source) :]] = inner
        self._known[source] = None
        self._known[target] = replace(entry, at=at)

    def is_folder(self, entry: OverlayEntry) -> bool:
        """Return whether files can lie below an entry."""
        return entry.kind == "folder" or (entry.kind == "link" and entry.disk is not None and entry.disk.is_dir())

    def is_filled(self, path: str, entry: OverlayEntry) -> bool:
        """Return whether a folder will hold anything."""
        names = self._files.names(entry.disk) if entry.disk else []
        planned = [known for known in self._known if known.rpartition("/")[0] == path]
        return any(self.entry(below) for below in {*planned, *(f"{path}/{name}" for name in names)})

    def _below(self, path: str) -> list[str]:
        return [known for known in self._known if known.startswith(path + "/")]

    def _origin(self, path: str) -> str | None:
        return next((above for above in _parents(path) if above in self._known), None)

    def _seen(self, at: str, disk: Path) -> OverlayEntry | None:
        stamp = self._files.stamp(disk)
        return OverlayEntry(kind=stamp.kind, at=at, disk=disk, stamp=stamp) if stamp else None

    def _at(self, path: str) -> str:
        folder = paths.parent_folder(path)
        if folder not in self._parents:
            real = Path(os.path.realpath(self._root / folder))
            if not real.is_relative_to(self._root):
                raise outside_vault_error(folder)
            at = real.relative_to(self._root).as_posix()
            self._parents[folder] = "" if at == "." else at
        above = self._parents[folder]
        return f"{above}/{paths.base_name(path)}" if above else paths.base_name(path)


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def outside_vault_error(link: str) -> RefusedError:
    """Build the error for a symbolic link that leads out of the vault."""
    msg = f"the symbolic link '{link}' leads out of the vault"
    return RefusedError(msg, code="outside_vault", hint="copy the file into the vault to use it there")
