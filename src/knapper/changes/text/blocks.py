r"""Show edits that wait for a person's word inside the note, and take them out again without a trace.

An edit takes whole lines. They are replaced by a fence that holds both sides, in their own line endings, as JSON in one
line, and by the tag's line below::

    ```ai-edit
    {"id":"1f2e3d4c-5b6a79","type":"replace","before":"old\n","after":"new\n"}
    ```
    #ai_edit

The tag's line ending belongs to the block, so that putting either side in its place gives exact bytes. The id ends in a
sum over both sides, by which a block is recognised that somebody changed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.changes.text import block_text, regions, snapshots, splices
from knapper.changes.text.diff import Hunk
from knapper.changes.text.regions import Region
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.vault import pending
from knapper.vault.pending import PendingBlock

Choice = Literal["accept", "reject"]

_HIDING: Final = re.compile(r"```|~~~|%%|\$\$|<|ai[-_]edit|(?:^|[\r\n])(?: {4}|\t)")
"""What can make other blocks part of code, maths, a comment or raw HTML."""
_MAX_TRIED_BYTES: Final = 20_000_000
_WHY: Final[Mapping[str, str]] = {
    "unclosed": "its fence isn't closed",
    "invalid_json": "its JSON can't be read",
    "invalid_fields": "its fields aren't those of an edit",
    "missing_tag": "its tag #ai_edit is gone",
    "missing_fence": "its opening fence is gone",
    "missing_block": "only its tag #ai_edit is left",
    "indented": "it was moved into a list, a quote or behind spaces",
    "duplicate_id": "another block has its id",
    "edited": "its text was changed by hand",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Hold a note with blocks in it."""

    raw: bytes
    ids: Mapping[str, tuple[str, ...]]
    """Block id to the hunks that it holds; hunks inside one fence, comment or formula share a block."""


def insert(snapshot: Snapshot, hunks: Sequence[Hunk]) -> Rendered:
    """Put hunks into a note as blocks that wait.

    A change inside code, maths or a comment shows the whole of it, because a fence would end it there. Changes of which
    one alone would hide the other, such as the two ends of a new fence, are one block.

    Args:
        snapshot: The note that the hunks were made against.
        hunks: From `diff.hunks`.

    Raises:
        BadInput: A hunk lies in the frontmatter, isn't text, or can't be shown.
        ConflictError: A hunk touches a block that waits there already.
    """
    if not hunks:
        raise BadInput("There are no hunks to show.", code="no_change")
    guard(snapshot, [hunk.splice for hunk in hunks])
    for touching in (False, True):
        found = regions.choose(snapshot, hunks, touching=touching)
        while (rendered := _rendered(snapshot, found)) is not None:
            hiding = _hiding(snapshot, rendered.raw, found)
            if hiding is None or len(found) == 1:
                return rendered
            found = regions.joined(found, hiding)
    message = f"The change in line {hunks[0].old_start_line} can't be shown as a block there."
    raise BadInput(message, hint=regions.ELSEWHERE, code="not_in_text")


def _rendered(snapshot: Snapshot, found: Sequence[Region]) -> Rendered | None:
    """Put blocks in the place of regions; None where they aren't found again, or the note doesn't come back."""
    names = [_name(snapshot, region) for region in found]
    made = [_block(snapshot, region, name) for region, name in zip(found, names, strict=True)]
    raw = splices.merge(snapshot.raw, made)
    shown = snapshots.take(raw)
    there = _whole(shown)
    if not {*names, *_whole(snapshot)} <= there.keys():
        return None
    if splices.merge(raw, [_resolution(shown, there[name], "reject") for name in names]) != snapshot.raw:
        return None
    ids = {name: tuple(hunk.id for hunk in region.hunks) for name, region in zip(names, found, strict=True)}
    return Rendered(raw=raw, ids=ids)


def _name(snapshot: Snapshot, region: Region) -> str:
    return block_text.name(region.hunks[0].id, *regions.sides(snapshot, region))


def _block(snapshot: Snapshot, region: Region, name: str) -> Splice:
    text = block_text.write(name, *regions.sides(snapshot, region))
    # Never a bare carriage return: a side that begins with a line feed would become one line ending with it.
    newline = "\r\n" if snapshot.outline.newline == "\r\n" else "\n"
    return Splice(start=region.start, stop=region.stop, new=text.replace("\n", newline).encode())


def _hiding(snapshot: Snapshot, raw: bytes, found: Sequence[Region]) -> int | None:
    """Find a region that hides another block once it is resolved alone."""
    shown = snapshots.take(raw)
    there = _whole(shown)
    left = _MAX_TRIED_BYTES
    # Where a bare carriage return ends lines, what stands between blocks can change its meaning with them too.
    usual = snapshot.outline.newline in {"\n", "\r\n"}
    for place, region in enumerate(found):
        if usual and not any(map(_HIDING.search, regions.sides(snapshot, region))):
            continue
        own = there[_name(snapshot, region)]
        for choice in ("accept", "reject"):
            left -= len(raw)
            after = splices.merge(raw, [_resolution(shown, own, choice)]) if left > 0 else raw
            if not there.keys() - {own.id} <= _whole(snapshots.take(after)).keys():
                return place
    return None


