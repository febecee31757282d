"""Differences between two states of a note: hunks, words, and the regions that blocks replace."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from knapper.changes.text import splices
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import BadInput
from knapper.vault import source
from knapper.vault.source import SpanSet

Side = Literal["same", "removed", "added"]

_TOKEN: Final = re.compile(r"\w+|\r\n|\s|[^\w\s]")
_MAX_CHARACTERS: Final = 200_000
_MAX_TOKENS: Final = 8_000
_LEAST_SHARED: Final = 0.2


class WordChange(NamedTuple):
    """A piece of text with the side that it is on.

    All ``same`` and ``removed`` pieces joined are the old text, all ``same`` and ``added`` ones the new text.
    """

    side: Side
    text: str


def compare_words(old: str, new: str) -> tuple[WordChange, ...]:
    """Return the differences of two texts by words.

    ``("a b", "a c")`` gives ``same "a "``, ``removed "b"``, ``added "c"``. Texts that have little in common, or are
    very long, count as wholly different, which reads better than many scattered words.
    """
    if old == new:
        return (WordChange("same", old),) if old else ()
    whole_change = tuple(mark for mark in (WordChange("removed", old), WordChange("added", new)) if mark.text)
    if len(whole_change) < 2 or max(len(old), len(new)) > _MAX_CHARACTERS:
        return whole_change
    old_tokens, new_tokens = _TOKEN.findall(old), _TOKEN.findall(new)
    if max(len(old_tokens), len(new_tokens)) > _MAX_TOKENS:
        return whole_change
    marks: list[WordChange] = []
    at = new_at = shared = 0
    for run in (
        *splices.matching_runs(old_tokens, new_tokens),
        splices.MatchingRun(len(old_tokens), len(new_tokens), 0),
    ):
        same = "".join(old_tokens[run.old : run.old + run.size])
        shared += len(same.strip())
        _add_word_change(marks, WordChange("removed", "".join(old_tokens[at : run.old])))
        _add_word_change(marks, WordChange("added", "".join(new_tokens[new_at : run.new])))
        _add_word_change(marks, WordChange("same", same))
        at, new_at = run.old + run.size, run.new + run.size
    return tuple(marks) if shared >= _LEAST_SHARED * min(len(old.strip()), len(new.strip())) else whole_change


def _add_word_change(marks: list[WordChange], mark: WordChange) -> None:
    if mark.text:
        marks.append(mark)


_ID_DIGITS: Final = 8
_CONTEXT_LINES: Final = 3
_NO_NEWLINE_MARKER: Final = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One range of lines that differs, with the exact bytes of both sides."""

    id: str
    """Derived from the place and both sides, so that another state of the note has other ids."""
    start: int
    """First byte in the old state."""
    old: bytes
    new: bytes
    old_start_line: int
    """1-based; if *old* is empty, the line before which the new text goes."""
    new_start_line: int

    @property
    def splice(self) -> Splice:
        """The splice of the old state that accepting the hunk makes."""
        return Splice(start=self.start, stop=self.start + len(self.old), new=self.new)

    @property
    def words(self) -> tuple[WordChange, ...]:
        """The differences by words."""
        return compare_words(self.old.decode(errors="replace"), self.new.decode(errors="replace"))


def diff_hunks(before: bytes, after: bytes) -> tuple[Hunk, ...]:
    """Return the differences of two states of a note by lines.

    Unchanged lines between two changes are part of neither. If files are so large and different that a comparison would
    take long, everything between their equal ends is one hunk.

    Returns:
        In order; empty if nothing differs. ``apply_hunks(before, all of them)`` is *after*.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [*accumulate(map(len, old), initial=0)]
    return tuple(
        _make_hunk(starts[a], b"".join(old[a:b]), b"".join(new[c:d]), (a + 1, c + 1))
        for a, b, c, d in splices.changed_ranges(old, new)
    )


def _make_hunk(start: int, old: bytes, new: bytes, rows: tuple[int, int]) -> Hunk:
    digest = hashlib.sha256(b"%d:%d:" % (start, len(old)) + old + new).hexdigest()[:_ID_DIGITS]
    return Hunk(id=digest, start=start, old=old, new=new, old_start_line=rows[0], new_start_line=rows[1])


def apply_hunks(before: bytes, chosen: Iterable[Hunk]) -> bytes:
    """Apply chosen hunks to the state that they were made against.

    Raises:
        BadInput: They overlap, or belong to another state.
    """
    return splices.merge(before, (hunk.splice for hunk in chosen))


def edit_hunk(hunk: Hunk, text: str) -> Hunk:
    """Return a hunk with another text as its new side.

    The text gets the hunk's line endings, and ends in one if the new side did, or the old side if that was empty. The
    hunk gets another id, since it is another change.
    """
    sides = hunk.new or hunk.old
    kind = source.detect_newline(sides)
    newline = "\n" if kind == "mixed" else kind
    body = text.replace("\r\n", "\n").replace("\r", "\n")
    if body and sides.endswith((b"\n", b"\r")) and not body.endswith("\n"):
        body += "\n"
    if not sides.endswith((b"\n", b"\r")):
        body = body.removesuffix("\n")
    return _make_hunk(
        hunk.start, hunk.old, body.replace("\n", newline).encode(), (hunk.old_start_line, hunk.new_start_line)
    )


def unified_diff(before: bytes, after: bytes, path: str) -> str:
    """Return a difference as ``diff -u`` prints it; empty if there is none.

    Args:
        before: The old state.
        after: The new state.
        path: Shown for both.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    line_changes = splices.changed_ranges(old, new)
    if not line_changes:
        return ""
    rows = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    groups: list[list[tuple[int, int, int, int]]] = []
    for change in line_changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * _CONTEXT_LINES:
            groups[-1].append(change)
        else:
            groups.append([change])
    for group in groups:
        first, last = group[0], group[-1]
        lead = min(_CONTEXT_LINES, first[0])
        tail = min(_CONTEXT_LINES, len(old) - last[1])
        sizes = (last[1] + tail - first[0] + lead, last[3] + tail - first[2] + lead)
        at = first[0] - lead
        rows.append(f"@@ -{_range_text(at, sizes[0])} +{_range_text(first[2] - lead, sizes[1])} @@\n")
        for a, b, c, d in group:
            rows += _mark_lines(" ", old[at:a]) + _mark_lines("-", old[a:b]) + _mark_lines("+", new[c:d])
            at = b
        rows += _mark_lines(" ", old[at : last[1] + tail])
    # A bare ``\r`` counts as an ending of the file, and shows as such.
    endings = {"\n": "", "\r": "\n"}
    return "".join(row + endings.get(row[-1:], f"\n{_NO_NEWLINE_MARKER}\n") for row in rows)


