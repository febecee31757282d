"""Mark which words differ between two texts."""

import re
from typing import Final, Literal, NamedTuple

from knapper.changes.text import alignment

Side = Literal["same", "removed", "added"]

_TOKEN: Final = re.compile(r"\w+|\r\n|\s|[^\w\s]")
_MAX_CHARACTERS: Final = 200_000
_MAX_TOKENS: Final = 8_000
_LEAST_SHARED: Final = 0.2


class Mark(NamedTuple):
    """Say of a stretch of text which side it is on.

    All that is ``same`` or ``removed``, joined, is the old text; all that is ``same`` or ``added`` the new one.
    """

    side: Side
    text: str


def compare(old: str, new: str) -> tuple[Mark, ...]:
    """Compare two texts by words.

    ``("a b", "a c")`` gives ``same "a "``, ``removed "b"``, ``added "c"``. Texts that have little in common, or are
    very long, count as wholly different, which reads better than words picked from everywhere.
    """
    if old == new:
        return (Mark("same", old),) if old else ()
    whole = tuple(mark for mark in (Mark("removed", old), Mark("added", new)) if mark.text)
    if len(whole) < 2 or max(len(old), len(new)) > _MAX_CHARACTERS:
        return whole
    left, right = _TOKEN.findall(old), _TOKEN.findall(new)
    if max(len(left), len(right)) > _MAX_TOKENS:
        return whole
    marks: list[Mark] = []
    at = there = shared = 0
    for run in (*alignment.runs(left, right), alignment.Run(len(left), len(right), 0)):
        same = "".join(left[run.old : run.old + run.size])
        shared += len(same.strip())
        _add(marks, Mark("removed", "".join(left[at : run.old])))
        _add(marks, Mark("added", "".join(right[there : run.new])))
        _add(marks, Mark("same", same))
        at, there = run.old + run.size, run.new + run.size
    return tuple(marks) if shared >= _LEAST_SHARED * min(len(old.strip()), len(new.strip())) else whole


def _add(marks: list[Mark], mark: Mark) -> None:
    if mark.text:
        marks.append(mark)