def _whole(snapshot: Snapshot) -> dict[str, PendingBlock]:
    return {block.id: block for block in find(snapshot) if not why(block)}


def find(snapshot: Snapshot) -> tuple[PendingBlock, ...]:
    """List the blocks of a note; those with a `problem`, or for which `why` has words, can't be resolved."""
    return pending.find_pending(snapshot.raw, snapshot.outline)


def why(block: PendingBlock) -> str:
    """Tell what keeps a block from being resolved; empty where nothing does."""
    if block.problem is not None:
        return _WHY[block.problem]
    return "" if block_text.is_intact(block) else _WHY["edited"]


def accept(snapshot: Snapshot, block_id: str) -> Splice:
    """Put a block's new text in its place.

    Raises:
        NotFound: There is no such block.
        ConflictError: A person edited it, or a part of it is gone.
    """
    return _resolution(snapshot, _get(snapshot, block_id), "accept")


def reject(snapshot: Snapshot, block_id: str) -> Splice:
    """Put a block's old text back in its place.

    Raises:
        NotFound: There is no such block.
        ConflictError: A person edited it, or a part of it is gone.
    """
    return _resolution(snapshot, _get(snapshot, block_id), "reject")


def resolve_all(snapshot: Snapshot, choice: Choice | Mapping[str, Choice]) -> tuple[Splice, ...]:
    """Resolve all blocks of a note at once, or those that are named.

    Args:
        snapshot: The note.
        choice: One for all, or one for each id.

    Returns:
        A splice a block; empty where the note has none.

    Raises:
        NotFound: A named block isn't there.
        ConflictError: One can't be resolved; then none is.
    """
    if isinstance(choice, str):
        broken = [block for block in find(snapshot) if why(block)]
        if broken:
            raise _broken(broken)
        return tuple(_resolution(snapshot, block, choice) for block in find(snapshot))
    return tuple(_resolution(snapshot, _get(snapshot, name), one) for name, one in choice.items())


def _get(snapshot: Snapshot, block_id: str) -> PendingBlock:
    blocks = find(snapshot)
    found = [block for block in blocks if block.id == block_id]
    if not found:
        names = ", ".join(block.id for block in blocks if block.id)
        torn = [block for block in blocks if not block.id]
        hint = f"The note has {names}." if names else "The note has no block that waits."
        if torn:
            hint += f" In line {torn[0].line} one is left of which {why(torn[0])}."
        raise NotFound(f"There is no pending edit {block_id!r}.", hint=hint, code="block_not_found")
    broken = [block for block in found if why(block)]
    if broken:
        raise _broken(broken)
    return found[0]


def _broken(blocks: Sequence[PendingBlock]) -> ConflictError:
    named = [f"{block.id or 'a pending edit'} in line {block.line}: {why(block)}" for block in blocks]
    message = f"Can't be resolved: {'; '.join(named)}."
    hint = "Nothing was guessed or changed. Mend the block, or take it out of the note by hand."
    details: dict[str, object] = {"lines": [block.line for block in blocks]}
    return ConflictError(message, hint=hint, code="block_broken", details=details)


def _resolution(snapshot: Snapshot, block: PendingBlock, choice: Choice) -> Splice:
    """Put a side in a block's place.

    A side without a last line ending was the file's end, or comes from another program, whose sides are lines without
    endings: the tag's line ending stays then where text follows, so that no line is joined to another.
    """
    text = block.after if choice == "accept" else block.before
    own = block_text.is_own(block)
    new = text.encode() if own else snapshot.encode(text, block.start)
    ended = not new or new.endswith((b"\n", b"\r"))
    at_end = block.stop == len(snapshot.raw) and own
    stop = block.stop if ended or at_end else block.tag_stop
    return Splice(start=block.start, stop=stop, new=new)


def guard(snapshot: Snapshot, made: Iterable[Splice]) -> None:
    """Refuse changes that would cut into a whole block that waits; a damaged one can be mended.

    Raises:
        ConflictError: One does; the message names the block and its lines.
    """
    blocks = [block for block in find(snapshot) if not why(block)]
    for splice in made if blocks else ():
        for block in blocks:
            inside = splice.start < block.stop and splice.stop > block.start
            if inside and (splice.start, splice.stop) != (block.start, block.stop):
                last = snapshot.lines.number(block.stop - 1)
                place = splices.place(snapshot.raw, splice)
                cuts = "cut" if place.startswith("lines ") else "cuts"
                message = f"{place.capitalize()} {cuts} into the pending edit {block.id}, lines"
                hint = "Accept or reject it first."
                raise ConflictError(f"{message} {block.line}-{last}.", hint=hint, code="block_touched")
