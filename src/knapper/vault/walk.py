"""List the files of a vault, leaving out what isn't part of it."""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from knapper.errors import StorageError
from knapper.vault import names, paths
from knapper.vault.ignore import Ignore
from knapper.vault.paths import MAX_PART_BYTES, MAX_PATH_BYTES, NotePath, shown

Kind = Literal["note", "canvas", "base", "attachment"]
SkipCode = Literal["unreadable", "not_unicode", "too_long", "outside_vault", "broken_link", "not_a_file"]

_KINDS: Final[dict[str, Kind]] = {"md": "note", "markdown": "note", "canvas": "canvas", "base": "base"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """Tell what the file system says about one file; for a link, about what it leads to."""

    path: NotePath
    kind: Kind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    target: NotePath | None = None
    """Where the bytes lie; None where that is ``path`` itself, so for all but symbolic links."""
    born_ns: int = 0
    """When the file was made; 0 where the system doesn't tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Tell what was left out though no rule says so."""

    path: str
    """Relative to the vault, with bytes that aren't text escaped; empty for the vault itself."""
    code: SkipCode
    message: str


def kind_of(path: str) -> Kind:
    """Tell a file's kind by its ending, in whatever case."""
    _, dot, ending = path.rpartition(".")
    return _KINDS.get(ending.lower(), "attachment") if dot else "attachment"


class _Entry(Protocol):
    """Be what a folder's listing tells of one file, folder or link."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    def is_dir(self, *, follow_symlinks: bool) -> bool: ...
    def is_symlink(self) -> bool: ...
    def stat(self, *, follow_symlinks: bool) -> os.stat_result: ...


def _discard(_: Skipped) -> None:
    pass


def files(root: Path, ignore: Ignore, *, on_problem: Callable[[Skipped], None] = _discard) -> Iterator[FileStat]:
    """List the files of a vault: of each folder first its files, then its folders, both by name.

    Symbolic links to files inside the vault are listed under their own names. Links to folders aren't followed:
    what they lead to is either listed where it lies or not part of the vault.

    Args:
        root: The vault's folder.
        ignore: What to leave out silently.
        on_problem: Told of each file or folder that should be here and can't be; of what lies below such a folder
            nothing is known.

    Raises:
        StorageError: The vault's own folder can't be read; then nothing is known about any of its files.
    """
    return _walk(os.fspath(root), "", ignore, on_problem)


def at(root: Path, ignore: Ignore, path: NotePath) -> Iterator[FileStat]:
    """List what `files` would of one file, or of all below one folder, right now; a missing one gives nothing.

    Raises:
        StorageError: The vault's own folder can't be read.
    """
    if ignore.hides(path) and ignore.hides(path, is_folder=True):
        return
    base, folder = os.fspath(root), paths.folder(path)
    real = os.path.realpath(root)
    whole = Path(real, folder)
    if os.path.realpath(whole) != os.fspath(whole):
        return  # reached by a link, so that it is listed elsewhere or not at all
    entry = _entry(base, folder, paths.name(path))
    if entry is None:
        return
    is_folder = _is_folder(entry)
    if ignore.hides(path, is_folder=is_folder):
        return
    if is_folder:
        yield from _walk(base, f"{path}/", ignore, _discard)
    else:
        found = _file(entry, path, real, ignore)
        yield from [found] if isinstance(found, FileStat) else []


def _entry(base: str, folder: str, name: str) -> _Entry | None:
    """Find what a folder lists under a name; all of it is listed only where the name alone doesn't tell."""
    inside = f"{folder}/" if folder else ""
    at = f"{base}/{folder}" if folder else base
    with contextlib.suppress(OSError):  # a closed folder, a name too long: the listing says what there is to say
        known = names.status(f"{at}/{name}")
        if known is None and os.path.isdir(base):  # noqa: PTH112 - made for each file that is saved
            return None
        if known is not None and names.is_exact(at, name, known):
            return None if _name_problem(inside + name, name) else _Named(name=name, path=f"{at}/{name}", status=known)
    return next((entry for entry in _entries(base, inside, _discard) if entry.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """Be to one file what an entry of a listing is."""

    name: str
    path: str
    status: os.stat_result

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        del follow_symlinks
        return stat.S_ISDIR(self.status.st_mode)

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        del follow_symlinks
        return self.status


def _walk(base: str, start: str, ignore: Ignore, on_problem: Callable[[Skipped], None]) -> Iterator[FileStat]:
    real = os.path.realpath(base)
    pending = [start]
    while pending:
        folder = pending.pop()
        below: list[str] = []
        for entry in _entries(base, folder, on_problem):
            path = folder + entry.name
            is_folder = _is_folder(entry)
            if ignore.hides_only(path, is_folder=is_folder):
                continue
            if is_folder:
                below.append(path + "/")
                continue
            found = _file(entry, path, real, ignore)
            if isinstance(found, FileStat):
                yield found
            elif found:
                on_problem(found)
        pending += reversed(below)


def _entries(base: str, folder: str, on_problem: Callable[[Skipped], None]) -> list[os.DirEntry[str]]:
    """List what a folder holds, by name, without dot names and names that no path can have."""
    try:
        with os.scandir(f"{base}/{folder}") as entries:
            named = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    except OSError as error:
        if not folder:
            msg = f"the vault's folder {base} can't be read: {error.strerror}"
            raise StorageError(msg, hint="check that it is there, and its permissions") from error
        on_problem(Skipped(path=folder[:-1], code="unreadable", message=f"{shown(folder)}: {error.strerror}"))
        return []
    fine: list[os.DirEntry[str]] = []
    for entry in named:
        problem = _name_problem(folder + entry.name, entry.name)
        if problem:
            on_problem(problem)
        else:
            fine.append(entry)
    return fine


def _name_problem(path: str, name: str) -> Skipped | None:
    if name.isascii() and len(path) <= MAX_PATH_BYTES // 4:
        return None
    try:
        too_long = len(name.encode()) > MAX_PART_BYTES or len(path.encode()) > MAX_PATH_BYTES
    except UnicodeEncodeError:
        safe = path.encode(errors="backslashreplace").decode()
        return Skipped(path=safe, code="not_unicode", message=f"{shown(safe)}: the name isn't valid Unicode")
    return Skipped(path=path, code="too_long", message=f"{shown(path)}: the path is too long") if too_long else None


def _is_folder(entry: _Entry) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and not _is_junction(entry)
    except OSError:
        return False  # and the attempt to read it as a file tells why


def _file(entry: _Entry, path: str, real: str, ignore: Ignore) -> FileStat | Skipped | None:
    try:
        if entry.is_symlink() or _is_junction(entry):
            return _linked(entry, path, real, ignore)
        # On Windows an entry knows no inode, and a size that may be old.
        status = os.stat(entry.path) if sys.platform == "win32" else entry.stat(follow_symlinks=False)  # noqa: PTH116
    except OSError as error:
        return Skipped(path=path, code="unreadable", message=f"{shown(path)}: {error.strerror}")
    return _told(status, path)


def _is_junction(entry: _Entry) -> bool:
    """Tell whether an entry is what Windows has in place of a link to a folder."""
    if sys.platform != "win32":
        return False
    return entry.stat(follow_symlinks=False).st_reparse_tag == stat.IO_REPARSE_TAG_MOUNT_POINT


def _linked(entry: _Entry, path: str, real: str, ignore: Ignore) -> FileStat | Skipped | None:
    """Tell about what a symbolic link leads to; None for a folder, and for what isn't part of the vault."""
    try:
        file = os.path.realpath(entry.path, strict=True)
    except OSError as error:
        return Skipped(path=path, code="broken_link", message=f"{shown(path)}: {error.strerror}")
    prefix = real.rstrip(os.sep) + os.sep
    if file != real and not file.startswith(prefix):
        message = f"the symbolic link {shown(path)} leads out of the vault"
        return Skipped(path=path, code="outside_vault", message=message)
    status = os.stat(file)  # noqa: PTH116  # the loop over a whole vault makes no Path objects
    target = file[len(prefix) :].replace(os.sep, "/")
    if stat.S_ISDIR(status.st_mode) or ignore.hides(target):
        return None
    return _name_problem(target, target.rpartition("/")[2]) or _told(status, path, NotePath(target))


def _told(status: os.stat_result, path: str, target: NotePath | None = None) -> FileStat | Skipped:
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path=path, code="not_a_file", message=f"{shown(path)}: neither a file nor a folder")
    return FileStat(
        path=NotePath(path),
        kind=kind_of(path),
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
        target=target,
        born_ns=_born_ns(status),
    )


def _born_ns(status: os.stat_result) -> int:
    if sys.platform == "win32":
        return status.st_ctime_ns
    born: float = getattr(status, "st_birthtime", 0.0)
    return int(born * 1e9)
