"""Choose which lines of a note a waiting block takes, so that its fence is read as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from knapper.changes.text import splices
from knapper.changes.text.diff import Hunk
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput
from knapper.vault.source import SpanSet

ELSEWHERE: Final = "Review it as a proposal."
"""What to do with a change that no block can hold."""
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Hold whole lines, and the hunks that change them."""

    start: int
    stop: int
    hunks: tuple[Hunk, ...]


def choose(snapshot: Snapshot, hunks: Sequence[Hunk], *, touching: bool) -> list[Region]:
    """Widen each hunk to what can be replaced by a fence, and join those that meet.

    Args:
        snapshot: The note.
        hunks: What is to be shown.
        touching: Take what ends right before a hunk too: an open fence or raw HTML would go on in a block.

    Raises:
        BadInput: A hunk lies in the frontmatter, or moves the byte-order mark.
    """
    cover = SpanSet(snapshot.outline.code_spans)
    found: list[Region] = []
    for hunk in sorted(hunks, key=lambda hunk: hunk.start):
        _check_place(snapshot, hunk)
        before = cover.at(hunk.start - 1) if touching and hunk.start else None
        first = before[0] if before else hunk.start
        start, stop = _widened(snapshot, cover, first, hunk.start + len(hunk.old))
        together = [hunk]
        while found and start < found[-1].stop:
            last = found.pop()
            start, stop = min(start, last.start), max(stop, last.stop)
            together = [*last.hunks, *together]
        found.append(Region(start=start, stop=stop, hunks=tuple(together)))
    return found


def _check_place(snapshot: Snapshot, hunk: Hunk) -> None:
    block = snapshot.outline.frontmatter
    if block and hunk.start < block.stop:
        message = f"Line {hunk.old_start_line} lies in the frontmatter, which can't hold a block."
        raise BadInput(message, hint=ELSEWHERE, code="not_in_text")
    if hunk.start < snapshot.text_start and not (hunk.old.startswith(_BOM) and hunk.new.startswith(_BOM)):
        raise BadInput("The change moves the file's byte-order mark.", hint=ELSEWHERE, code="not_in_text")


def _widened(snapshot: Snapshot, cover: SpanSet, start: int, stop: int) -> tuple[int, int]:
    """Widen a span to whole lines, and to all of the code, maths or comment that it begins or ends in."""
    table = snapshot.lines
    while True:
        wide = (start, stop)
        for at in (start, stop):
            inside = cover.at(at)
            if inside and inside[0] < at:
                start, stop = min(start, inside[0]), max(stop, inside[1])
        if start not in {table.start(start), len(snapshot.raw)}:
            start = table.start(start)
        if stop > start and stop != table.start(stop):
            stop = table.stop(stop - 1)
        start = max(start, snapshot.text_start)
        stop = max(start, stop)
        if wide == (start, stop):
            return wide


def joined(found: Sequence[Region], place: int) -> list[Region]:
    """Join a region with the one below it, or the last with the one above it."""
    first = min(place, len(found) - 2)
    above, below = found[first], found[first + 1]
    both = Region(start=above.start, stop=below.stop, hunks=(*above.hunks, *below.hunks))
    return [*found[:first], both, *found[first + 2 :]]


def sides(snapshot: Snapshot, region: Region) -> tuple[str, str]:
    """Give a region's text before and after its hunks.

    Raises:
        BadInput: It isn't UTF-8.
    """
    before = snapshot.raw[region.start : region.stop]
    moved = [
        Splice(
            start=max(0, hunk.start - region.start),
            stop=hunk.start + len(hunk.old) - region.start,
            new=_new(snapshot, hunk),
        )
        for hunk in region.hunks
    ]
    after = splices.merge(before, moved)
    try:
        return before.decode(), after.decode()
    except UnicodeDecodeError as error:
        raise BadInput("The text isn't UTF-8, so no block can hold it.", hint=ELSEWHERE, code="not_utf8") from error


def _new(snapshot: Snapshot, hunk: Hunk) -> bytes:
    """Leave the byte-order mark to the file where a hunk takes its first line."""
    return hunk.new.removeprefix(_BOM) if hunk.start < snapshot.text_start else hunk.new