def cut_unified(text: str, max_chars: int) -> str:
    """Return whole lines from the beginning of a unified difference, which end within a hunk: no program applies them.

    Args:
        text: From `unified_diff`, longer than *max_chars*.
        max_chars: Characters at most.

    Returns:
        Empty where not even the first hunk begins.
    """
    stop = text.rfind("\n", 0, max_chars) + 1
    if text.startswith(("@@", "\\"), stop):
        # A hunk isn't whole without its last line, nor is that without the mark that it ends the file.
        stop = text.rfind("\n", 0, max(stop - 1, 0)) + 1
    return text[:stop] if "\n@@" in text[:stop] else ""


def _mark_lines(mark: str, lines: Iterable[bytes]) -> list[str]:
    return [mark + row.decode(errors="replace") for row in lines]


def _range_text(start: int, size: int) -> str:
    first = start + 1 if size else start
    return str(first) if size == 1 else f"{first},{size}"


REVIEW_AS_PROPOSAL_HINT: Final = "review it as a proposal"
"""Hint for a change that no block can hold."""
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Range of whole lines, with the hunks that change them."""

    start: int
    stop: int
    hunks: tuple[Hunk, ...]


def choose_regions(snapshot: Snapshot, hunks: Sequence[Hunk], *, touching: bool) -> list[Region]:
    """Return regions that can be replaced by a fence: hunks widened, and joined if they touch.

    Args:
        snapshot: The note.
        hunks: What is to be shown.
        touching: Include what ends right before a hunk: an open fence or raw HTML would continue into a block.

    Raises:
        BadInput: A hunk is in the frontmatter, or moves the byte-order mark.
    """
    cover = SpanSet(snapshot.outline.code_spans)
    result: list[Region] = []
    for hunk in sorted(hunks, key=lambda hunk: hunk.start):
        block = snapshot.outline.frontmatter
        if block and hunk.start < block.stop:
            message = f"line {hunk.old_start_line} is in the frontmatter, which can't hold a block"
            raise BadInput(message, hint=REVIEW_AS_PROPOSAL_HINT, code="not_in_text")
        if hunk.start < snapshot.text_start and not (hunk.old.startswith(_BOM) and hunk.new.startswith(_BOM)):
            raise BadInput(
                "the change moves the file's byte-order mark", hint=REVIEW_AS_PROPOSAL_HINT, code="not_in_text"
            )
        before = cover.find(hunk.start - 1) if touching and hunk.start else None
        first = before[0] if before else hunk.start
        start, stop = _widen(snapshot, cover, first, hunk.start + len(hunk.old))
        together = [hunk]
        while result and start < result[-1].stop:
            last = result.pop()
            start, stop = min(start, last.start), max(stop, last.stop)
            together = [*last.hunks, *together]
        result.append(Region(start=start, stop=stop, hunks=tuple(together)))
    return result


def _widen(snapshot: Snapshot, cover: SpanSet, start: int, stop: int) -> tuple[int, int]:
    """Return a span widened to whole lines, and to all of the code, maths or comment in which it begins or ends."""
    table = snapshot.lines
    while True:
        wide = (start, stop)
        for at in (start, stop):
            inside = cover.find(at)
            if inside and inside[0] < at:
                start, stop = min(start, inside[0]), max(stop, inside[1])
        if start not in {table.line_start(start), len(snapshot.raw)}:
            start = table.line_start(start)
        if stop > start and stop != table.line_start(stop):
            stop = table.line_stop(stop - 1)
        start = max(start, snapshot.text_start)
        stop = max(start, stop)
        if wide == (start, stop):
            return wide


def join_regions(regions: Sequence[Region], place: int) -> list[Region]:
    """Join a region with the one below it, or the last with the one above it."""
    first = min(place, len(regions) - 2)
    above, below = regions[first], regions[first + 1]
    both = Region(start=above.start, stop=below.stop, hunks=(*above.hunks, *below.hunks))
    return [*regions[:first], both, *regions[first + 2 :]]


def region_sides(snapshot: Snapshot, region: Region) -> tuple[str, str]:
    """Return a region's text before and after its hunks.

    Raises:
        BadInput: It isn't UTF-8.
    """
    before = snapshot.raw[region.start : region.stop]
    # without the byte-order mark, which stays in the file
    moved = [
        Splice(
            start=max(0, hunk.start - region.start),
            stop=hunk.start + len(hunk.old) - region.start,
            new=hunk.new.removeprefix(_BOM) if hunk.start < snapshot.text_start else hunk.new,
        )
        for hunk in region.hunks
    ]
    after = splices.merge(before, moved)
    try:
        return before.decode(), after.decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            "the text isn't UTF-8, so no block can hold it", hint=REVIEW_AS_PROPOSAL_HINT, code="not_utf8"
        ) from error
