"""Find and read single files of a vault: follow symbolic links, accept other spellings, suggest similar names.

What is read, and what a path turns out to be, is reached by descriptors (`knapper.system.opening`). Resolving goes by
path before that, since it follows links: each name's own status, and where a link leads, which is then checked against
the vault's folder. A link that is put there meanwhile can make a path resolve or not; nothing is read through it.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from knapper.errors import Ambiguous, BadInput, KnapError, NotFound, RefusedError, StorageError
from knapper.system import opening
from knapper.vault import paths
from knapper.vault.paths import NotePath, name_key, parent_folder, quote_path, stem

DEFAULT_MAX_BYTES: Final = 100 * 1024 * 1024
_WINDOWS_TRIES: Final = 10
_WINDOWS_PAUSE_S: Final = 0.02


def read_bytes(file: Path | str, *, shown_as: str, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Read all bytes of a file.

    Args:
        file: An absolute path without symbolic links, as `resolve_path` returns it.
        shown_as: What errors call the file: its path in the vault.
        max_bytes: A larger file is an error (code ``too_large``); it isn't cut.

    Raises:
        NotFound: The file doesn't exist, was removed a moment ago, or a part of its path has become a link.
        BadInput: It is a folder, a pipe or a device (code ``not_a_file``), or too large.
        StorageError: Permission is missing, or the disk fails.
    """
    try:
        with _open_regular(file, shown_as) as opened:
            # No more room than it takes: memory for the largest file costs more than reading a usual one.
            size = os.fstat(opened.fileno()).st_size
            raw = opened.read(min(size, max_bytes) + 1)
            if len(raw) > size:  # it has grown
                raw += opened.read(max(max_bytes + 1 - len(raw), 0))
    except OSError as error:
        raise _read_error(error, shown_as) from error
    if len(raw) > max_bytes:
        msg = f"{quote_path(shown_as)} is larger than {max_bytes} bytes"
        raise BadInput(msg, code="too_large", hint="split it into several notes")
    return raw


@contextmanager
def open_bytes(file: Path | str, *, shown_as: str, max_bytes: int = DEFAULT_MAX_BYTES) -> Generator[BinaryIO]:
    """Open a file to read it in pieces; arguments and errors are those of `read_bytes`."""
    try:
        opened = _open_regular(file, shown_as)
    except OSError as error:
        raise _read_error(error, shown_as) from error
    with opened:
        if os.fstat(opened.fileno()).st_size > max_bytes:
            msg = f"{quote_path(shown_as)} is larger than {max_bytes:,} bytes"
            raise BadInput(msg, code="too_large", hint="split it, or save it in a smaller format")
        yield opened


def _open_regular(file: Path | str, shown_as: str) -> BinaryIO:
    # Links were followed and checked before; one that appears in between must not lead elsewhere.
    try:
        opened = open_found(file)
    except PermissionError:
        if opening.is_folder(file):  # Windows says no more of a folder
            raise _not_a_file_error(shown_as) from None
        raise
    if not opening.is_regular(opened.fileno()):
        opened.close()
        raise _not_a_file_error(shown_as)
    return opened


def open_found(file: Path | str, *, system: opening.System = opening.SYSTEM) -> BinaryIO:
    """Open a file that was there just now; on Windows it may be missing or closed for the moment of a replacement."""
    for _ in range(_WINDOWS_TRIES if system.is_windows else 0):
        with suppress(FileNotFoundError, PermissionError):
            return opening.open_stream(file)
        if opening.is_folder(file):
            break
        time.sleep(_WINDOWS_PAUSE_S)
    return opening.open_stream(file)


def _not_a_file_error(shown_as: str) -> KnapError:
    return BadInput(f"{quote_path(shown_as)} isn't a file", code="not_a_file", hint="give the path of a file")


def _read_error(error: OSError, shown_as: str) -> KnapError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)) or error.errno == errno.ELOOP:
        return NotFound(
            f"no file {quote_path(shown_as)} in the vault", hint="it may just have been moved; list it again"
        )
    if isinstance(error, IsADirectoryError):
        return _not_a_file_error(shown_as)
    msg = f"{quote_path(shown_as)} can't be read: {error.strerror}"
    return StorageError(msg, hint="check the file's permissions and the disk")


HINTED_PATHS: Final = 3
"""Number of names in a hint."""
_MIN_LIKENESS: Final = 60
"""Minimum similarity of two names, of 100."""


def score_stems(path: str, stems: Sequence[str]) -> list[tuple[float, int]]:
    """Return the similarity and the index of those of *stems* that resemble a path's own stem, in no particular order.

    Args:
        path: The path that was asked for.
        stems: Names without their endings, folded by `knapper.vault.paths.name_key`.
    """
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 35 ms that only a mistyped path should cost

    hits = process.extract(
        name_key(stem(path)), stems, scorer=fuzz.ratio, processor=None, score_cutoff=_MIN_LIKENESS, limit=None
    )
    return [(score, place) for _, score, place in hits]


