"""Checked moves, and what links mean before and after them."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from knapper.changes.disk.journal import Journal
from knapper.changes.drafts import Move
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.index import documents
from knapper.vault import files, links, paths, walk
from knapper.vault.links import Resolution
from knapper.vault.paths import NotePath
from knapper.vault.view import View

_WARNING_ONLY: Final = frozenset({"breaks_links", "dot_name"})
"""Problems of a new name that give a notice, but don't prevent the move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """One file or folder that is to get another path."""

    source: NotePath
    target: NotePath
    files: tuple[NotePath, ...]
    """All files that move with it, by their paths before; a file has itself."""
    is_folder: bool = False
    is_whole: bool = False
    """The folder moves as a whole, with all that it holds; otherwise the client's files in it move one by one."""
    notices: tuple[str, ...] = ()

    def pairs(self) -> Iterator[tuple[NotePath, NotePath]]:
        """Return each file's old and new path."""
        for file in self.files:
            yield file, NotePath(self.target + file[len(self.source) :])


def plan_moves(view: View, moves: Sequence[Move]) -> list[PlannedMove]:
    """Check moves, each against the current files, and none against the outcome of another.

    Raises:
        BadInput: A path can't be one, a name can't be used, a folder would go into itself, nothing would change, or two
            moves get in each other's way.
        NotFound: There is no such file or folder that the client sees.
        Ambiguous: Several spellings fit, none of them exactly.
        RefusedError: The new place isn't visible to the client, or lies out of the vault.
        ConflictError: Something has the new path already (code ``exists``): nothing is ever overwritten.
    """
    planned = [_plan_move(view, move) for move in moves]
    # No move may touch a place that another move needs.
    claimed: dict[str, int] = {}
    for number, one in enumerate(planned):
        for end in (one.source, one.target):
            claimed.setdefault(paths.name_key(end), number)
    for number, one in enumerate(planned):
        for end in (one.source, one.target):
            around = [claimed.get(paths.name_key(path), number) for path in (end, *paths.parent_folders(end))]
            other = next((owner for owner in around if owner != number), None)
            if other is not None:
                pair = [paths.quote_path(each.source) for each in (one, planned[other])]
                msg = f"{pair[0]} and {pair[1]} get in each other's way"
                raise BadInput(msg, hint="make one move after the other", code="overlap")
    return planned


def _plan_move(view: View, move: Move) -> PlannedMove:
    source, files, is_folder = _find_source(view, move.source)
    # ``Folder/`` gets the file's name, and a note's name without extension gets the note's
    raw = move.destination
    if raw.endswith("/"):
        destination = view.parse(raw + paths.base_name(source))
    else:
        destination = view.parse(raw)
        if not is_folder and walk.kind_of(source) == "note" and not paths.suffix(raw):
            folder = view.root / destination  # it is the place itself, as far as the client may know of it
            is_known = folder.is_dir() and (
                view.visible(NotePath(f"{destination}/note.md")) or bool(view.list_files_at(folder)[1])
            )
            if not is_known:
                destination = view.parse(raw + paths.suffix(source))
    target = _resolve_destination(
        view, PlannedMove(source=source, target=destination, files=files, is_folder=is_folder)
    )
    planned = PlannedMove(source=source, target=target, files=files, is_folder=is_folder)
    notices = _name_notices(view, source, target)
    old, new = walk.kind_of(source), walk.kind_of(target)
    if not is_folder and old != new:
        notices.append(f"{target} is read as {_KIND_PHRASES[new]} from now on, and no more as {_KIND_PHRASES[old]}")
    return PlannedMove(
        source=source,
        target=target,
        files=files,
        is_folder=is_folder,
        is_whole=is_folder and _can_move_whole(view, planned),
        notices=tuple(notices),
    )


def _find_source(view: View, raw: str) -> tuple[NotePath, tuple[NotePath, ...], bool]:
    """Return what is to move: its path, the files in it that the client sees, and whether it is a folder."""
    try:
        path = view.path(raw)
    except NotFound:
        folder = _find_folder(view, view.parse(raw))
        if folder is None:
            raise
        _, visible_files = view.list_files_at(view.root / folder)
        files = tuple(file.path for file in visible_files)
        # For a client that sees nothing in it, the folder doesn't exist.
        if not files and not view.policy.sees_all:
            raise
        return folder, files, True
    return path, (path,), False


