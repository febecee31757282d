"""Splices, which replace bytes of one snapshot of a note, and their rebase onto another state."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from knapper.errors import BadInput, ConflictError
from knapper.vault import parser, source
from knapper.vault.source import Outline

_MAX_CELLS: Final = 200_000_000

_Item = TypeVar("_Item", bound=Hashable)


class MatchingRun(NamedTuple):
    """*size* equal items, from *old* in one sequence and from *new* in the other."""

    old: int
    new: int
    size: int


def matching_runs(before: Sequence[_Item], after: Sequence[_Item], *, max_cells: int = _MAX_CELLS) -> list[MatchingRun]:
    """Return the equal runs of two sequences, in order.

    ``matching_runs("abxd", "abyd")`` gives ``[MatchingRun(0, 0, 2), MatchingRun(3, 3, 1)]``. The common beginning is
    taken first, then the common end; between them, a longest common subsequence is found.
    """
    head = _common_prefix(before, after, min(len(before), len(after)))
    room = min(len(before), len(after)) - head
    tail = _common_prefix(before[::-1], after[::-1], room) if room else 0
    result = [MatchingRun(0, 0, head)] if head else []
    middle = (before[head : len(before) - tail], after[head : len(after) - tail])
    result += [MatchingRun(head + run.old, head + run.new, run.size) for run in _align_middle(*middle, max_cells)]
    if tail:
        result.append(MatchingRun(len(before) - tail, len(after) - tail, tail))
    return result


def _common_prefix(before: Sequence[_Item], after: Sequence[_Item], most: int) -> int:
    for index in range(most):
        if before[index] != after[index]:
            return index
    return most


def _align_middle(before: Sequence[_Item], after: Sequence[_Item], max_cells: int) -> list[MatchingRun]:
    if not before or not after:
        return []
    numbers: dict[_Item, int] = {}
    old_numbers = [numbers.setdefault(item, len(numbers)) for item in before]
    right = [numbers.setdefault(item, len(numbers)) for item in after]
    if len(old_numbers) * len(right) <= max_cells:
        return _longest_subsequence(old_numbers, right)
    result: list[MatchingRun] = []
    old = new = 0
    for at, new_index in (*_unique_anchors(old_numbers, right), (len(old_numbers), len(right))):
        gap = (old_numbers[old:at], right[new:new_index])
        if len(gap[0]) * len(gap[1]) <= max_cells:
            result += [MatchingRun(old + run.old, new + run.new, run.size) for run in _longest_subsequence(*gap)]
        if at < len(old_numbers):
            result.append(MatchingRun(at, new_index, 1))
        old, new = at + 1, new_index + 1
    joined: list[MatchingRun] = []
    for run in result:
        if joined and (joined[-1].old + joined[-1].size, joined[-1].new + joined[-1].size) == (run.old, run.new):
            joined[-1] = joined[-1]._replace(size=joined[-1].size + run.size)
        else:
            joined.append(run)
    return joined


def _longest_subsequence(left: Sequence[int], right: Sequence[int]) -> list[MatchingRun]:
    """Find a longest common subsequence."""
    if set(left).isdisjoint(right):
        # As after most edits of one place: nothing between the equal ends stays.
        return []
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - 19 ms, which what only reads and most edits needn't wait for

    return [
        MatchingRun(code.src_start, code.dest_start, code.src_end - code.src_start)
        for code in LCSseq.opcodes(left, right)
        if code.tag == "equal"
    ]


def _unique_anchors(left: Sequence[int], right: Sequence[int]) -> list[tuple[int, int]]:
    """Pair the items that occur once on each side: a longest chain that keeps their order."""
    twice = {item for side in (left, right) for item, count in Counter(side).items() if count > 1}
    places = {item: place for place, item in enumerate(right) if item not in twice}
    pairs = [(place, places[item]) for place, item in enumerate(left) if item in places and item not in twice]
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, new_place) in enumerate(pairs):
        rank = bisect_left(tails, new_place)
        before.append(last[rank - 1] if rank else -1)
        tails[rank : rank + 1] = [new_place]
        last[rank : rank + 1] = [index]
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def changed_ranges(before: Sequence[_Item], after: Sequence[_Item]) -> list[tuple[int, int, int, int]]:
    """Return the ranges that differ: start and stop in *before*, start and stop in *after*."""
    ranges: list[tuple[int, int, int, int]] = []
    old = new = 0
    for run in [*matching_runs(before, after), MatchingRun(len(before), len(after), 0)]:
        if run.old > old or run.new > new:
            ranges.append((old, run.old, new, run.new))
        old, new = run.old + run.size, run.new + run.size
    return ranges


def moved_start(before: Sequence[_Item], after: Sequence[_Item], start: int, stop: int) -> int | None:
    """Return where the items from *start* to *stop* of *before* begin in *after*.

    Returns:
        None if one of them changed, if something was inserted between them, or if a comparison from the end puts them
        elsewhere than one from the beginning, so that it is unclear which of several equal places is meant.
    """
    forward = _position_in_runs(matching_runs(before, after), start, stop)
    if forward is None:
        return None
    old, new = len(before), len(after)
    mirrored = _position_in_runs(matching_runs(before[::-1], after[::-1]), old - stop, old - start)
    return forward if mirrored is not None and new - mirrored - (stop - start) == forward else None


def _position_in_runs(runs: Sequence[MatchingRun], start: int, stop: int) -> int | None:
    for run in runs:
        if run.old <= start and stop <= run.old + run.size:
            return run.new + start - run.old
    return None


def nearest_position(before: Sequence[_Item], after: Sequence[_Item], index: int) -> int:
    """Return where in *after* an item of *before* is, or would be if it hadn't changed."""
    place = 0
    for run in matching_runs(before, after):
        if run.old > index:
            break
        place = run.new + min(index - run.old, run.size)
    return place


