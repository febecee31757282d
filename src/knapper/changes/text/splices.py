"""Put new bytes in the place of old ones: what every edit of a note comes down to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from knapper.changes.text import alignment
from knapper.errors import BadInput, ConflictError
from knapper.vault import source

FRONT: Final = -100
"""Rank of new frontmatter: before all else at the head of a file."""
START: Final = -50
BELOW: Final = -20
"""Rank of what goes right below a heading."""
SECTION: Final = -10
"""Rank of what goes to a section's end, less its level: the end of an inner section comes before that of an outer."""
PLAIN: Final = 0
END: Final = 50

_CONTEXT_LINES: Final = 2
_SHOWN: Final = 600
_BOM: Final = b"\xef\xbb\xbf"
_FIRST_ENDING: Final = re.compile(rb"\r\n|\r|\n")
_EDGE: Final = b""
"""Stands for the file's start and end among its lines, none of which is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """Put *new* in the place of the bytes from *start* to *stop* of one snapshot; an insert where both are equal."""

    start: int
    stop: int
    new: bytes
    rank: int = PLAIN
    """Order among inserts at one place, lowest first, so that a batch gives one result however it is ordered."""


def merge(raw: bytes, splices: Iterable[Splice]) -> bytes:
    """Apply splices that were all made against *raw*, in whatever order they come.

    At one place, inserts come first, by rank, and what is replaced follows them.

    Raises:
        BadInput: Two overlap, two inserts of one rank meet at one place, or one lies outside *raw*.
    """
    pieces: list[bytes] = []
    done = 0
    for splice in order(raw, splices):
        pieces += (raw[done : splice.start], splice.new)
        done = splice.stop
    return b"".join((*pieces, raw[done:]))


def order(raw: bytes, splices: Iterable[Splice]) -> list[Splice]:
    """Sort splices by place, and refuse those that don't go together.

    Raises:
        BadInput: As for `merge`.
    """
    ordered = sorted(splices, key=lambda splice: (splice.start, splice.stop, splice.rank))
    for splice in ordered:
        if not 0 <= splice.start <= splice.stop <= len(raw):
            raise BadInput(
                f"A change at bytes {splice.start} to {splice.stop} lies outside a file of {len(raw)} bytes."
            )
    for first, second in pairwise(ordered):
        if second.start < first.stop:
            hint = "Join the two into one change, or make one after the other."
            raise _refused(raw, first, second, "overlap", hint)
        if first.start == second.stop and first.rank == second.rank:
            hint = "Join the two texts into one, in the order you want."
            raise _refused(raw, first, second, "put text at the same place", hint)
    return ordered


def _refused(raw: bytes, first: Splice, second: Splice, how: str, hint: str) -> BadInput:
    places = [place(raw, splice) for splice in (first, second)]
    message = f"Two changes {how}: {places[0]} and {places[1]}."
    return BadInput(message, hint=hint, code="overlap", details={"places": places})


def place(raw: bytes, splice: Splice) -> str:
    """Name a splice's lines for people: ``lines 3-5``, ``line 3``, ``before line 3``."""
    first = source.line_number_at(raw, splice.start)
    if splice.start == splice.stop:
        return f"before line {first}" if splice.start < len(raw) else "the end of the file"
    last = source.line_number_at(raw, splice.stop - 1)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def ensure_change(raw: bytes, splices: Sequence[Splice], what: str) -> None:
    """Refuse splices that leave every byte as it is.

    Args:
        raw: The snapshot.
        splices: The changes.
        what: What is already so, such as ``lines 3-4 hold this text``.

    Raises:
        BadInput: Nothing would change.
    """
    if all(raw[splice.start : splice.stop] == splice.new for splice in splices):
        raise BadInput(f"Nothing would change: {what}.", hint="Nothing has to be done.", code="no_change")


def at_end(raw: bytes, body: bytes, newline: bytes) -> Splice:
    r"""Put lines at a file's end.

    ``b"abc"`` and ``b"new"`` give ``b"abc\nnew"``; ``b"abc\n"`` gives ``b"abc\nnew\n"``.

    Args:
        raw: The file.
        body: The lines; one line ending at their end is left out, except in an empty file.
        newline: The file's line ending.
    """
    if raw in {b"", _BOM}:
        new = body
    elif _is_ended(raw):
        new = body.removesuffix(newline) + newline
    else:
        new = newline + body.removesuffix(newline)
    return Splice(start=len(raw), stop=len(raw), new=new, rank=END)


def rebase(splice: Splice, old: bytes, new: bytes) -> Splice:
    """Move a splice that was made against *old* to where the same text stands in *new*.

    The lines that it touches and two on each side have to stand in *new* unchanged, at one place only; the file's
    start and end count where they are next to it. What goes to the end of a file (rank ``END``) goes to *new*'s end.

    Raises:
        ConflictError: They don't; ``details`` has the place's current text and line.
    """
    if old == new:
        return splice
    if splice.rank == END and splice.start == len(old):
        return _at_new_end(splice, old, new)
    before = [_EDGE, *old.splitlines(keepends=True), _EDGE]
    after = [_EDGE, *new.splitlines(keepends=True), _EDGE]
    first, last = _touched(splice, old)
    end = len(before) - 1
    start = 0 if first == 1 else max(1, first - _CONTEXT_LINES)
    stop = end + 1 if last == end else min(end, last + _CONTEXT_LINES)
    there = alignment.moved(before, after, start, stop)
    if there is None:
        raise _conflict(splice, old, (before, after), first)
    shift = sum(map(len, after[:there])) - sum(map(len, before[:start]))
    return Splice(start=splice.start + shift, stop=splice.stop + shift, new=splice.new, rank=splice.rank)


def _touched(splice: Splice, old: bytes) -> tuple[int, int]:
    """Find the lines that a splice touches, numbered from 1; an empty range where it goes between two."""
    table = source.measure_lines(old)
    first = table.number(splice.start)
    if splice.start < splice.stop:
        return first, table.number(splice.stop - 1) + 1
    if splice.start == len(old):
        count = len(old.splitlines())
        return (count + 1, count + 1) if _is_ended(old) else (count, count + 1)
    return first, first if splice.start in {0, table.starts[first - 1]} else first + 1


def _is_ended(raw: bytes) -> bool:
    return raw in {b"", _BOM} or raw.endswith((b"\n", b"\r"))


def _at_new_end(splice: Splice, old: bytes, new: bytes) -> Splice:
    body = splice.new
    if not _is_ended(old) and (ending := _FIRST_ENDING.match(body)):
        body = body[ending.end() :]
    kinds = {"\r\n": b"\r\n", "\r": b"\r"}
    return at_end(new, body, kinds.get(source.detect_newline(new), b"\n"))


def _conflict(splice: Splice, old: bytes, rows: tuple[Sequence[bytes], Sequence[bytes]], first: int) -> ConflictError:
    """Describe the place as it is now."""
    before, after = rows
    line = max(1, min(alignment.nearest(before, after, first), len(after) - 2))
    count = old.count(b"\n", splice.start, splice.stop) + 1
    shown = after[max(1, line - _CONTEXT_LINES) : min(len(after) - 1, line + count + _CONTEXT_LINES)]
    message = f"The note changed meanwhile at or next to {place(old, splice)}, which is now about line {line}."
    details: dict[str, object] = {"line": line, "current_text": b"".join(shown)[:_SHOWN].decode(errors="replace")}
    return ConflictError(message, hint="Read the place again and make the change anew.", code="stale", details=details)