def _find_folder(view: View, path: NotePath) -> NotePath | None:
    try:
        match = files.find_path(view.root, path)
    except KnapError:
        return None
    is_folder = match.file.is_dir() and not view.ignore.hides(match.path, is_folder=True)
    return match.path if is_folder else None


def _resolve_destination(view: View, move: PlannedMove) -> NotePath:
    """Return the new path, in the spelling of the existing folders."""
    source, destination = move.source, move.target
    # Visibility is checked before the disk is read, so that no error reveals what is hidden there.
    _check_visible(view, move, destination)
    resolved = files.find_path(view.root, destination, must_exist=False).path
    # Only the spelling of the file's own name can differ then.
    if resolved == source:
        resolved = NotePath(resolved[: len(resolved) - len(paths.base_name(resolved))] + paths.base_name(destination))
    if resolved == source:
        hint = "name another path"
        raise BadInput(f"nothing would change: {paths.quote_path(source)} lies there", hint=hint, code="no_change")
    if paths.name_key(resolved).startswith(f"{paths.name_key(source)}/"):
        hint = "name a folder outside of it"
        raise BadInput(f"{paths.quote_path(source)} can't be moved into itself", hint=hint, code="into_itself")
    _check_visible(view, replace(move, target=resolved), destination)
    _check_unoccupied(view, source, resolved)
    return resolved


def _check_visible(view: View, move: PlannedMove, destination: NotePath) -> None:
    places = [place for _, place in move.pairs()]
    # A file can't get the name of a hidden folder either: refusing or allowing it would reveal the folder.
    if not move.is_folder:
        places.append(NotePath(f"{move.target}/note.md"))
    if not all(map(view.visible, places)):
        hint = "choose another folder; hidden and ignored ones aren't written to"
        raise RefusedError(f"{paths.quote_path(destination)} wouldn't be visible", hint=hint, code="hidden")


def _check_unoccupied(view: View, source: NotePath, target: NotePath) -> None:
    for above in paths.parent_folders(target):
        if (view.root / above).is_file():
            msg = f"{paths.quote_path(above)} is a file, so that nothing can lie in it"
            raise BadInput(msg, hint="choose another folder", code="not_a_folder")
    existing = view.root / target
    if not os.path.lexists(existing) or (
        paths.name_key(source) == paths.name_key(target) and existing.samefile(view.root / source)
    ):
        return
    base, suffix = target.removesuffix(paths.suffix(target)), paths.suffix(target)
    number = 1
    while os.path.lexists(view.root / (name := f"{base} {number}{suffix}")) or not view.visible(NotePath(name)):
        number += 1
    hint = f"choose another name, such as {paths.quote_path(name)}; nothing is ever overwritten"
    if existing.is_dir():
        hint = f"to put it into that folder, name {paths.quote_path(f'{target}/{paths.base_name(source)}')}"
    raise ConflictError(f"{paths.quote_path(target)} exists already", hint=hint, code="exists")


def _name_notices(view: View, source: NotePath, target: NotePath) -> list[str]:
    """Return notices about the new parts of a path; names that the file has already aren't checked.

    Raises:
        BadInput: Some system can't hold a name.
    """
    subject = paths.parent_folder(target) if paths.base_name(source) == paths.base_name(target) else target
    if not subject:
        return []
    notices: list[str] = []
    for problem in paths.check_new(subject, root=view.root, portable=False):
        if problem.part in source.split("/"):
            continue
        if problem.code == "case_clash" and paths.name_key(source) == paths.name_key(target):
            continue
        if problem.code not in _WARNING_ONLY:
            raise BadInput(problem.message, code=problem.code, hint="choose another name")
        notices.append(problem.message)
    return notices


_KIND_PHRASES: Final = {"note": "a note", "canvas": "a canvas", "base": "a base", "attachment": "an attachment"}


def _can_move_whole(view: View, planned: PlannedMove) -> bool:
    """Return whether a folder may move as a whole: no hidden file moves with it or becomes visible by it."""
    if view.policy.sees_all:
        return True
    visible_files = set(planned.files)
    for file in files.walk_files(os.path.realpath(view.root), planned.source, with_hidden=True):
        place = planned.target + file[len(planned.source) :]
        if file not in visible_files and (not view.policy.visible(file) or view.visible(NotePath(place))):
            return False
    return True