RANK_FRONT: Final = -100
"""Rank of new frontmatter: before all other inserts at the beginning of a file."""
RANK_START: Final = -50
RANK_BELOW_HEADING: Final = -20
"""Rank of inserts right below a heading."""
RANK_SECTION_END: Final = -10
"""Rank of inserts at a section's end, minus its level: the end of an inner section precedes that of an outer one."""
RANK_PLAIN: Final = 0
RANK_END: Final = 50

_CONTEXT_LINES: Final = 2
_SHOWN: Final = 600
_EMPTY_BOM_FILE: Final = b"\xef\xbb\xbf"
_FIRST_ENDING: Final = re.compile(rb"\r\n|\r|\n")
_FILE_EDGE: Final = b""
"""Marks the file's start and end among its lines, of which none is empty bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """Replacement of the bytes from *start* to *stop* of one snapshot by *new*; an insert if both are equal."""

    start: int
    stop: int
    new: bytes
    rank: int = RANK_PLAIN
    """Order among inserts at one place, lowest first, so that the order of a batch doesn't change its result."""


def merge(raw: bytes, splices: Iterable[Splice]) -> bytes:
    """Apply splices that were all made against *raw*, in any order.

    At one place, inserts come first, by rank, and a replacement follows them.

    Raises:
        BadInput: Two overlap, two inserts of one rank meet at one place, or one lies outside *raw*.
    """
    pieces: list[bytes] = []
    position = 0
    for splice in check_order(raw, splices):
        pieces += (raw[position : splice.start], splice.new)
        position = splice.stop
    return b"".join((*pieces, raw[position:]))


def check_order(raw: bytes, splices: Iterable[Splice]) -> list[Splice]:
    """Return splices sorted by place, and check that they go together.

    Raises:
        BadInput: As for `merge`.
    """
    ordered = sorted(splices, key=lambda splice: (splice.start, splice.stop, splice.rank))
    for splice in ordered:
        if not 0 <= splice.start <= splice.stop <= len(raw):
            raise BadInput(f"a change at bytes {splice.start} to {splice.stop} lies outside a file of {len(raw)} bytes")
    for first, second in pairwise(ordered):
        if second.start < first.stop:
            hint = "join the two into one change, or make one after the other"
            raise _overlap_error(raw, first, second, "overlap", hint)
        if first.start == second.stop and first.rank == second.rank:
            hint = "join the two texts into one, in the order you want"
            raise _overlap_error(raw, first, second, "put text at the same place", hint)
    return ordered


def _overlap_error(raw: bytes, first: Splice, second: Splice, how: str, hint: str) -> BadInput:
    places = [describe_place(raw, splice) for splice in (first, second)]
    message = f"two changes {how}: {places[0]} and {places[1]}"
    return BadInput(message, hint=hint, code="overlap", details={"places": places})


def describe_place(raw: bytes, splice: Splice) -> str:
    """Return a splice's lines for people: ``lines 3-5``, ``line 3``, ``before line 3``."""
    first = source.line_number_at(raw, splice.start)
    if splice.start == splice.stop:
        return f"before line {first}" if splice.start < len(raw) else "the end of the file"
    last = source.line_number_at(raw, splice.stop - 1)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def ensure_change(raw: bytes, splices: Sequence[Splice], what: str) -> None:
    """Check that splices change at least one byte.

    Args:
        raw: The snapshot.
        splices: The changes.
        what: Why nothing would change, such as ``lines 3-4 hold this text``.

    Raises:
        BadInput: Nothing would change.
    """
    if all(raw[splice.start : splice.stop] == splice.new for splice in splices):
        raise BadInput(f"nothing would change: {what}", hint="nothing has to be done", code="no_change")


