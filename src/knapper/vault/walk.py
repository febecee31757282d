"""List the files of a vault, without those that its rules ignore."""

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from knapper.errors import KnapError, NotFound, SetupError, StorageError
from knapper.system import opening
from knapper.vault import files, paths
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.paths import MAX_PART_BYTES, MAX_PATH_BYTES, Globs, NotePath, Regex, name_key, quote_path

IGNORE_FILE: Final = NotePath(".knapignore")
MAX_IGNORE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRules:
    """The rules for what in the vault's folder isn't part of the vault.

    Names that begin with a dot never are, such as ``.obsidian``, ``.git``, ``.trash``, ``.venv`` or ``.chroma_db``.
    Only names below the vault's folder count; the vault itself may lie in a folder of any name.
    """

    patterns: Globs = field(default_factory=Globs)
    """Patterns of ``.knapignore`` in gitignore's syntax."""
    prefixes: tuple[str, ...] = ()
    """Obsidian's filters as folded path prefixes."""
    regexes: tuple[Regex, ...] = ()
    """Obsidian's filters between slashes; matched with files and not with folders, as Obsidian does."""
    problems: tuple[str, ...] = ()
    """Lines and filters that have no effect, with the reason."""
    fingerprint: str = ""
    """Differs for rules with another content."""

    @classmethod
    def load(cls, root: Path, settings: ObsidianSettings) -> "IgnoreRules":
        """Read the rules of a vault.

        Args:
            root: The vault's folder, whose ``.knapignore`` is read if there is one.
            settings: For Obsidian's filters.

        Raises:
            SetupError: There is a ``.knapignore`` that can't be read; without it, ignored files would be shown.
        """
        lines = _read_ignore_lines(root)
        ignore_globs = paths.parse_globs(lines)
        problems = [f"{IGNORE_FILE}, {problem}" for problem in ignore_globs.problems]
        prefixes: list[str] = []
        filters: list[Regex] = []
        for text in settings.user_ignore_filters:
            if len(text) > 1 and text[0] == text[-1] == "/":
                try:
                    filters.append(paths.parse_regex(text[1:-1]))
                except ValueError as error:
                    problems.append(f"Obsidian's filter {quote_path(text)} has no effect: {error}")
            elif text:
                prefixes.append(name_key(text))
        rules_json = json.dumps([lines, settings.user_ignore_filters])
        return cls(
            patterns=ignore_globs,
            prefixes=tuple(prefixes),
            regexes=tuple(filters),
            problems=tuple(problems),
            fingerprint=hashlib.sha256(rules_json.encode()).hexdigest(),
        )

    def hides(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a file or folder is ignored, by itself or by a folder above it."""
        if path.startswith(".") or "/." in path:
            return True
        return self.patterns.match(path, is_folder=is_folder) or self._matches_filter(path, is_folder=is_folder)

    def hides_itself(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path is ignored by itself; its folders aren't, and its name has no leading dot."""
        return self.patterns.match_only(path, is_folder=is_folder) or self._matches_filter(path, is_folder=is_folder)

    def _matches_filter(self, path: str, *, is_folder: bool) -> bool:
        if self.prefixes and (name_key(path) + "/" * is_folder).startswith(self.prefixes):
            return True
        if is_folder or not self.regexes:
            return False
        text = unicodedata.normalize("NFC", path)
        return any(regex.search(text) for regex in self.regexes)


def _read_ignore_lines(root: Path) -> list[str]:
    try:
        file = files.find_path(root, IGNORE_FILE)
        raw = files.read_bytes(file.file, shown_as=IGNORE_FILE, max_bytes=MAX_IGNORE_BYTES)
    except NotFound:
        if os.path.islink(root / IGNORE_FILE):  # noqa: PTH114 - unlike Path's, no error where the folder is closed
            msg = f"the vault's rules can't be read: the symbolic link {IGNORE_FILE} leads nowhere"
            raise SetupError(msg, hint=f"correct or remove {IGNORE_FILE} in the vault's folder") from None
        return []
    except KnapError as error:
        msg = f"the vault's rules can't be read: {error.message}"
        raise SetupError(msg, hint=f"correct or remove {IGNORE_FILE} in the vault's folder") from error
    return raw.decode("utf-8-sig", "replace").split("\n")


FileKind = Literal["note", "canvas", "base", "attachment"]
SkipCode = Literal["unreadable", "not_unicode", "too_long", "outside_vault", "broken_link", "not_a_file"]

_FILE_KINDS: Final[dict[str, FileKind]] = {"md": "note", "markdown": "note", "canvas": "canvas", "base": "base"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """The file system's facts about one file, or about the target of a symbolic link."""

    path: NotePath
    kind: FileKind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    target: NotePath | None = None
    """The file that holds the bytes; None except for symbolic links."""
    born_ns: int = 0
    """When the file was created; 0 where the system doesn't record it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file or folder that isn't listed although no rule ignores it."""

    path: str
    """Relative to the vault, with undecodable bytes escaped; empty for the vault itself."""
    code: SkipCode
    message: str


def kind_of(path: str) -> FileKind:
    """Return a file's kind by its suffix, in any case."""
    _, dot, ending = path.rpartition(".")
    return _FILE_KINDS.get(ending.lower(), "attachment") if dot else "attachment"


class _FolderEntry(Protocol):
    """One entry of a folder's listing: a file, folder or link."""

    @property
    def name(self) -> str: ...
    def is_dir(self, *, follow_symlinks: bool) -> bool: ...
    def is_symlink(self) -> bool: ...
    def stat(self, *, follow_symlinks: bool) -> os.stat_result: ...


def _ignore_problem(_: Skipped) -> None:
    pass


IsUnchanged = Callable[[str, os.DirEntry[str]], bool]
"""Whether the entry of a folder, by its path, is a file that the caller knows, and that doesn't have to be listed."""


def list_files(
    root: Path,
    ignore: IgnoreRules,
    *,
    on_problem: Callable[[Skipped], None] = _ignore_problem,
    is_unchanged: IsUnchanged | None = None,
) -> Iterator[FileStat]:
    """List the files of a vault: of each folder first its files, then its folders, both by name.

    Symbolic links to files inside the vault are listed under their own names. Links to folders aren't followed:
    their targets are either listed in their own place or not part of the vault.

    Args:
        root: The vault's folder.
        ignore: Which files are left out.
        on_problem: Receives each file or folder that can't be listed; the files below such a folder are unknown.
        is_unchanged: Called first for each entry; those for which it is true are left out. None lists all.

    Raises:
        StorageError: The vault's own folder can't be read; then nothing is known about any of its files.
    """
    return _walk_folders(os.fspath(root), "", ignore, on_problem, is_unchanged)


def list_files_at(root: Path, ignore: IgnoreRules, path: NotePath) -> list[FileStat]:
    """List one file, or all below one folder, as `list_files` would right now; nothing for a missing one.

    Raises:
        StorageError: The vault's own folder can't be read.
    """
    return list_places(root, ignore, [path])[0]


def list_places(root: Path, ignore: IgnoreRules, places: Iterable[NotePath]) -> list[list[FileStat]]:
    """List the files of several places, each as `list_files_at` does.

    Args:
        root: The vault's folder.
        ignore: Which files are left out.
        places: Paths of files and folders; a folder that several lie in is opened and checked once.

    Returns:
        The files of each place, in their order; none of a missing one.

    Raises:
        StorageError: The vault's own folder can't be read.
    """
    real = os.path.realpath(root)
    is_real: dict[str, bool] = {}
    with contextlib.closing(opening.FolderChain(real)) as chain:
        return [list(_list_place(chain, ignore, path, is_real)) for path in places]


def _list_place(
    chain: opening.FolderChain, ignore: IgnoreRules, path: NotePath, is_real: dict[str, bool]
) -> Iterator[FileStat]:
    """List the files of one place; *is_real* holds the folders that were looked at, and whether none is a link."""
    if ignore.hides(path) and ignore.hides(path, is_folder=True):
        return
    folder = paths.parent_folder(path)
    if folder not in is_real:
        folder_path = os.fspath(Path(chain.root, folder))
        is_real[folder] = os.path.realpath(folder_path) == folder_path
    if not is_real[folder]:
        # A link leads to this folder, so its files are listed in their own place or not at all.
        return
    entry = _find_entry(chain, folder, paths.base_name(path))
    if entry is None:
        return
    is_folder = _is_folder(entry)
    if ignore.hides(path, is_folder=is_folder):
        return
    if is_folder:
        yield from _walk_folders(chain.root, f"{path}/", ignore, _ignore_problem)
    else:
        outcome = _stat_entry(entry, path, chain.root, ignore)
        yield from [outcome] if isinstance(outcome, FileStat) else []


def _find_entry(chain: opening.FolderChain, folder: str, name: str) -> _FolderEntry | None:
    """Find a folder's entry by its name; the folder is listed only where the name alone doesn't decide."""
    prefix = f"{folder}/" if folder else ""
    # Missing permission or a name that is too long: the listing below reports what is wrong.
    with contextlib.suppress(OSError):
        status = _lstat_or_none(chain, folder, name)
        if status is None and os.path.isdir(chain.root):  # noqa: PTH112 - made for each file that is saved
            return None
        folder_path = f"{chain.root}/{folder}" if folder else chain.root
        if status is not None and paths.is_exact_name(folder_path, name, status):
            return None if _name_problem(prefix + name, name) else _SingleEntry(name=name, status=status)
    entries = _list_entries(chain, prefix, _ignore_problem)
    entry = next((entry for entry in entries if entry.name == name), None)
    return entry and _SingleEntry(name=name, status=entry.stat(follow_symlinks=False))


def _lstat_or_none(chain: opening.FolderChain, folder: str, name: str) -> os.stat_result | None:
    """Return the status of a file, folder or link itself; None where there is none, or a link lies on the way."""
    try:
        return chain.lstat(folder, name)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return None
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _SingleEntry:
    """The entry of a single file, with the interface of `os.DirEntry`."""

    name: str
    status: os.stat_result

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        del follow_symlinks
        return stat.S_ISDIR(self.status.st_mode)

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        del follow_symlinks
        return self.status


def _walk_folders(
    base: str,
    start: str,
    ignore: IgnoreRules,
    on_problem: Callable[[Skipped], None],
    is_unchanged: IsUnchanged | None = None,
) -> Iterator[FileStat]:
    with contextlib.closing(opening.FolderChain(os.path.realpath(base))) as chain:
        pending = [start]
        while pending:
            folder = pending.pop()
            subfolders: list[str] = []
            listed: list[FileStat] = []
            for entry in _list_entries(chain, folder, on_problem):
                path = folder + entry.name
                if is_unchanged is not None and is_unchanged(path, entry):
                    continue
                is_folder = _is_folder(entry)
                if ignore.hides_itself(path, is_folder=is_folder):
                    continue
                if is_folder:
                    subfolders.append(path + "/")
                    continue
                outcome = _stat_entry(entry, path, chain.root, ignore)
                if isinstance(outcome, FileStat):
                    listed.append(outcome)
                elif outcome:
                    on_problem(outcome)
            if listed:
                # No folder stays open for a caller that takes its time.
                chain.close()
            yield from listed
            pending += reversed(subfolders)


def _list_entries(
    chain: opening.FolderChain, folder: str, on_problem: Callable[[Skipped], None]
) -> list[os.DirEntry[str]]:
    """Return a folder's entries by name, without names that begin with a dot or that no path can have."""
    try:
        entries = chain.entries(folder)
    except OSError as error:
        if not folder:
            msg = f"the vault's folder {chain.root} can't be read: {error.strerror}"
            raise StorageError(msg, hint="check that it is there, and its permissions") from error
        on_problem(Skipped(path=folder[:-1], code="unreadable", message=f"{quote_path(folder)}: {error.strerror}"))
        return []
    listed = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    usable: list[os.DirEntry[str]] = []
    for entry in listed:
        problem = _name_problem(folder + entry.name, entry.name)
        if problem:
            on_problem(problem)
        else:
            usable.append(entry)
    return usable


def _name_problem(path: str, name: str) -> Skipped | None:
    if name.isascii() and len(path) <= MAX_PATH_BYTES // 4:
        return None
    try:
        too_long = len(name.encode()) > MAX_PART_BYTES or len(path.encode()) > MAX_PATH_BYTES
    except UnicodeEncodeError:
        escaped = path.encode(errors="backslashreplace").decode()
        return Skipped(path=escaped, code="not_unicode", message=f"{quote_path(escaped)}: the name isn't valid Unicode")
    return (
        Skipped(path=path, code="too_long", message=f"{quote_path(path)}: the path is too long") if too_long else None
    )


def _is_folder(entry: _FolderEntry) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and not _is_junction(entry)
    except OSError:
        # Reading it as a file then reports the reason.
        return False


def _stat_entry(entry: _FolderEntry, path: str, real_root: str, ignore: IgnoreRules) -> FileStat | Skipped | None:
    try:
        if entry.is_symlink() or _is_junction(entry):
            return _stat_link(path, real_root, ignore)
        # On Windows a directory entry has no inode, and its size may be outdated.
        is_outdated = sys.platform == "win32"
        status = opening.lstat(f"{real_root}/{path}") if is_outdated else entry.stat(follow_symlinks=False)
    except OSError as error:
        return Skipped(path=path, code="unreadable", message=f"{quote_path(path)}: {error.strerror}")
    return _make_stat(status, path)


def _is_junction(entry: _FolderEntry) -> bool:
    """Return whether an entry is a junction, Windows' link to a folder."""
    if sys.platform != "win32":
        return False
    return entry.stat(follow_symlinks=False).st_reparse_tag == stat.IO_REPARSE_TAG_MOUNT_POINT


def _stat_link(path: str, real_root: str, ignore: IgnoreRules) -> FileStat | Skipped | None:
    """Return the facts about a symbolic link's target; None for a folder or an ignored target."""
    try:
        file = os.path.realpath(f"{real_root}/{path}", strict=True)
    except OSError as error:
        return Skipped(path=path, code="broken_link", message=f"{quote_path(path)}: {error.strerror}")
    prefix = real_root.rstrip(os.sep) + os.sep
    if file != real_root and not file.startswith(prefix):
        message = f"the symbolic link {quote_path(path)} leads out of the vault"
        return Skipped(path=path, code="outside_vault", message=message)
    try:
        status = opening.lstat(file)
    except OSError as error:
        return Skipped(path=path, code="unreadable", message=f"{quote_path(path)}: {error.strerror}")
    target = file[len(prefix) :].replace(os.sep, "/")
    if stat.S_ISDIR(status.st_mode) or ignore.hides(target):
        return None
    return _name_problem(target, target.rpartition("/")[2]) or _make_stat(status, path, NotePath(target))


def _make_stat(status: os.stat_result, path: str, target: NotePath | None = None) -> FileStat | Skipped:
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path=path, code="not_a_file", message=f"{quote_path(path)}: neither a file nor a folder")
    if sys.platform == "win32":
        born_ns = status.st_ctime_ns
    else:
        birth_time_s: float = getattr(status, "st_birthtime", 0.0)
        born_ns = int(birth_time_s * 1e9)
    return FileStat(
        path=NotePath(path),
        kind=kind_of(path),
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
        target=target,
        born_ns=born_ns,
    )