class NameResolver:
    """Resolver of link targets among the files of one state, which caches its results."""

    def __init__(self, lookup: Callable[[str], Sequence[NotePath]]) -> None:
        """Wrap *lookup*, which is called once for each name key."""
        self._lookup: Callable[[str], Sequence[NotePath]] = lookup
        self._files: dict[str, Sequence[NotePath]] = {}
        self._resolutions: dict[tuple[str, NotePath], Resolution] = {}

    def files(self, key: str) -> Sequence[NotePath]:
        """Return the files of a name key."""
        if key not in self._files:
            self._files[key] = self._lookup(key)
        return self._files[key]

    def resolve(self, target: str, source: NotePath) -> Resolution:
        """Find the file that a link's target means, as seen from the file that holds it."""
        if not target.strip():
            return Resolution(path=source)
        # Resolution depends on nothing of the source but its folder.
        slot = (target, paths.parent_folder(source))
        if slot not in self._resolutions:
            self._resolutions[slot] = links.resolve(target, source, self.files)
        return self._resolutions[slot]

    def means(self, target: str, source: NotePath, wanted: NotePath, *, alone: bool = False) -> bool:
        """Return whether a target means a file.

        Args:
            target: What a link says, without fragment.
            source: The file that holds the link.
            wanted: The file.
            alone: No other file may fit as well.
        """
        resolution = self.resolve(target, source)
        return resolution.path == wanted and not (alone and resolution.ambiguous)


class Relocation:
    """New paths of moved files, and what link targets mean before and after the move."""

    def __init__(
        self,
        files: Mapping[NotePath, NotePath],
        folders: Mapping[NotePath, NotePath],
        lookup: Callable[[str], Sequence[NotePath]],
        root: Path,
        sees: Callable[[NotePath], bool] = lambda _: True,
    ) -> None:
        """Prepare the names before and after.

        Args:
            files: New paths of moved files, those in moved folders included.
            folders: New paths of folders that move as a whole.
            lookup: The index's files by name key.
            root: The vault's folder; files that are only in the index don't count.
            sees: Whether the client sees a file.
        """
        self.files: Mapping[NotePath, NotePath] = files
        self.folders: Mapping[NotePath, NotePath] = folders
        self.before: NameResolver = NameResolver(self._files_before)
        self.after: NameResolver = NameResolver(self._files_after)
        self.gone: set[NotePath] = set()
        """Files that are in the index, but don't exist any more."""
        self._lookup: Callable[[str], Sequence[NotePath]] = lookup
        self._root: str = os.fspath(root)
        self._sees: Callable[[NotePath], bool] = sees
        self._old: dict[str, list[NotePath]] = _group_by_key(files)
        self._new: dict[str, list[NotePath]] = _group_by_key(files.values())
        self._affected_keys: frozenset[str] = frozenset((*self.keys, *(key.removesuffix(".md") for key in self.keys)))

    @property
    def keys(self) -> frozenset[str]:
        """Return the old and new name keys of all moved files; links with other names keep their meaning."""
        return frozenset((*self._old, *self._new))

    def may_affect(self, target: str) -> bool:
        """Return whether the move can change what a target means."""
        return documents.link_key(target) in self._affected_keys

    def resolve_before(self, target: str, source: NotePath) -> Resolution:
        """Find the file that a link's target meant before the move.

        In a file that the client sees, a link to a hidden file counts as unresolved: a rewrite would reveal the path.
        """
        return self._hide_invisible(self.before.resolve(target, source), source)

    def resolves_after(self, target: str, source: NotePath) -> bool:
        """Return whether a link's target means a file after the move, as far as the client may know."""
        return self._hide_invisible(self.after.resolve(target, source), source).path is not None

    def _hide_invisible(self, resolution: Resolution, source: NotePath) -> Resolution:
        if resolution.path is None or self._sees(resolution.path) or not self._sees(source):
            return resolution
        return Resolution(path=None)

    def path_after(self, path: NotePath) -> NotePath:
        """Return the path of a file after the move; the file needn't exist."""
        if path in self.files:
            return self.files[path]
        for above in reversed(paths.parent_folders(path)):
            if above in self.folders:
                return NotePath(self.folders[above] + path[len(above) :])
        return path

    def _files_before(self, key: str) -> list[NotePath]:
        indexed = set(self._lookup(key))
        existing = {path for path in indexed if os.path.lexists(f"{self._root}/{path}")}
        self.gone |= indexed - existing
        return sorted(existing.union(self._old.get(key, ())))

    def _files_after(self, key: str) -> list[NotePath]:
        stay = {path for path in self.before.files(key) if path not in self.files}
        return sorted(stay.union(self._new.get(key, ())))


