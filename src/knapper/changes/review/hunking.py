"""Cut drafts into what can be accepted by itself, and put chosen parts together again."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from knapper.changes.drafts import Capability, FileDraft
from knapper.changes.review import proposal_records
from knapper.changes.review.proposal_records import ItemKind, ItemState, ProposedFile, ProposedHunk
from knapper.changes.text import diff
from knapper.changes.text.diff import Hunk
from knapper.errors import BadInput, NotFound
from knapper.vault import parser, source

_OF_EDITED: Final = frozenset[Capability]({"add", "delete"})
"""What a client must be allowed to do for text that was put in a hunk's place: it may be any, and is no mere link."""


def cut(file: FileDraft, number: int, proposal: str) -> ProposedFile:
    """Make what is proposed for a file.

    Args:
        file: What would happen to it.
        number: From 1, in the proposal.
        proposal: The proposal's id.
    """
    made = ProposedFile(
        number=number,
        path=file.path,
        kind=_kind(file),
        target=file.target,
        trash=file.trash,
        base=file.base,
        before=file.before,
        content=file.after,
        needs=file.needs,
        anchored=file.anchored,
        cause=file.cause,
        requests=file.requests,
    )
    if made.kind != "edit" or file.before is None:
        return with_hunks(made, proposal, ())
    found = diff.hunks(file.before, file.after or b"")
    return with_hunks(
        replace(made, content=None),
        proposal,
        tuple(_numbered(proposal, number, place, one, file.before) for place, one in enumerate(found, start=1)),
    )


def _kind(file: FileDraft) -> ItemKind:
    if file.trash is not None:
        return "trash"
    if file.target is not None:
        return "move"
    return "create" if file.before is None else "edit"


def _numbered(proposal: str, file: int, number: int, hunk: Hunk, origin: bytes) -> ProposedHunk:
    own = replace(hunk, id=proposal_records.hunk_id(proposal, file, number))
    return ProposedHunk(number=number, id=f"{file}.{number}", hunk=own, origin=origin)


def with_hunks(
    file: ProposedFile, proposal: str, hunks: Sequence[ProposedHunk], *, edited: bool = False
) -> ProposedFile:
    """Give a file its hunks: an edit those it is made of, anything else those that show its text.

    Args:
        file: What is proposed for the file.
        proposal: The proposal's id.
        hunks: Of an edit; no others count.
        edited: Whether the text of something else is another than was proposed.
    """
    if file.kind == "edit":
        placed = _placed(hunks)
        return replace(file, hunks=placed, state=_state(placed))
    if file.content is None or file.kind == "trash":
        return replace(file, hunks=())
    origin = file.before or b""
    whole = [_new(file.content)] if file.kind == "create" else diff.hunks(origin, file.content)
    shown = tuple(
        replace(
            _numbered(proposal, file.number, number, one, origin),
            state=file.state,
            stale=file.stale,
            edited=edited,
            reason=file.reason,
        )
        for number, one in enumerate(whole, start=1)
    )
    return replace(file, hunks=shown)


def again(file: ProposedFile, proposal: str) -> ProposedFile:
    """Bring a file's hunks, and its state, in line with what was changed of it."""
    return with_hunks(file, proposal, file.hunks, edited=any(one.edited for one in file.hunks))


def _new(content: bytes) -> Hunk:
    return Hunk(id="", start=0, old=b"", new=content, old_start_line=1, new_start_line=1)


def _placed(hunks: Sequence[ProposedHunk]) -> tuple[ProposedHunk, ...]:
    """Tell each hunk where its new text begins if those before it are accepted."""
    shift = 0
    placed: list[ProposedHunk] = []
    for one in sorted(hunks, key=lambda one: (one.hunk.start, one.number)):
        placed.append(replace(one, hunk=replace(one.hunk, new_start_line=one.hunk.old_start_line + shift)))
        if one.state == "open" and one.stale is None:
            shift += len(one.hunk.new.splitlines()) - len(one.hunk.old.splitlines())
    return tuple(sorted(placed, key=lambda one: one.number))


def _state(hunks: Sequence[ProposedHunk]) -> ItemState:
    states = {one.state for one in hunks}
    return "open" if "open" in states else "accepted" if "accepted" in states else "rejected"


