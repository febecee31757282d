"""Find what two sequences have in common, in order and fast enough for any file."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple, TypeVar

from rapidfuzz.distance import LCSseq

_MAX_CELLS: Final = 200_000_000

_Item = TypeVar("_Item", bound=Hashable)


class Run(NamedTuple):
    """Hold *size* equal items, from *old* in one sequence and from *new* in the other."""

    old: int
    new: int
    size: int


def runs(before: Sequence[_Item], after: Sequence[_Item], *, max_cells: int = _MAX_CELLS) -> list[Run]:
    """List the equal stretches of two sequences, in order.

    ``runs("abxd", "abyd")`` gives ``[Run(0, 0, 2), Run(3, 3, 1)]``. What both begin with is taken first, then what
    both end with; between them stands a longest common subsequence.
    """
    head = _common(before, after, min(len(before), len(after)))
    room = min(len(before), len(after)) - head
    tail = _common(before[::-1], after[::-1], room) if room else 0
    found = [Run(0, 0, head)] if head else []
    middle = (before[head : len(before) - tail], after[head : len(after) - tail])
    found += [Run(head + run.old, head + run.new, run.size) for run in _middle(*middle, max_cells)]
    if tail:
        found.append(Run(len(before) - tail, len(after) - tail, tail))
    return found


def _common(before: Sequence[_Item], after: Sequence[_Item], most: int) -> int:
    for index in range(most):
        if before[index] != after[index]:
            return index
    return most


def _middle(before: Sequence[_Item], after: Sequence[_Item], max_cells: int) -> list[Run]:
    if not before or not after:
        return []
    numbers: dict[_Item, int] = {}
    left = [numbers.setdefault(item, len(numbers)) for item in before]
    right = [numbers.setdefault(item, len(numbers)) for item in after]
    if len(left) * len(right) <= max_cells:
        return _subsequence(left, right)
    found: list[Run] = []
    old = new = 0
    for at, there in (*_anchors(left, right), (len(left), len(right))):
        gap = (left[old:at], right[new:there])
        if len(gap[0]) * len(gap[1]) <= max_cells:
            found += [Run(old + run.old, new + run.new, run.size) for run in _subsequence(*gap)]
        if at < len(left):
            found.append(Run(at, there, 1))
        old, new = at + 1, there + 1
    return _joined(found)


def _subsequence(left: Sequence[int], right: Sequence[int]) -> list[Run]:
    """Find a longest common subsequence."""
    if not left or not right:
        return []
    return [
        Run(code.src_start, code.dest_start, code.src_end - code.src_start)
        for code in LCSseq.opcodes(left, right)
        if code.tag == "equal"
    ]


def _anchors(left: Sequence[int], right: Sequence[int]) -> list[tuple[int, int]]:
    """Pair the items that stand once on each side, as many as keep their order."""
    twice = {item for side in (left, right) for item, count in Counter(side).items() if count > 1}
    places = {item: place for place, item in enumerate(right) if item not in twice}
    pairs = [(place, places[item]) for place, item in enumerate(left) if item in places and item not in twice]
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, there) in enumerate(pairs):
        rank = bisect_left(tails, there)
        before.append(last[rank - 1] if rank else -1)
        tails[rank : rank + 1] = [there]
        last[rank : rank + 1] = [index]
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _joined(found: Sequence[Run]) -> list[Run]:
    joined: list[Run] = []
    for run in found:
        if joined and (joined[-1].old + joined[-1].size, joined[-1].new + joined[-1].size) == (run.old, run.new):
            joined[-1] = joined[-1]._replace(size=joined[-1].size + run.size)
        else:
            joined.append(run)
    return joined


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
