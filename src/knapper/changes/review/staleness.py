"""Fit what was proposed to files as they are now, or say why it doesn't fit any more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from knapper.changes.review.proposal_records import Proposal, ProposedFile, ProposedHunk, Stale
from knapper.changes.text import diff, splices
from knapper.errors import BadInput, ConflictError
from knapper.vault import parser, source
from knapper.vault.paths import NotePath

_SHOWN: Final = 600


def moved(proposal: Proposal, current: Mapping[NotePath, bytes | None]) -> list[ProposedFile]:
    """Fit the files of a proposal to what they hold now, and give those of which something is another.

    Args:
        proposal: As it was.
        current: What files hold, None for those that aren't there; of others nothing is known.
    """
    leaving = {file.path for file in proposal.files if file.target is not None or file.trash is not None}
    found: list[ProposedFile] = []
    for file in proposal.files:
        if file.path not in current:
            continue
        taken = file.target not in {None, *leaving} and current.get(file.place) is not None
        fitted = refit(file, current[file.path], target_taken=taken)
        if fitted != file:
            found.append(fitted)
    return found


def refit(file: ProposedFile, current: bytes | None, *, target_taken: bool = False) -> ProposedFile:
    """Fit what is open of a file to what it holds now.

    A hunk fits where its lines and two on each side stand unchanged, at one place only; what didn't fit before may
    fit again.

    Args:
        file: What is proposed for it.
        current: What it holds; None where it is gone, or isn't made yet.
        target_taken: Whether something else has the path that it would be moved to.

    Returns:
        The same with new places, or with the cause for each part that is stale.
    """
    if file.state != "open":
        return file
    match file.kind:
        case "edit":
            return _edit(file, current)
        case "create":
            return replace(file, stale=None if current is None else _exists(file.path))
        case "trash":
            return replace(file, stale=_gone(file) if current is None else _same(file, current))
        case "move":
            if current is None:
                return replace(file, stale=_gone(file))
            return replace(file, stale=_exists(file.target or "")) if target_taken else _move(file, current)


def _edit(file: ProposedFile, current: bytes | None) -> ProposedFile:
    if current is None:
        gone = _gone(file)
        return replace(
            file, hunks=tuple(replace(one, stale=gone) if one.state == "open" else one for one in file.hunks)
        )
    fitted: dict[int, ProposedHunk] = {}
    standing: list[splices.Splice] = []
    for one in sorted(file.hunks, key=lambda one: one.stale is not None):
        fits = _hunk(one, current) if one.state == "open" else one
        if fits.state == "open" and fits.stale is None:
            if not _go_together(current, [*standing, fits.hunk.splice]):
                fits = replace(one, stale=_changed(current, one.hunk.start))
            else:
                standing.append(fits.hunk.splice)
        fitted[one.number] = fits
    hunks = tuple(fitted[one.number] for one in file.hunks)
    return replace(file, hunks=hunks, before=current, base=parser.content_hash(current))


def _hunk(one: ProposedHunk, current: bytes) -> ProposedHunk:
    try:
        moved = splices.rebase(one.hunk.splice, one.origin, current)
    except ConflictError as error:
        line, text = error.details.get("line"), error.details.get("current_text")
        cause = Stale(
            code="changed",
            message=error.message,
            line=line if isinstance(line, int) else None,
            current_text=text if isinstance(text, str) else "",
        )
        return replace(one, stale=cause)
    hunk = replace(one.hunk, start=moved.start, old_start_line=source.line_number_at(current, moved.start))
    return replace(one, origin=current, hunk=hunk, stale=None)


def _go_together(current: bytes, made: Sequence[splices.Splice]) -> bool:
    try:
        splices.order(current, made)
    except BadInput:
        return False
    return True


def _move(file: ProposedFile, current: bytes) -> ProposedFile:
    """Take a note along as it is now, with the links in it that follow."""
    if file.before is None or file.content is None:
        return replace(file, stale=_same(file, current))
    try:
        made = [splices.rebase(one.splice, file.before, current) for one in diff.hunks(file.before, file.content)]
    except ConflictError as error:
        line = error.details.get("line")
        return replace(file, stale=replace(_changed(current, 0), line=line if isinstance(line, int) else None))
    content = splices.merge(current, made)
    return replace(file, before=current, content=content, base=parser.content_hash(current), stale=None)


def _same(file: ProposedFile, current: bytes) -> Stale | None:
    """Compare a note with what it was; any other file is compared when it is moved or trashed."""
    if file.before is None or parser.content_hash(current) == file.base:
        return None
    return _changed(current, 0)


def _changed(current: bytes, at: int) -> Stale:
    shown = current[at : at + _SHOWN].decode(errors="replace")
    return Stale(code="changed", message="the file changed since this was proposed", current_text=shown)


def _gone(file: ProposedFile) -> Stale:
    return Stale(code="gone", message=f"'{file.path}' is gone")


def _exists(path: str) -> Stale:
    return Stale(code="exists", message=f"there is a file at '{path}' by now")
