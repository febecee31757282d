"""Show how two states of a note differ, in hunks that can be accepted one by one."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from knapper.changes.text import alignment, splices, words
from knapper.changes.text.splices import Splice
from knapper.changes.text.words import Mark
from knapper.vault import source

_ID_DIGITS: Final = 8
_CONTEXT_LINES: Final = 3
_UNENDED: Final = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Hold one stretch of lines that differs, in the exact bytes of both sides."""

    id: str
    """Bound to the place and both sides: another state of the note has other ids."""
    start: int
    """First byte in the old state."""
    old: bytes
    new: bytes
    old_start_line: int
    """1-based; where *old* is empty, the line before which the new text goes."""
    new_start_line: int

    @property
    def splice(self) -> Splice:
        """Make the splice of the old state that accepting the hunk means."""
        return Splice(start=self.start, stop=self.start + len(self.old), new=self.new)

    @property
    def words(self) -> tuple[Mark, ...]:
        """Mark the words that differ."""
        return words.compare(self.old.decode(errors="replace"), self.new.decode(errors="replace"))


def _shown(data: bytes) -> tuple[str, ...]:
    return tuple(row.decode(errors="replace") for row in data.splitlines(keepends=True))


def hunks(before: bytes, after: bytes) -> tuple[Hunk, ...]:
    """Compare two states of a note by lines.

    What lies between two changes is part of neither. Where files are so large and so different that a comparison
    would take long, all between their equal ends is one hunk.

    Returns:
        In order; empty where nothing differs. ``apply_hunks(before, all of them)`` is *after*.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [*accumulate(map(len, old), initial=0)]
    return tuple(
        _hunk(starts[a], b"".join(old[a:b]), b"".join(new[c:d]), (a + 1, c + 1))
        for a, b, c, d in alignment.changes(old, new)
    )


def _hunk(start: int, old: bytes, new: bytes, rows: tuple[int, int]) -> Hunk:
    digest = hashlib.sha256(b"%d:%d:" % (start, len(old)) + old + new).hexdigest()[:_ID_DIGITS]
    return Hunk(id=digest, start=start, old=old, new=new, old_start_line=rows[0], new_start_line=rows[1])


def apply_hunks(before: bytes, chosen: Iterable[Hunk]) -> bytes:
    """Put chosen hunks into the state that they were made against.

    Raises:
        BadInput: They overlap, or belong to another state.
    """
    return splices.merge(before, (hunk.splice for hunk in chosen))


def edited(hunk: Hunk, text: str) -> Hunk:
    """Put another text in the place of a hunk's new side.

    It takes the hunk's line endings, and ends in one where the new side did, or the old side if that was empty. The
    hunk gets another id, for it is another change.
    """
    sides = hunk.new or hunk.old
    kind = source.detect_newline(sides)
    newline = "\n" if kind == "mixed" else kind
    body = text.replace("\r\n", "\n").replace("\r", "\n")
    if body and sides.endswith((b"\n", b"\r")) and not body.endswith("\n"):
        body += "\n"
    if not sides.endswith((b"\n", b"\r")):
        body = body.removesuffix("\n")
    return _hunk(hunk.start, hunk.old, body.replace("\n", newline).encode(), (hunk.old_start_line, hunk.new_start_line))


def unified(before: bytes, after: bytes, path: str) -> str:
    """Write a difference as ``diff -u`` does; empty where there is none.

    Args:
        before: The old state.
        after: The new state.
        path: Shown for both.
    """
    old, new = _shown(before), _shown(after)
    found = alignment.changes(old, new)
    if not found:
        return ""
    rows = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    for group in _groups(found):
        rows += _group(old, new, group)
    return "".join(row if row.endswith("\n") else _ended(row) for row in rows)


def _groups(found: Sequence[tuple[int, int, int, int]]) -> list[list[tuple[int, int, int, int]]]:
    groups: list[list[tuple[int, int, int, int]]] = []
    for change in found:
        if groups and change[0] - groups[-1][-1][1] <= 2 * _CONTEXT_LINES:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _group(old: Sequence[str], new: Sequence[str], group: Sequence[tuple[int, int, int, int]]) -> list[str]:
    first, last = group[0], group[-1]
    lead = min(_CONTEXT_LINES, first[0])
    tail = min(_CONTEXT_LINES, len(old) - last[1])
    sizes = (last[1] + tail - first[0] + lead, last[3] + tail - first[2] + lead)
    rows = [f"@@ -{_range(first[0] - lead, sizes[0])} +{_range(first[2] - lead, sizes[1])} @@\n"]
    at = first[0] - lead
    for a, b, c, d in group:
        rows += [f" {row}" for row in old[at:a]]
        rows += [f"-{row}" for row in old[a:b]]
        rows += [f"+{row}" for row in new[c:d]]
        at = b
    return rows + [f" {row}" for row in old[at : last[1] + tail]]


def _range(start: int, size: int) -> str:
    first = start + 1 if size else start
    return str(first) if size == 1 else f"{first},{size}"


def _ended(row: str) -> str:
    r"""End a row: a bare ``\r`` counts as an ending of the file, and shows as such."""
    return f"{row}\n" if row.endswith("\r") else f"{row}\n{_UNENDED}\n"
