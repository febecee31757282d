"""Edits that wait as blocks inside a note: written, found, and resolved without leaving a trace."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.changes.text import diff, splices
from knapper.changes.text.diff import Hunk, Region
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.vault import pending
from knapper.vault.pending import PendingBlock

_SUM_DIGITS: Final = 6
_OWN_ID: Final = re.compile(r"[0-9a-f]{8}-(?P<sum>[0-9a-f]{6})")
_BACKTICKS: Final = re.compile("`{3,}")
_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_MIN_FENCE: Final = 3


def block_name(hunk_id: str, before: str, after: str) -> str:
    """Return a block's id: that of its first hunk, and a checksum of both sides."""
    return f"{hunk_id}-{_checksum(before, after)}"


def _checksum(before: str, after: str) -> str:
    return hashlib.sha256(json.dumps([before, after]).encode()).hexdigest()[:_SUM_DIGITS]


def is_own_block(block: PendingBlock) -> bool:
    """Return whether this program made a block; other programs' blocks have lines without endings, and no checksum."""
    return _OWN_ID.fullmatch(block.id) is not None


def is_intact_block(block: PendingBlock) -> bool:
    """Return whether both sides are unchanged; always true for another program's block, which has no checksum."""
    own = _OWN_ID.fullmatch(block.id)
    return own is None or own["sum"] == _checksum(block.before, block.after)


def write_block(block_id: str, before: str, after: str) -> str:
    """Return a block's four lines; the fence is longer than any run of backticks inside."""
    kind = "replace" if before and after else "delete" if before else "add"
    edit = {"id": block_id, "type": kind, "before": before, "after": after}
    text = json.dumps(edit, ensure_ascii=False, separators=(",", ":"))
    text = _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    fence = "`" * max([_MIN_FENCE, *(len(ticks) + 1 for ticks in _BACKTICKS.findall(text))])
    return f"{fence}ai-edit\n{text}\n{fence}\n#ai_edit\n"


BlockChoice = Literal["accept", "reject"]

