"""Show what a proposal still waits for inside its notes, as blocks, and read from a note what a person did to them.

The state that a proposal's hunks fit is always the note without the proposal's own blocks.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.review import hunking
from knapper.changes.review.choices import Blocks, Chosen
from knapper.changes.review.proposal_records import ItemState, Proposal, ProposedFile, ProposedHunk
from knapper.changes.text import blocks, diff, snapshots, splices
from knapper.changes.text.diff import Hunk
from knapper.changes.text.snapshots import Snapshot
from knapper.errors import BadInput, ConflictError
from knapper.vault import parser
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Hold a note with blocks in it, as a draft."""

    draft: Draft
    blocks: Blocks
    """For `Drawings.put`, once the draft is applied."""
    left_out: tuple[str, ...] = ()
    """Hunks that can't be shown there, such as those of properties, each with the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Say what a person did to the blocks of a note."""

    states: Mapping[str, ItemState]
    """Hunk ids with what became of each; for `Drawings.mark`."""
    blocks: Blocks
    """Those that still wait."""
    problems: tuple[str, ...]
    """Blocks that were edited or half deleted, or whose outcome nobody can tell; never guessed."""


def render(file: ProposedFile, raw: bytes, shown: Blocks) -> Rendering:
    """Put what waits of an edit into its note, without what can't be shown there.

    Args:
        file: What is proposed, fitted to the note without blocks.
        raw: What the note holds.
        shown: Blocks of the proposal that it holds already; they are drawn anew.

    Raises:
        BadInput: Nothing of it can be shown as a block, or nothing waits.
        ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
    """
    plain = withdraw(raw, shown)
    _check_fits(file, plain)
    drawn, left_out = _drawn(file, plain)
    made = _draft(file, raw, drawn.raw)
    return Rendering(draft=Draft(files=(made,)), blocks=_named(file, drawn), left_out=left_out)


def _check_fits(file: ProposedFile, plain: bytes) -> None:
    if file.kind != "edit" or plain != file.before:
        what = "only edits are shown in their notes" if file.kind != "edit" else "the note changed meanwhile"
        raise ConflictError(f"'{file.path}': {what}", hint="fit the proposal to the note first", code="stale")


def _draft(file: ProposedFile, raw: bytes, after: bytes) -> FileDraft:
    return FileDraft(
        path=file.path,
        base=parser.content_hash(raw),
        before=raw,
        after=after,
        needs=frozenset({"add"}),
        anchored=True,
        cause=file.cause,
    )


def _drawn(file: ProposedFile, plain: bytes) -> tuple[blocks.Rendered, tuple[str, ...]]:
    """Draw all hunks, or else those that can be drawn one by one."""
    snapshot = snapshots.take(plain)
    try:
        return blocks.insert(snapshot, [one.hunk for one in file.waiting]), ()
    except (BadInput, ConflictError) as error:
        shown: list[Hunk] = []
        left_out: list[str] = []
        for one in file.waiting:
            cause = _why_not(snapshot, one)
            if cause:
                left_out.append(f"{one.id} of {file.path} isn't shown in the note: {cause}")
            else:
                shown.append(one.hunk)
        if not (shown and left_out):
            raise error from None
        return blocks.insert(snapshot, shown), tuple(left_out)


def _why_not(snapshot: Snapshot, one: ProposedHunk) -> str:
    try:
        _ = blocks.insert(snapshot, [one.hunk])
    except (BadInput, ConflictError) as error:
        return error.message
    return ""


def removal(file: ProposedFile, raw: bytes, shown: Iterable[str]) -> FileDraft:
    """Draft a note without blocks of a proposal: their old text stands in their place again, byte for byte.

    Args:
        file: What is proposed for it.
        raw: What it holds.
        shown: The blocks' ids.

    Raises:
        ConflictError: A block was edited by hand.
    """
    return FileDraft(
        path=file.path,
        base=parser.content_hash(raw),
        before=raw,
        after=withdraw(raw, shown),
        needs=frozenset({"delete"}),
        anchored=True,
        cause=file.cause,
    )


def withdraw(raw: bytes, shown: Iterable[str]) -> bytes:
    """Take blocks out of a note; those that it doesn't hold any more are left alone.

    Raises:
        ConflictError: One was edited by hand.
    """
    wanted = set(shown)
    if not wanted:
        return raw
    snapshot = snapshots.take(raw)
    there = [block.id for block in blocks.find(snapshot) if block.id in wanted]
    return splices.merge(raw, blocks.resolve_all(snapshot, dict.fromkeys(there, "reject")))


def standing(raw: bytes, shown: Collection[str]) -> set[str]:
    """Tell which of some blocks stand in a note as they were drawn."""
    if not shown:
        return set()
    return {block.id for block in blocks.find(snapshots.take(raw)) if block.id in shown and not blocks.why(block)}


