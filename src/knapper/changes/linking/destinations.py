"""Check what is asked to move, and where to, before anything is made of it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from knapper.changes.requests import Move
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.vault import files, paths, walk
from knapper.vault.paths import NotePath
from knapper.vault.view import View

_UNWISE: Final = frozenset({"breaks_links", "dot_name"})
"""Problems of a new name that are told, and don't stand in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Hold one file or folder that is to get another path."""

    source: NotePath
    target: NotePath
    files: tuple[NotePath, ...]
    """All files that move with it, by their paths before; a file has itself."""
    is_folder: bool = False
    is_whole: bool = False
    """The folder moves by itself, with all that it holds; otherwise the client's files in it do, one by one."""
    notices: tuple[str, ...] = ()

    def pairs(self) -> Iterator[tuple[NotePath, NotePath]]:
        """Give each file's old and new path."""
        for file in self.files:
            yield file, NotePath(self.target + file[len(self.source) :])


def plan(view: View, moves: Sequence[Move]) -> list[Planned]:
    """Check moves; each is read against the files as they are, and none against another's outcome.

    Raises:
        BadInput: A path can't be one, a name can't be used, a folder would go into itself, nothing would change, or two
            moves get in each other's way.
        NotFound: There is no such file or folder that the client sees.
        Ambiguous: Several spellings fit, none of them exactly.
        RefusedError: The new place isn't visible to the client, or lies out of the vault.
        ConflictError: Something has the new path already (code ``exists``): nothing is ever overwritten.
    """
    planned = [_plan(view, move) for move in moves]
    _check_apart(planned)
    return planned


def _plan(view: View, move: Move) -> Planned:
    source, files, is_folder = _source(view, move.source)
    asked = _asked(view, move.destination, source, is_folder=is_folder)
    target = _target(view, Planned(source=source, target=asked, files=files, is_folder=is_folder))
    planned = Planned(source=source, target=target, files=files, is_folder=is_folder)
    return Planned(
        source=source,
        target=target,
        files=files,
        is_folder=is_folder,
        is_whole=is_folder and _is_whole(view, planned),
        notices=(*_name_notices(view, source, target), *_kind_notices(planned)),
    )


def _asked(view: View, raw: str, source: NotePath, *, is_folder: bool) -> NotePath:
    """Complete a destination: ``Folder/`` is a place in that folder, and a note's name without ending is a note's."""
    if raw.endswith("/"):
        return paths.parse(raw + paths.base_name(source), root=view.root)
    is_bare = not is_folder and walk.kind_of(source) == "note" and raw and not paths.suffix(raw)
    if is_bare and not _is_folder(view, paths.parse(raw, root=view.root)):
        raw += paths.suffix(source)
    return paths.parse(raw, root=view.root)


def _is_folder(view: View, path: NotePath) -> bool:
    """Tell whether a folder is there, as far as the client may know."""
    if not (view.root / path).is_dir():
        return False
    return view.visible(NotePath(f"{path}/note.md")) or bool(view.files_at(view.root / path)[1])


def _source(view: View, raw: str) -> tuple[NotePath, tuple[NotePath, ...], bool]:
    """Find what is to move: its path, the files in it that the client sees, and whether it is a folder."""
    try:
        path = view.path(raw)
    except NotFound:
        folder = _folder(view, paths.parse(raw, root=view.root))
        if folder is None:
            raise
        _, seen = view.files_at(view.root / folder)
        files = tuple(file.path for file in seen)
        if not files and not view.policy.sees_all:
            raise  # for the client, nothing is there
        return folder, files, True
    return path, (path,), False


def _folder(view: View, path: NotePath) -> NotePath | None:
    try:
        found = files.find_path(view.root, path)
    except KnapError:
        return None
    is_folder = found.file.is_dir() and not view.ignore.hides(found.path, is_folder=True)
    return found.path if is_folder else None