def order_by_likeness(path: str, scored: Iterable[tuple[float, str]]) -> list[str]:
    """Sort paths by their similarity, the most similar first; those in the path's own folder win ties."""
    here = parent_folder(path)
    ranked = sorted(scored, key=lambda one: (-one[0], parent_folder(one[1]) != here, len(one[1]), one[1]))
    return [other for _, other in ranked]


def nearest_paths(path: str, names: Iterable[str], *, limit: int = HINTED_PATHS) -> list[str]:
    """Return the paths whose names are most similar to a path's name, best first."""
    candidates = list(dict.fromkeys(names))
    hits = score_stems(path, [name_key(stem(other)) for other in candidates])
    return order_by_likeness(path, ((score, candidates[place]) for score, place in hits))[:limit]


SCANNED_NAMES: Final = 20_000
"""Names that a search for similar ones compares; more would make a mistyped path slow."""
MAX_SYMLINKS: Final = 40
"""Symbolic links on the way to one file; operating systems give up at this number too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedFile:
    """What a path refers to on disk."""

    path: NotePath
    """Spelled as on disk, links to folders followed; a link to a file keeps its own name."""
    target: NotePath
    """Where the bytes lie; differs from ``path`` only for a link to a file."""
    root: str
    """The vault's folder, without links in its path."""

    @property
    def file(self) -> Path:
        """Return ``target`` as an absolute path without links."""
        return Path(self.root, self.target)

    @property
    def place(self) -> str:
        """Return the same as text, in a tenth of the time."""
        return os.path.join(self.root, self.target)  # noqa: PTH118 - as said


def resolve_path(root: Path, path: NotePath, *, must_exist: bool = True) -> ResolvedFile:
    """Return what a path refers to on disk, with all symbolic links followed.

    Where the path as spelled doesn't exist, the one file that differs only in case or Unicode form is used:
    ``notes/CAFE.md`` gives ``Notes/Café.md``.

    Args:
        root: The vault's folder.
        path: A path from `knapper.vault.paths.parse`.
        must_exist: Whether a missing file is an error; if not, its folder's other spellings are still accepted.

    Raises:
        NotFound: Nothing matches; the hint names the most similar paths.
        Ambiguous: Several spellings match, none of them exactly.
        RefusedError: A symbolic link leads out of the vault (code ``outside_vault``).
        StorageError: A folder can't be read, or links form a loop (code ``link_loop``).
    """
    try:
        return find_path(root, path, must_exist=must_exist)
    except NotFound:
        # Paths that a mistyped one may mean: first those of its own folder, then those of a short walk.
        real, starts = os.path.realpath(root), dict.fromkeys((parent_folder(path), ""))
        near = (found for start in starts for found in islice(walk_files(real, start), SCANNED_NAMES))
        raise missing_file_error(path, nearest_paths(path, near)) from None


def missing_file_error(path: NotePath, nearest: Sequence[str]) -> NotFound:
    """Build the error for a path that doesn't exist, with the paths *nearest* to it as hint."""
    hint = (
        "nearest: " + ", ".join(repr(other) for other in nearest)
        if nearest
        else "list or search the vault for its name"
    )
    return NotFound(f"no file {quote_path(path)} in the vault", hint=hint, details={"nearest": list(nearest)})


def walk_files(real_root: str, start: str = "", *, with_hidden: bool = False) -> Iterator[str]:
    """Yield the paths of all files below a folder of a vault, follow no links, and leave out what can't be read.

    Args:
        real_root: The vault's folder, without links in its path.
        start: The folder's path in the vault; empty for all of it.
        with_hidden: Also yield names that begin with a dot.
    """
    pending = [f"{start}/" if start else ""]
    while pending:
        folder = pending.pop()
        try:
            with opening.list_folder(f"{real_root}/{folder}".rstrip("/") or "/") as entries:
                listed = sorted((entry.name, entry.is_dir(), entry.is_symlink()) for entry in entries)
        except OSError:
            continue
        shown = [entry for entry in listed if with_hidden or not entry[0].startswith(".")]
        yield from (folder + name for name, is_folder, _ in shown if not is_folder)
        pending += [f"{folder}{name}/" for name, is_folder, is_link in reversed(shown) if is_folder and not is_link]


class KnownFolders:
    """The folders that the paths of one batch lie in, each looked up once; a later batch looks them up again."""

    def __init__(self, root: Path) -> None:
        """Look up *root*, the vault's folder."""
        self.real = os.path.realpath(root)
        self._names: dict[str, _NameOnDisk | None] = {}

    def find(self, resolved: list[str], remaining: list[str]) -> "_NameOnDisk | None":
        """Return the name on disk that the first of the remaining parts refers to, as `_name_on_disk` does."""
        if len(remaining) == 1:  # the file itself
            return _name_on_disk(self.real, resolved, remaining[0])
        key = "/".join((*resolved, remaining[0]))
        if key not in self._names:
            self._names[key] = _name_on_disk(self.real, resolved, remaining[0])
        return self._names[key]


