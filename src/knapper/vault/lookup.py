"""Find the files that paths name: links followed, other spellings accepted, nothing outside the vault."""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from knapper.errors import Ambiguous, NotFound, RefusedError, StorageError
from knapper.vault import alike, names
from knapper.vault.paths import NotePath, folder, key, shown

SCANNED_NAMES: Final = 20_000
"""Names that a search for similar ones looks at; more would make a mistyped path slow."""
MAX_LINKS: Final = 40
"""Symbolic links on the way to one file; systems give up at this number too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Tell what a path names on disk."""

    path: NotePath
    """Spelled as on disk, links to folders followed; a link to a file keeps its own name."""
    target: NotePath
    """Where the bytes lie; differs from ``path`` only for a link to a file."""
    file: Path
    """``target`` as an absolute path without links."""


def resolve(root: Path, path: NotePath, *, must_exist: bool = True) -> Found:
    """Tell what a path names on disk, with all symbolic links followed.

    Where the path as spelled isn't there, the one file that differs only in case or Unicode form is taken:
    ``notes/CAFE.md`` gives ``Notes/Café.md``.

    Args:
        root: The vault's folder.
        path: A path from `knapper.vault.paths.parse`.
        must_exist: Whether a missing file is an error; if not, its folder's other spellings are still accepted.

    Raises:
        NotFound: Nothing fits; the hint tells the nearest names.
        Ambiguous: Several spellings fit, none of them exactly.
        RefusedError: A symbolic link leads out of the vault (code ``outside_vault``).
        StorageError: A folder can't be read, or links lead in a circle (code ``link_loop``).
    """
    try:
        return find(root, path, must_exist=must_exist)
    except NotFound:
        raise missing(path, alike.nearest(path, _names(root, path))) from None


def missing(path: NotePath, near: Sequence[str]) -> NotFound:
    """Make the error that says that a path names nothing, with those *near* it as its hint."""
    hint = "nearest: " + ", ".join(repr(other) for other in near) if near else "list or search the vault for its name"
    return NotFound(f"no file {shown(path)} in the vault", hint=hint, details={"nearest": list(near)})


def _names(root: Path, path: NotePath) -> Iterator[str]:
    """Tell names that a mistyped path may have meant: its own folder's first, then what a short walk meets."""
    for start in dict.fromkeys((root / folder(path), root)):
        for file in islice(_files(start), SCANNED_NAMES):
            yield file.relative_to(root).as_posix()


def _files(start: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(start):
        folders[:] = sorted(below for below in folders if not below.startswith("."))
        yield from (Path(at) / file for file in sorted(files) if not file.startswith("."))


def _all(_: NotePath) -> bool:
    return True


def find(root: Path, path: NotePath, *, must_exist: bool = True, visible: Callable[[NotePath], bool] = _all) -> Found:
    """Tell what a path names on disk; `locate` without the search for similar names.

    Args:
        root: The vault's folder.
        path: A path from `knapper.vault.paths.parse`.
        must_exist: Whether a missing file is an error.
        visible: Asked for the path as given, as spelled on disk and as links lead; where it says no, the file
            counts as missing, and nothing else about it is told.

    Raises:
        NotFound: Nothing fits, or it isn't visible.
        Ambiguous: Several spellings fit, none of them exactly.
        RefusedError: A symbolic link leads out of the vault (code ``outside_vault``).
        StorageError: A folder can't be read, or links lead in a circle (code ``link_loop``).
    """
    real = os.path.realpath(root)
    done: list[str] = []
    ahead = path.split("/")
    links = 0
    gone = NotFound(f"no file {shown(path)} in the vault")
    checked = ""
    while ahead:
        whole = _join(done, ahead)
        if whole != checked and not visible(whole):
            raise gone
        checked = whole
        spelled = _spelling(real, done, ahead[0])
        if spelled is None and must_exist:
            raise gone
        if spelled is None:
            break
        if spelled != ahead[0]:
            ahead[0] = spelled
            continue
        done.append(ahead.pop(0))
        if not _is_link("/".join((real, *done))):
            continue
        links += 1
        target = _follow(real, _join(done), links)
        if not ahead and target:
            try:
                end = find(root, _join(target), must_exist=must_exist, visible=visible)
            except NotFound:
                raise gone from None  # whose message doesn't tell where the link leads to
            return Found(path=_join(done), target=end.path, file=end.file)
        ahead, done = [*target, *ahead], []
    whole = _join(done, ahead)
    return Found(path=whole, target=whole, file=Path(real, whole))


def _join(*parts: list[str]) -> NotePath:
    return NotePath("/".join(part for several in parts for part in several))


def _follow(real: str, path: NotePath, links: int) -> list[str]:
    """Return the parts of where a link leads to, from the vault's folder on."""
    link = Path(real, path)
    circle = StorageError(
        f"the symbolic link {shown(path)} leads in a circle", code="link_loop", hint="remove or mend the link"
    )
    if links > MAX_LINKS:
        raise circle
    try:
        target = Path(os.path.realpath(link, strict=True))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise circle from error
        target = Path(os.path.realpath(link))  # a link to nothing still may not point outside
    if not target.is_relative_to(real):
        msg = f"the symbolic link {shown(path)} leads out of the vault"
        raise RefusedError(msg, code="outside_vault", hint="copy the file into the vault to use it there")
    return list(target.relative_to(real).parts)


def _spelling(real: str, done: list[str], part: str) -> str | None:
    """Return the name on disk that *part* stands for in a folder; None if there is none.

    The folder's listing costs time where it is large, so it is read only where the name alone doesn't tell.
    """
    at = "/".join((real, *done))
    try:
        own = names.status(f"{at}/{part}")
        if own and names.is_exact(at, part, own):
            return part
        with os.scandir(at) as entries:
            inodes = {entry.name: entry.inode() for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"the folder {shown(_join(done) or '.')} can't be read: {error.strerror}"
        raise StorageError(msg, hint="check its permissions") from error
    fits = [part] if part in inodes else sorted(other for other in inodes if key(other) == key(part))
    if not fits and own:
        fits = [other for other, inode in inodes.items() if inode == own.st_ino]  # a short name of Windows
    if len(fits) > 1:
        whole = [_join(done, [fit]) for fit in fits]
        hint = "one of: " + ", ".join(map(repr, whole))
        raise Ambiguous(f"several names fit {shown(_join(done, [part]))}", hint=hint, details={"candidates": whole})
    return fits[0] if fits else None


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False  # vanished a moment ago