def redraw(old: ProposedFile, new: ProposedFile, raw: bytes, shown: Blocks, hunk: str) -> Rendering | None:
    """Draw the blocks of a note anew, because one of the hunks that they show has another text.

    What can't be shown with that text waits outside of the note.

    Args:
        old: What was proposed, fitted to the note without blocks.
        new: What is proposed now.
        raw: What the note holds.
        shown: Blocks of the proposal; those that are gone from the note stay so.
        hunk: Which has another text.

    Returns:
        None where no block in the note shows it.

    Raises:
        ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
    """
    there = {name: shown[name] for name in standing(raw, shown)}
    wanted = {name for hunks in there.values() for name in hunks}
    if hunk not in wanted:
        return None
    plain = withdraw(raw, there)
    _check_fits(old, plain)
    part = replace(new, hunks=tuple(one for one in new.hunks if one.id in wanted))
    after, drawn, left_out = _again(part, plain)
    made = _draft(new, raw, after)
    return Rendering(draft=Draft(files=(made,)), blocks=drawn, left_out=left_out)


def redrawn(
    proposal: Proposal, chosen: Chosen, plain: Draft, noted: Mapping[NotePath, bytes]
) -> tuple[Draft, dict[NotePath, Blocks]]:
    """Put what still waits into notes again that held blocks, so that accepting one leaves the others standing.

    Args:
        proposal: What was chosen from.
        chosen: What was.
        plain: Its draft, made against the notes without blocks.
        noted: What the notes with blocks hold.

    Returns:
        The draft against what the notes hold, and the blocks that they will hold.
    """
    files: list[FileDraft] = []
    left: dict[NotePath, Blocks] = {}
    for own in plain.files:
        raw = noted.get(own.path)
        if raw is None or own.before is None or own.after is None:
            files.append(own)
            continue
        file = next(file for file in proposal.files if file.path == own.path)
        rest = hunking.advanced(file, chosen[file.number], own)
        after, left[own.path], _ = _again(rest, own.after)
        files.append(replace(own, base=parser.content_hash(raw), before=raw, after=after))
    return replace(plain, files=tuple(files)), left


def _again(file: ProposedFile, content: bytes) -> tuple[bytes, Blocks, tuple[str, ...]]:
    """Draw what waits; where that can't be shown, it waits outside of the note, and why is told."""
    if not file.waiting:
        return content, {}, ()
    try:
        drawn, left_out = _drawn(file, content)
    except (BadInput, ConflictError) as error:
        return content, {}, (error.message,)
    return drawn.raw, _named(file, drawn), left_out


def _named(file: ProposedFile, drawn: blocks.Rendered) -> Blocks:
    names = {one.hunk.id: one.id for one in file.hunks}
    return {block: tuple(names[hunk] for hunk in held) for block, held in drawn.ids.items()}


def read_back(file: ProposedFile, raw: bytes, shown: Blocks) -> Seen:
    """Tell what a person did to the blocks of a note.

    A block that is gone was accepted where its new text stands in its place, and rejected where its old text does.

    Args:
        file: What is proposed, as it was when the blocks were drawn.
        raw: What the note holds.
        shown: The blocks that were drawn.
    """
    snapshot = snapshots.take(raw)
    found = {block.id: block for block in blocks.find(snapshot) if block.id in shown}
    problems = [f"line {block.line}: {blocks.why(block)}" for block in found.values() if blocks.why(block)]
    whole = [name for name, block in found.items() if not blocks.why(block)]
    current = splices.merge(raw, blocks.resolve_all(snapshot, dict.fromkeys(whole, "reject")))
    states: dict[str, ItemState] = {}
    still = {one.id for one in file.hunks if one.state == "open"}
    gone = [name for name, hunks in shown.items() if name not in found and not still.isdisjoint(hunks)]
    for one in (hunking.find(file, int(name.partition(".")[2])) for block in gone for name in shown[block]):
        state = _outcome(one, file, current, {name for block in gone for name in shown[block]})
        if state is None:
            problems.append(f"hunk {one.id}: its block is gone, and neither side stands in its place")
        elif one.state == "open":
            states[one.id] = state
    return Seen(states=states, blocks={name: shown[name] for name in whole}, problems=tuple(problems))


def _outcome(one: ProposedHunk, file: ProposedFile, current: bytes, gone: set[str]) -> ItemState | None:
    if _stands(one.hunk, one.origin, current):
        return "rejected"
    others = [other.hunk for other in file.waiting if other.id in gone]
    for chosen in (others, [one.hunk]):
        after = diff.apply_hunks(one.origin, chosen)
        shift = sum(len(other.new) - len(other.old) for other in chosen if other.start < one.hunk.start)
        turned = replace(one.hunk, start=one.hunk.start + shift, old=one.hunk.new, new=one.hunk.old)
        if _stands(turned, after, current):
            return "accepted"
    return None


def _stands(hunk: Hunk, origin: bytes, current: bytes) -> bool:
    try:
        splices.rebase(hunk.splice, origin, current)
    except ConflictError:
        return False
    return True