def append_at_end(raw: bytes, body: bytes, newline: bytes) -> Splice:
    r"""Return the splice that adds lines at a file's end.

    ``b"abc"`` and ``b"new"`` give ``b"abc\nnew"``; ``b"abc\n"`` gives ``b"abc\nnew\n"``.

    Args:
        raw: The file.
        body: The lines; one line ending at their end is left out, except in an empty file.
        newline: The file's line ending.
    """
    if raw in {b"", _EMPTY_BOM_FILE}:
        new = body
    elif _ends_in_newline(raw):
        new = body.removesuffix(newline) + newline
    else:
        new = newline + body.removesuffix(newline)
    return Splice(start=len(raw), stop=len(raw), new=new, rank=RANK_END)


def rebase(splice: Splice, old: bytes, new: bytes) -> Splice:
    """Move a splice that was made against *old* to where the same text is in *new*.

    The lines that it touches and two on each side have to be in *new* unchanged, at one place only; the file's start
    and end count as such lines. An insert at the end of *old* (``RANK_END``) goes to the end of *new*.

    Raises:
        ConflictError: They don't; ``details`` has the place's current text and line.
    """
    if old == new:
        return splice
    if splice.rank == RANK_END and splice.start == len(old):
        body = splice.new
        if not _ends_in_newline(old) and (ending := _FIRST_ENDING.match(body)):
            body = body[ending.end() :]
        kinds = {"\r\n": b"\r\n", "\r": b"\r"}
        return append_at_end(new, body, kinds.get(source.detect_newline(new), b"\n"))
    before = [_FILE_EDGE, *old.splitlines(keepends=True), _FILE_EDGE]
    after = [_FILE_EDGE, *new.splitlines(keepends=True), _FILE_EDGE]
    first, last = _touched_lines(splice, old)
    end = len(before) - 1
    start = 0 if first == 1 else max(1, first - _CONTEXT_LINES)
    stop = end + 1 if last == end else min(end, last + _CONTEXT_LINES)
    new_start = moved_start(before, after, start, stop)
    if new_start is None:
        line = max(1, min(nearest_position(before, after, first), len(after) - 2))
        count = old.count(b"\n", splice.start, splice.stop) + 1
        current_lines = after[max(1, line - _CONTEXT_LINES) : min(len(after) - 1, line + count + _CONTEXT_LINES)]
        moved = "" if line == source.line_number_at(old, splice.start) else f", which is now about line {line}"
        message = f"the note changed meanwhile at or next to {describe_place(old, splice)}{moved}"
        current_text = b"".join(current_lines)[:_SHOWN].decode(errors="replace")
        details: dict[str, object] = {"line": line, "current_text": current_text}
        raise ConflictError(
            message, hint="read the place again and make the change again", code="stale", details=details
        )
    shift = sum(map(len, after[:new_start])) - sum(map(len, before[:start]))
    return Splice(start=splice.start + shift, stop=splice.stop + shift, new=splice.new, rank=splice.rank)


def _touched_lines(splice: Splice, old: bytes) -> tuple[int, int]:
    """Return the lines that a splice touches, numbered from 1; an empty range if it goes between two."""
    table = source.measure_lines(old)
    first = table.line_number(splice.start)
    if splice.start < splice.stop:
        return first, table.line_number(splice.stop - 1) + 1
    if splice.start == len(old):
        count = len(old.splitlines())
        return (count + 1, count + 1) if _ends_in_newline(old) else (count, count + 1)
    return first, first if splice.start in {0, table.starts[first - 1]} else first + 1


def _ends_in_newline(raw: bytes) -> bool:
    return raw in {b"", _EMPTY_BOM_FILE} or raw.endswith((b"\n", b"\r"))


