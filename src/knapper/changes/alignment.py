"""Find what two sequences have in common, in order and fast enough for any file."""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple, TypeVar

from rapidfuzz.distance import LCSseq

_MAX_CELLS: Final = 200_000_000
"""Above it the middle of two sequences counts as wholly changed; the comparison takes a bit of memory a cell."""

_Item = TypeVar("_Item", bound=Hashable)


class Run(NamedTuple):
    """Hold *size* equal items, from *old* in one sequence and from *new* in the other."""

    old: int
    new: int
    size: int


def runs(before: Sequence[_Item], after: Sequence[_Item]) -> list[Run]:
    """List the equal stretches of two sequences, in order.

    ``runs("abxd", "abyd")`` gives ``[Run(0, 0, 2), Run(3, 3, 1)]``. What both begin with is taken first, then what
    both end with; between them stands a longest common subsequence.
    """
    head = _common(before, after, min(len(before), len(after)))
    room = min(len(before), len(after)) - head
    tail = _common(before[::-1], after[::-1], room) if room else 0
    found = [Run(0, 0, head)] if head else []
    middle = (before[head : len(before) - tail], after[head : len(after) - tail])
    found += [Run(head + run.old, head + run.new, run.size) for run in _middle(*middle)]
    if tail:
        found.append(Run(len(before) - tail, len(after) - tail, tail))
    return found


def _common(before: Sequence[_Item], after: Sequence[_Item], most: int) -> int:
    for index in range(most):
        if before[index] != after[index]:
            return index
    return most


def _middle(before: Sequence[_Item], after: Sequence[_Item]) -> list[Run]:
    if not before or not after or len(before) * len(after) > _MAX_CELLS:
        return []
    numbers: dict[_Item, int] = {}
    left = [numbers.setdefault(item, len(numbers)) for item in before]
    right = [numbers.setdefault(item, len(numbers)) for item in after]
    return [
        Run(code.src_start, code.dest_start, code.src_end - code.src_start)
        for code in LCSseq.opcodes(left, right)
        if code.tag == "equal"
    ]


def changes(before: Sequence[_Item], after: Sequence[_Item]) -> list[tuple[int, int, int, int]]:
    """List what differs: start and stop in *before*, start and stop in *after*."""
    found: list[tuple[int, int, int, int]] = []
    old = new = 0
    for run in [*runs(before, after), Run(len(before), len(after), 0)]:
        if run.old > old or run.new > new:
            found.append((old, run.old, new, run.new))
        old, new = run.old + run.size, run.new + run.size
    return found


def moved(before: Sequence[_Item], after: Sequence[_Item], start: int, stop: int) -> int | None:
    """Tell where the items from *start* to *stop* of *before* begin in *after*.

    Returns:
        None where one of them changed, where something came between them, or where a comparison from the end puts
        them elsewhere than one from the beginning, so that nobody can say which of several equal places is meant.
    """
    forward = _place(runs(before, after), start, stop)
    if forward is None:
        return None
    old, new = len(before), len(after)
    mirrored = _place(runs(before[::-1], after[::-1]), old - stop, old - start)
    return forward if mirrored is not None and new - mirrored - (stop - start) == forward else None


def _place(found: Sequence[Run], start: int, stop: int) -> int | None:
    for run in found:
        if run.old <= start and stop <= run.old + run.size:
            return run.new + start - run.old
    return None


def nearest(before: Sequence[_Item], after: Sequence[_Item], index: int) -> int:
    """Tell where in *after* an item of *before* is, or would be, had it not been changed."""
    place = 0
    for run in runs(before, after):
        if run.old > index:
            break
        place = run.new + min(index - run.old, run.size)
    return place