def edited(file: ProposedFile, number: int, text: str, proposal: str) -> ProposedFile:
    """Put another text in the place of a hunk's new side, in the hunk's own line endings.

    Raises:
        NotFound: The file has no hunk of this number.
        BadInput: The hunk isn't open, is part of a move, or would change nothing.
    """
    one = find(file, number)
    if one.state != "open" or file.kind not in {"edit", "create"}:
        what = f"is {one.state}" if one.state != "open" else "is part of a move"
        raise BadInput(f"hunk {one.id} {what}, and can't be edited", hint="make the change anew", code="not_open")
    changed = diff.edited(one.hunk, text)
    if changed.new == one.hunk.old:
        raise BadInput(f"with this text, hunk {one.id} changes nothing", hint="reject it instead", code="no_change")
    if file.kind == "create":
        return with_hunks(replace(file, content=changed.new), proposal, (), edited=True)
    own = replace(one, hunk=replace(one.hunk, new=changed.new), edited=True)
    return with_hunks(file, proposal, [own if other.number == number else other for other in file.hunks])


def find(file: ProposedFile, number: int) -> ProposedHunk:
    """Give a hunk by its number.

    Raises:
        NotFound: The file has none.
    """
    for one in file.hunks:
        if one.number == number:
            return one
    hint = f"there are: {', '.join(one.id for one in file.hunks)}" if file.hunks else "accept or reject the whole file"
    raise NotFound(f"'{file.path}' has no hunk {file.number}.{number}", hint=hint, code="hunk_not_found")


def drafted(file: ProposedFile, numbers: Collection[int]) -> FileDraft:
    """Make the draft of a file with some of its hunks.

    Args:
        file: What is proposed.
        numbers: The hunks of an edit that are wanted; anything else is taken whole.
    """
    after, needs, cause = file.content, file.needs, file.cause
    if file.kind == "edit" and file.before is not None:
        wanted = [one for one in file.waiting if one.number in numbers]
        after = diff.apply_hunks(file.before, (one.hunk for one in wanted))
        if any(one.edited for one in wanted):
            needs, cause = needs | _OF_EDITED, "asked"
    return FileDraft(
        path=file.path,
        base=file.base,
        before=file.before,
        after=after,
        target=file.target,
        trash=file.trash,
        needs=needs,
        anchored=file.anchored,
        cause=cause,
        requests=file.requests,
    )


def advanced(file: ProposedFile, numbers: Collection[int], done: FileDraft | None) -> ProposedFile:
    """Mark what was accepted, and move the hunks that stay to where their text stands now.

    Args:
        file: What is proposed.
        numbers: The hunks of an edit that were accepted.
        done: What became of the file; None where the hunks that stay have to be fitted to it first.
    """
    if file.kind != "edit":
        return replace(file, state="accepted", stale=None)
    sizes = [(one.hunk.start, len(one.hunk.new) - len(one.hunk.old)) for one in file.hunks if one.number in numbers]
    kept: list[ProposedHunk] = []
    for one in file.hunks:
        if one.number in numbers:
            kept.append(replace(one, state="accepted", stale=None))
        elif done and done.after is not None and one.state == "open" and one.origin == done.before:
            start = one.hunk.start + sum(size for place, size in sizes if place < one.hunk.start)
            line = source.line_number_at(done.after, start)
            kept.append(replace(one, origin=done.after, hunk=replace(one.hunk, start=start, old_start_line=line)))
        else:
            kept.append(one)
    placed = _placed(kept)
    if done is None or done.after is None:
        return replace(file, hunks=placed, state=_state(placed))
    return replace(file, hunks=placed, state=_state(placed), before=done.after, base=parser.content_hash(done.after))


def closed(file: ProposedFile, numbers: Collection[int], state: ItemState, reason: str) -> ProposedFile:
    """Mark hunks of an edit, or anything else as a whole, as accepted or rejected."""
    if file.kind != "edit":
        return replace(file, state=state, reason=reason)
    marked = tuple(
        replace(one, state=state, reason=reason) if one.number in numbers and one.state == "open" else one
        for one in file.hunks
    )
    return replace(file, hunks=marked, state=_state(marked))