def find_path(
    root: Path,
    path: NotePath,
    *,
    must_exist: bool = True,
    visible: Callable[[NotePath], bool] = lambda _: True,
    known: KnownFolders | None = None,
) -> ResolvedFile:
    """Return what a path refers to on disk, like `resolve_path` but without the search for similar names.

    Args:
        root: The vault's folder.
        path: A path from `knapper.vault.paths.parse`.
        must_exist: Whether a missing file is an error.
        visible: Called with the path as given, as spelled on disk and with links resolved; where it returns False,
            the file counts as missing, and the error reveals nothing else.
        known: Of this root, where many paths are looked up at once; None looks up each folder on the way.

    Raises:
        NotFound: Nothing matches, or the match isn't visible.
        Ambiguous: Several spellings match, none of them exactly.
        RefusedError: A symbolic link leads out of the vault (code ``outside_vault``).
        StorageError: A folder can't be read, or links form a loop (code ``link_loop``).
    """
    folders = known or KnownFolders(root)
    real = folders.real
    resolved: list[str] = []
    remaining = path.split("/")
    links = 0
    checked_path = ""
    while remaining:
        full_path = _join_parts(resolved, remaining)
        if full_path != checked_path and not visible(full_path):
            raise _missing_error(path)
        checked_path = full_path
        found = folders.find(resolved, remaining)
        if found is None and must_exist:
            raise _missing_error(path)
        if found is None:
            break
        if found.name != remaining[0]:
            remaining[0] = found.name
            continue
        resolved.append(remaining.pop(0))
        if not found.is_link:
            continue
        links += 1
        target, is_there = _follow_link(real, _join_parts(resolved), links)
        # Decided at once for a link to nothing and for one to a hidden file: more work for one of them would tell.
        is_shown = visible(_join_parts(target, remaining))
        if must_exist and not (is_there and is_shown):
            raise _missing_error(path)
        if not remaining and target:
            try:
                linked_file = find_path(
                    root, _join_parts(target), must_exist=must_exist, visible=visible, known=folders
                )
            except NotFound:
                # `from None`: the link error's message would reveal where a hidden link leads.
                raise _missing_error(path) from None
            return ResolvedFile(path=_join_parts(resolved), target=linked_file.path, root=real)
        remaining, resolved = [*target, *remaining], []
    full_path = _join_parts(resolved, remaining)
    return ResolvedFile(path=full_path, target=full_path, root=real)


def _missing_error(path: NotePath) -> NotFound:
    return NotFound(f"no file {quote_path(path)} in the vault")


def _join_parts(*parts: list[str]) -> NotePath:
    return NotePath("/".join(part for several in parts for part in several))


def _follow_link(real_root: str, path: NotePath, link_count: int) -> tuple[list[str], bool]:
    """Return the parts of a link's target, relative to the vault's folder, and whether it exists."""
    link = Path(real_root, path)
    loop_error = StorageError(
        f"the symbolic link {quote_path(path)} leads in a circle", code="link_loop", hint="remove or correct the link"
    )
    if link_count > MAX_SYMLINKS:
        raise loop_error
    is_there = True
    try:
        os.stat(link)  # noqa: PTH116 - as quick for a link to nothing
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise loop_error from error
        is_there = False
    # Also checked for a target that doesn't exist: it must not point out of the vault.
    target = Path(os.path.realpath(link))
    if not target.is_relative_to(real_root):
        msg = f"the symbolic link {quote_path(path)} leads out of the vault"
        raise RefusedError(msg, code="outside_vault", hint="copy the file into the vault to use it there")
    return list(target.relative_to(real_root).parts), is_there


@dataclass(frozen=True, slots=True, kw_only=True)
class _NameOnDisk:
    name: str
    is_link: bool
    """Meaningful only for a name that is spelled as it was asked for."""


def _name_on_disk(real_root: str, resolved: list[str], part: str) -> _NameOnDisk | None:
    """Return the name on disk that *part* refers to in a folder; None if there is none.

    Listing a large folder takes time, so the folder is listed only where the name alone doesn't decide.
    """
    folder_path = "/".join((real_root, *resolved))
    try:
        status = paths.lstat_or_none(f"{folder_path}/{part}")
        is_link = status is not None and stat.S_ISLNK(status.st_mode)
        if status and paths.is_exact_name(folder_path, part, status):
            return _NameOnDisk(name=part, is_link=is_link)
        with opening.list_folder(folder_path) as entries:
            inodes = {entry.name: entry.inode() for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        msg = f"the folder {quote_path(_join_parts(resolved) or '.')} can't be read: {error.strerror}"
        raise StorageError(msg, hint="check its permissions") from error
    matches = [part] if part in inodes else sorted(other for other in inodes if name_key(other) == name_key(part))
    if not matches and status:
        # No listed name is spelled so: it may be a short name of Windows, which has the inode of the listed one.
        matches = [other for other, inode in inodes.items() if inode == status.st_ino]
    if len(matches) > 1:
        candidates = [_join_parts(resolved, [fit]) for fit in matches]
        hint = "one of: " + ", ".join(map(repr, candidates))
        raise Ambiguous(
            f"several names fit {quote_path(_join_parts(resolved, [part]))}",
            hint=hint,
            details={"candidates": candidates},
        )
    return _NameOnDisk(name=matches[0], is_link=is_link) if matches else None