def _group_by_key(files: Iterable[NotePath]) -> dict[str, list[NotePath]]:
    by_key: dict[str, list[NotePath]] = {}
    for path in files:
        by_key.setdefault(documents.link_key(path), []).append(path)
    return by_key


_LAST_MOVE = """SELECT c.seq FROM steps s JOIN changes c ON c.id = s.change
    WHERE s.kind = 'move' AND s.source = ? AND s.target = ? AND c.phase IN ('applied', 'done') AND NOT c.undone
    ORDER BY c.seq DESC LIMIT 1"""
_NEXT_MOVE = """SELECT c.seq, s.target FROM steps s JOIN changes c ON c.id = s.change
    WHERE s.kind = 'move' AND s.source = ? AND c.seq > ? AND c.phase IN ('applied', 'done') AND NOT c.undone
    ORDER BY c.seq LIMIT 1"""
_REPLACED_FILES = """SELECT s.target, s.before, s.after FROM steps s JOIN changes c ON c.id = s.change
    WHERE c.seq = ? AND s.kind = 'replace' ORDER BY s.number"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRewrite:
    """An earlier change of one file, by the hashes before and after."""

    journal: Journal
    before: str
    after: str

    def read(self) -> tuple[bytes, bytes] | None:
        """Return the file's content before and after; None if the journal has dropped it."""
        try:
            return self.journal.content(self.before), self.journal.content(self.after)
        except NotFound:
            # The journal keeps contents for a limited time only.
            return None


class LinkHistory:
    """Lookup of what earlier moves rewrote."""

    def __init__(self, journal: Journal) -> None:
        """Wrap the vault's journal."""
        self._journal: Journal = journal

    def of(self, moves: Iterable[tuple[NotePath, NotePath]]) -> Mapping[NotePath, list[PastRewrite]]:
        """Return what was rewritten when files were moved the other way, the oldest first.

        Args:
            moves: Old and new path of each file or folder that moves now.

        Returns:
            By the path that each rewritten file has now.
        """
        rewrites: dict[NotePath, list[PastRewrite]] = {}
        with self._journal.reading() as database:
            found = (_find_departure(database, old, new) for old, new in moves)
            for number in sorted({number for number in found if number is not None}):
                for target, before, after in database.execute(_REPLACED_FILES, (number,)).fetchall():
                    past = PastRewrite(journal=self._journal, before=before, after=after)
                    rewrites.setdefault(_current_path(database, target, number), []).append(past)
        return rewrites


def _find_departure(database: sqlite3.Connection, old: NotePath, new: NotePath) -> int | None:
    """Return the last change that moved a file, or a folder above it, from its new path to its current one."""
    for above in _path_and_parents(new):
        suffix = new[len(above) :]
        if not old.endswith(suffix):
            return None
        row = database.execute(_LAST_MOVE, (above, old.removesuffix(suffix))).fetchone()
        if row is not None:
            return int(row[0])
    return None


def _current_path(database: sqlite3.Connection, path: str, since: int) -> NotePath:
    """Follow a file through the moves that came after a change."""
    while True:
        later_moves = [
            (row, above)
            for above in _path_and_parents(path)
            if (row := database.execute(_NEXT_MOVE, (above, since)).fetchone())
        ]
        if not later_moves:
            return NotePath(path)
        (since, target), above = min(later_moves, key=lambda one: int(one[0][0]))
        path = target + path[len(above) :]


def _path_and_parents(path: str) -> Iterator[str]:
    yield path
    yield from reversed(paths.parent_folders(path))
