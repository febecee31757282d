"""See the vault as it will be after the steps planned so far."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from knapper.changes.disk.files import FileKind, Files, Stamp
from knapper.errors import BadInput, RefusedError
from knapper.vault import paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Hold what a path will name."""

    kind: FileKind
    at: str
    """Where it will lie below the vault's real folder."""
    disk: Path | None
    """Where it lies now; None if a planned step makes it."""
    stamp: Stamp | None = None
    hash: str | None = None
    """Of planned content; None where the disk tells it."""
    step: int | None = None
    """The planned step that writes it."""
    new_mode: int | None = None
    """Permission bits that a planned step gives it; None for the system's default."""

    @property
    def mode(self) -> int | None:
        """The permission bits it will have, as far as they are known."""
        return self.stamp.mode if self.stamp else self.new_mode


class Overlay:
    """Answer for paths as if the planned steps had been done."""

    def __init__(self, root: Path, files: Files) -> None:
        """Begin with the vault as it is on disk.

        Args:
            root: The vault's real folder, symbolic links followed.
            files: The disk.
        """
        self._root = root
        self._files = files
        self._known: dict[str, Entry | None] = {}
        self._parents: dict[str, str] = {"": ""}

    def look(self, path: str) -> Entry | None:
        """Tell what a path will name; None for nothing.

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
        rest = path[len(origin) + 1 :]
        disk = holder.disk / rest
        if os.path.realpath(disk.parent) != str(disk.parent):
            msg = f"'{path}' lies behind a symbolic link in a folder that this change moves"
            raise BadInput(msg, hint="edit the link's target first, then move the folder")
        return self._seen(f"{holder.at}/{rest}", disk)

    def place(self, path: str) -> str:
        """Tell where a path that names nothing yet will lie below the vault's real folder.

        Raises:
            RefusedError: A symbolic link leads out of the vault.
        """
        origin = self._origin(path)
        holder = self._known[origin] if origin else None
        if origin is None or holder is None:
            return self._at(path)
        return f"{holder.at}/{path[len(origin) + 1 :]}"

    def target(self, entry: Entry) -> Entry:
        """Follow a symbolic link to the file that its text lies in.

        Raises:
            RefusedError: It leads out of the vault.
        """
        if entry.kind != "link" or entry.disk is None:
            return entry
        real = Path(os.path.realpath(entry.disk))
        if not real.is_relative_to(self._root):
            raise _outside(entry.at)
        stamp = self._files.stamp(real)
        at = real.relative_to(self._root).as_posix()
        planned = self._known.get(at)
        return planned or Entry(kind=stamp.kind if stamp else "other", at=at, disk=real, stamp=stamp)

    def put(self, path: str, entry: Entry) -> None:
        """Plan that a path will name *entry*."""
        self._known[path] = entry

    def write(self, path: str, entry: Entry) -> None:
        """Plan new content for what a path names: the link's target where it is a link."""
        seen = self.look(path)
        self._known[entry.at if seen is not None and seen.kind == "link" else path] = entry

    def drop(self, path: str) -> None:
        """Plan that a path will name nothing, nor any path below it."""
        for below in self._below(path):
            del self._known[below]
        self._known[path] = None

    def move(self, source: str, target: str, entry: Entry, *, at: str) -> None:
        """Plan that what *source* names, and all it holds, will be at *target*."""
        for path in self._below(source):
            inner = self._known.pop(path)
            if inner is not None and inner.at.startswith(entry.at + "/"):
                inner = replace(inner, at=at + inner.at[len(entry.at) :])
            self._known[target + path[len(source) :]] = inner
        self._known[source] = None
        self._known[target] = replace(entry, at=at)

    def is_folder(self, entry: Entry) -> bool:
        """Tell whether files can lie below an entry."""
        return entry.kind == "folder" or (entry.kind == "link" and entry.disk is not None and entry.disk.is_dir())

    def is_filled(self, path: str, entry: Entry) -> bool:
        """Tell whether a folder will hold anything."""
        names = self._files.names(entry.disk) if entry.disk else []
        planned = [known for known in self._known if known.rpartition("/")[0] == path]
        return any(self.look(below) for below in {*planned, *(f"{path}/{name}" for name in names)})

    def _below(self, path: str) -> list[str]:
        return [known for known in self._known if known.startswith(path + "/")]

    def _origin(self, path: str) -> str | None:
        return next((above for above in _above(path) if above in self._known), None)

    def _seen(self, at: str, disk: Path) -> Entry | None:
        stamp = self._files.stamp(disk)
        return Entry(kind=stamp.kind, at=at, disk=disk, stamp=stamp) if stamp else None

    def _at(self, path: str) -> str:
        above = self._parent_at(paths.parent_folder(path))
        return f"{above}/{paths.base_name(path)}" if above else paths.base_name(path)

    def _parent_at(self, folder: str) -> str:
        if folder not in self._parents:
            real = Path(os.path.realpath(self._root / folder))
            if not real.is_relative_to(self._root):
                raise _outside(folder)
            at = real.relative_to(self._root).as_posix()
            self._parents[folder] = "" if at == "." else at
        return self._parents[folder]


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _outside(link: str) -> RefusedError:
    msg = f"the symbolic link '{link}' leads out of the vault"
    return RefusedError(msg, code="outside_vault", hint="copy the file into the vault to use it there")