_HIDING_PATTERN: Final = re.compile(r"```|~~~|%%|\$\$|<|ai[-_]edit|(?:^|[\r\n])(?: {4}|\t)")
"""What can make other blocks part of code, maths, a comment or raw HTML."""
_MAX_TRIED_BYTES: Final = 20_000_000
_PROBLEM_TEXTS: Final[Mapping[str, str]] = {
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
class RenderedBlocks:
    """A note with blocks in it."""

    raw: bytes
    ids: Mapping[str, tuple[str, ...]]
    """Hunk ids by block id; hunks inside one fence, comment or formula share a block."""


def insert_blocks(snapshot: Snapshot, hunks: Sequence[Hunk]) -> RenderedBlocks:
    """Insert hunks into a note as blocks that wait.

    A change inside code, maths or a comment shows all of it, because a fence would end it there. Changes of which one
    alone would hide the other, such as the two ends of a new fence, share a block.

    Args:
        snapshot: The note that the hunks were made against.
        hunks: From `diff.diff_hunks`.

    Raises:
        BadInput: A hunk is in the frontmatter, isn't text, or can't be shown.
        ConflictError: A hunk overlaps a block that waits already.
    """
    if not hunks:
        raise BadInput("there are no hunks to show", code="no_change")
    check_blocks_untouched(snapshot, [hunk.splice for hunk in hunks])
    for touching in (False, True):
        found_regions = diff.choose_regions(snapshot, hunks, touching=touching)
        while (rendered := _render_regions(snapshot, found_regions)) is not None:
            hiding = _find_hiding_region(snapshot, rendered.raw, found_regions)
            if hiding is None or len(found_regions) == 1:
                return rendered
            found_regions = diff.join_regions(found_regions, hiding)
    message = f"the change in line {hunks[0].old_start_line} can't be shown as a block there"
    raise BadInput(message, hint=diff.REVIEW_AS_PROPOSAL_HINT, code="not_in_text")


def _render_regions(snapshot: Snapshot, found_regions: Sequence[Region]) -> RenderedBlocks | None:
    """Replace regions by blocks; None if they aren't found again, or rejecting them doesn't restore the note."""
    names = [_region_block_name(snapshot, region) for region in found_regions]
    # Never a bare carriage return: a side that begins with a line feed would become one line ending with it.
    newline = "\r\n" if snapshot.outline.newline == "\r\n" else "\n"
    block_splices: list[Splice] = []
    for region, name in zip(found_regions, names, strict=True):
        text = write_block(name, *diff.region_sides(snapshot, region)).replace("\n", newline)
        block_splices.append(Splice(start=region.start, stop=region.stop, new=text.encode()))
    raw = splices.merge(snapshot.raw, block_splices)
    rendered_snapshot = splices.take_snapshot(raw)
    present_blocks = _resolvable_blocks(rendered_snapshot)
    if not {*names, *_resolvable_blocks(snapshot)} <= present_blocks.keys():
        return None
    if (
        splices.merge(raw, [_resolution(rendered_snapshot, present_blocks[name], "reject") for name in names])
        != snapshot.raw
    ):
        return None
    ids = {name: tuple(hunk.id for hunk in region.hunks) for name, region in zip(names, found_regions, strict=True)}
    return RenderedBlocks(raw=raw, ids=ids)


def _region_block_name(snapshot: Snapshot, region: Region) -> str:
    return block_name(region.hunks[0].id, *diff.region_sides(snapshot, region))


def _find_hiding_region(snapshot: Snapshot, raw: bytes, found_regions: Sequence[Region]) -> int | None:
    """Return the index of a region that hides another block if it is resolved alone; None if there is none."""
    rendered_snapshot = splices.take_snapshot(raw)
    present_blocks = _resolvable_blocks(rendered_snapshot)
    byte_budget = _MAX_TRIED_BYTES
    # Where a bare carriage return ends lines, the text between blocks can change its meaning with them too.
    usual = snapshot.outline.newline in {"\n", "\r\n"}
    for place, region in enumerate(found_regions):
        if usual and not any(map(_HIDING_PATTERN.search, diff.region_sides(snapshot, region))):
            continue
        own = present_blocks[_region_block_name(snapshot, region)]
        for choice in ("accept", "reject"):
            byte_budget -= len(raw)
            after = splices.merge(raw, [_resolution(rendered_snapshot, own, choice)]) if byte_budget > 0 else raw
            if not present_blocks.keys() - {own.id} <= _resolvable_blocks(splices.take_snapshot(after)).keys():
                return place
    return None


def _resolvable_blocks(snapshot: Snapshot) -> dict[str, PendingBlock]:
    return {block.id: block for block in find_blocks(snapshot) if not block_problem(block)}


def find_blocks(snapshot: Snapshot) -> tuple[PendingBlock, ...]:
    """Return the blocks of a note; those with a `block_problem` can't be resolved."""
    return pending.find_pending(snapshot.raw, snapshot.outline)


def block_problem(block: PendingBlock) -> str:
    """Return what keeps a block from being resolved; empty if nothing does."""
    if block.problem is not None:
        return _PROBLEM_TEXTS[block.problem]
    return "" if is_intact_block(block) else _PROBLEM_TEXTS["edited"]


def accept_block(snapshot: Snapshot, block_id: str) -> Splice:
    """Return the splice that replaces a block by its new text.

    Raises:
        NotFound: There is no such block.
        ConflictError: A person edited it, or a part of it is gone.
    """
    return _resolution(snapshot, _get_block(snapshot, block_id), "accept")


def reject_block(snapshot: Snapshot, block_id: str) -> Splice:
    """Return the splice that replaces a block by its old text.

    Raises:
        NotFound: There is no such block.
        ConflictError: A person edited it, or a part of it is gone.
    """
    return _resolution(snapshot, _get_block(snapshot, block_id), "reject")


def resolve_blocks(snapshot: Snapshot, choice: BlockChoice | Mapping[str, BlockChoice]) -> tuple[Splice, ...]:
    """Return the splices that resolve all blocks of a note, or the named ones.

    Args:
        snapshot: The note.
        choice: One decision for all, or one for each id.

    Returns:
        A splice per block; empty if the note has none.

    Raises:
        NotFound: A named block isn't there.
        ConflictError: One can't be resolved; then none is.
    """
    if isinstance(choice, str):
        broken = [block for block in find_blocks(snapshot) if block_problem(block)]
        if broken:
            raise _broken_block_error(broken)
        return tuple(_resolution(snapshot, block, choice) for block in find_blocks(snapshot))
    return tuple(_resolution(snapshot, _get_block(snapshot, name), one) for name, one in choice.items())


def _get_block(snapshot: Snapshot, block_id: str) -> PendingBlock:
    blocks = find_blocks(snapshot)
    matches = [block for block in blocks if block.id == block_id]
    if not matches:
        names = ", ".join(block.id for block in blocks if block.id)
        torn = [block for block in blocks if not block.id]
        hint = f"the note has {names}" if names else "the note has no block that waits"
        if torn:
            hint += f"; the one in line {torn[0].line} can't be resolved: {block_problem(torn[0])}"
        raise NotFound(f"there is no pending edit {block_id!r}", hint=hint, code="block_not_found")
    broken = [block for block in matches if block_problem(block)]
    if broken:
        raise _broken_block_error(broken)
    return matches[0]


def _broken_block_error(blocks: Sequence[PendingBlock]) -> ConflictError:
    descriptions = [f"{block.id or 'a pending edit'} in line {block.line}: {block_problem(block)}" for block in blocks]
    message = f"can't be resolved: {'; '.join(descriptions)}"
    hint = "nothing was guessed or changed; mend the block, or take it out of the note by hand"
    details: dict[str, object] = {"lines": [block.line for block in blocks]}
    return ConflictError(message, hint=hint, code="block_broken", details=details)


def _resolution(snapshot: Snapshot, block: PendingBlock, choice: BlockChoice) -> Splice:
    """Return the splice that replaces a block by one of its sides.

    A side without a last line ending was the file's end, or comes from another program, whose sides are lines without
    endings. The tag's line ending is kept then if text follows, so that no two lines are joined.
    """
    text = block.after if choice == "accept" else block.before
    own = is_own_block(block)
    new = text.encode() if own else snapshot.encode(text, block.start)
    ended = not new or new.endswith((b"\n", b"\r"))
    at_end = block.stop == len(snapshot.raw) and own
    stop = block.stop if ended or at_end else block.tag_stop
    return Splice(start=block.start, stop=stop, new=new)


def check_blocks_untouched(snapshot: Snapshot, new_splices: Iterable[Splice]) -> None:
    """Check that no change cuts into an intact block that waits; a damaged one may be repaired.

    Raises:
        ConflictError: One does; the message names the block and its lines.
    """
    blocks = [block for block in find_blocks(snapshot) if not block_problem(block)]
    for splice in new_splices if blocks else ():
        for block in blocks:
            inside = splice.start < block.stop and splice.stop > block.start
            if inside and (splice.start, splice.stop) != (block.start, block.stop):
                last = snapshot.lines.line_number(block.stop - 1)
                place = splices.describe_place(snapshot.raw, splice)
                truncations = "cut" if place.startswith("lines ") else "cuts"
                message = f"{place} {truncations} into the pending edit {block.id}, lines"
                hint = "accept or reject it first"
                raise ConflictError(f"{message} {block.line}-{last}", hint=hint, code="block_touched")