_ENDING: Final = re.compile(r"\r\n|\r|\n")
_LAST_ENDING: Final = re.compile(rb"(?:\r\n|\r|\n)\Z")
_BOM: Final = b"\xef\xbb\xbf"
_NUL_RATIO: Final = 4
"""At most one in so many bytes of a text is NUL; in UTF-16, about every second is."""
_EXCERPT_LINES: Final = 8
_EXCERPT_WIDTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A note's bytes with their outline."""

    raw: bytes
    outline: Outline

    @property
    def lines(self) -> source.Lines:
        """The file's lines, by which an offset's line is found."""
        return source.Lines(starts=self.outline.line_starts, size=len(self.raw))

    @property
    def count(self) -> int:
        """The number of lines; an empty file has one."""
        return len(self.outline.line_starts)

    @property
    def text_start(self) -> int:
        """The first byte of text: after a byte-order mark."""
        return len(_BOM) if self.raw.startswith(_BOM) else 0

    def line(self, number: int) -> tuple[int, int, int]:
        """Return a line by its 1-based number: its start, the end of its text, and its end with the line ending."""
        starts = self.outline.line_starts
        start = max(starts[number - 1], self.text_start)
        stop = starts[number] if number < len(starts) else len(self.raw)
        ending = _LAST_ENDING.search(self.raw, start, stop)
        return start, ending.start() if ending else stop, stop

    def is_blank(self, number: int) -> bool:
        """Return whether a line holds nothing but spaces."""
        start, stop, _ = self.line(number)
        return not self.raw[start:stop].strip()

    def newline(self, at: int) -> str:
        """Return the line ending for text at an offset: the file's own, or that of a line nearby if it mixes them."""
        own = self.outline.newline
        if own != "mixed":
            return own
        number = self.lines.line_number(max(at - 1, 0))
        for beside in (number, number + 1, number - 1):
            if 1 <= beside <= self.count:
                _, stop, end = self.line(beside)
                if end > stop:
                    return self.raw[stop:end].decode()
        return "\n"

    def encode(self, text: str, at: int) -> bytes:
        """Encode text, with the line ending that fits at an offset.

        Raises:
            BadInput: The text can't be written in the file's encoding.
        """
        converted = _ENDING.sub(self.newline(at), text)
        if self.outline.encoding == "unknown" and not converted.isascii():
            message = "the file isn't UTF-8, so only ASCII text can be put into it"
            raise BadInput(message, hint="convert the file to UTF-8 first", code="not_utf8")
        try:
            return converted.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"the text holds half a character at position {error.start}") from None

    def put_lines(self, at: int, text: str, *, rank: int) -> Splice:
        """Return the splice that inserts whole lines where a line begins, or at the file's end.

        One line ending at the end of *text* is the line's own. A file without a last line ending stays without one.
        """
        body = self.encode(text, at)
        newline = self.newline(at).encode()
        if len(self.raw) == self.text_start:
            return Splice(start=at, stop=at, new=body, rank=rank)
        body = body.removesuffix(newline)
        open_end = at == len(self.raw) and not _LAST_ENDING.search(self.raw)
        return Splice(start=at, stop=at, new=newline + body if open_end else body + newline, rank=rank)

    def rewrite(self, start: int, stop: int, text: str) -> Splice:
        """Return the splice that replaces a span; in a file with mixed line endings, unchanged lines keep theirs."""
        new = self.encode(text, start)
        if self.outline.newline != "mixed":
            return Splice(start=start, stop=stop, new=new)
        before, after = (_split_endings(self.raw[start:stop]), _split_endings(new))
        for run in matching_runs([row for row, _ in before], [row for row, _ in after]):
            unchanged_rows = before[run.old : run.old + run.size]
            for index, (row, ending) in enumerate(unchanged_rows, start=run.new):
                if ending and after[index][1]:
                    after[index] = (row, ending)
        return Splice(start=start, stop=stop, new=b"".join(row + ending for row, ending in after))

    def decode(self, start: int, stop: int) -> str:
        """Return a span as text, for people."""
        return self.raw[start:stop].decode(errors="replace")

    def excerpt(self, first: int) -> str:
        """Return at most 8 lines with their numbers, ``12: text``; long ones are truncated."""
        first = max(1, min(first, self.count))
        stop = min(self.count, first + _EXCERPT_LINES - 1)
        rows: list[str] = []
        for number in range(first, stop + 1):
            start, end, _ = self.line(number)
            text = self.decode(start, end)
            rows.append(f"{number}: {text[:_EXCERPT_WIDTH]}{'…' if len(text) > _EXCERPT_WIDTH else ''}")
        return "\n".join(rows)


def _split_endings(data: bytes) -> list[tuple[bytes, bytes]]:
    """Split lines from their endings."""
    rows = [(row.rstrip(b"\r\n"), row) for row in data.splitlines(keepends=True)]
    return [(text, row[len(text) :]) for text, row in rows]


def take_snapshot(raw: bytes, outline: Outline | None = None) -> Snapshot:
    """Return a snapshot of a note.

    Args:
        raw: The file's bytes.
        outline: Their outline; None parses them.

    Raises:
        BadInput: The file is UTF-16, for which the outline's spans aren't offsets of its own bytes, or looks like it.
    """
    outline = outline or parser.parse_note(raw)
    if outline.encoding == "utf-16":
        hint = "convert the file to UTF-8 first"
        raise BadInput("the file is UTF-16; it can be read, and not edited", hint=hint, code="not_utf8")
    if raw.count(0) * _NUL_RATIO > len(raw):
        hint = "if it is UTF-16, convert it to UTF-8 first"
        raise BadInput("the file is full of NUL bytes, as UTF-16 is; it isn't edited", hint=hint, code="not_utf8")
    return Snapshot(raw=raw, outline=outline)