def _target(view: View, wanted: Planned) -> NotePath:
    """Find the new path in the spelling of the folders that are there.

    The rules come before the disk is asked, so that no answer tells what is hidden there.
    """
    source, asked = wanted.source, wanted.target
    _check_visible(view, wanted, asked)
    found = files.find_path(view.root, asked, must_exist=False).path
    if found == source:  # at most another spelling of its name
        found = NotePath(found[: len(found) - len(paths.base_name(found))] + paths.base_name(asked))
    if found == source:
        hint = "name another path"
        raise BadInput(f"nothing would change: {paths.quote_path(source)} lies there", hint=hint, code="no_change")
    if paths.name_key(found).startswith(f"{paths.name_key(source)}/"):
        hint = "name a folder outside of it"
        raise BadInput(f"{paths.quote_path(source)} can't be moved into itself", hint=hint, code="into_itself")
    _check_visible(view, replace(wanted, target=found), asked)
    _check_free(view, source, found)
    return found


def _check_visible(view: View, wanted: Planned, asked: NotePath) -> None:
    places = [place for _, place in wanted.pairs()]
    if not wanted.is_folder:  # a name that only a hidden folder may have can be no file's: it would tell of the folder
        places.append(NotePath(f"{wanted.target}/note.md"))
    if not all(map(view.visible, places)):
        hint = "choose another folder; hidden and ignored ones aren't written to"
        raise RefusedError(f"{paths.quote_path(asked)} wouldn't be visible", hint=hint, code="hidden")


def _check_free(view: View, source: NotePath, target: NotePath) -> None:
    for above in paths.parent_folders(target):
        if (view.root / above).is_file():
            msg = f"{paths.quote_path(above)} is a file, so that nothing can lie in it"
            raise BadInput(msg, hint="choose another folder", code="not_a_folder")
    there = view.root / target
    if not os.path.lexists(there) or (
        paths.name_key(source) == paths.name_key(target) and there.samefile(view.root / source)
    ):
        return
    hint = f"choose another name, such as {paths.quote_path(_free_name(view, target))}; nothing is ever overwritten"
    if there.is_dir():
        hint = f"to put it into that folder, name {paths.quote_path(f'{target}/{paths.base_name(source)}')}"
    raise ConflictError(f"{paths.quote_path(target)} exists already", hint=hint, code="exists")


def _free_name(view: View, target: NotePath) -> str:
    whole, suffix = target.removesuffix(paths.suffix(target)), paths.suffix(target)
    number = 1
    while os.path.lexists(view.root / (name := f"{whole} {number}{suffix}")) or not view.visible(NotePath(name)):
        number += 1
    return name


def _name_notices(view: View, source: NotePath, target: NotePath) -> list[str]:
    """Look at the new parts of a path; a name that a file has already is its own affair.

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
        if problem.code not in _UNWISE:
            raise BadInput(problem.message, code=problem.code, hint="choose another name")
        notices.append(problem.message)
    return notices


def _kind_notices(planned: Planned) -> list[str]:
    if planned.is_folder:
        return []
    old, new = walk.kind_of(planned.source), walk.kind_of(planned.target)
    if old == new:
        return []
    return [f"{planned.target} is read as {_KINDS[new]} from now on, and no more as {_KINDS[old]}"]


_KINDS: Final = {"note": "a note", "canvas": "a canvas", "base": "a base", "attachment": "an attachment"}


def _is_whole(view: View, planned: Planned) -> bool:
    """Tell whether a folder may move by itself: nothing that is kept from the client moves or comes to light by it."""
    if view.policy.sees_all:
        return True
    seen = set(planned.files)
    for file in _all_below(view, planned.source):
        place = planned.target + file[len(planned.source) :]
        if file not in seen and (not view.policy.visible(file) or view.visible(NotePath(place))):
            return False
    return True


def _all_below(view: View, folder: NotePath) -> Iterator[str]:
    base = os.fspath(view.root)
    for at, _, names in os.walk(view.root / folder):
        for name in names:
            yield os.path.relpath(f"{at}/{name}", base).replace(os.sep, "/")


def _check_apart(planned: Sequence[Planned]) -> None:
    """Refuse moves of which one touches a place that another one needs."""
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
