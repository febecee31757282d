"""Measure how much of a text says nothing: properties, navigation, lines that were there before."""

import re
from collections.abc import Iterator
from typing import Final

_FENCE: Final = "---"
_PROPERTY: Final = re.compile(r"[\w .-]{1,60}:(?:\s|$)")
_IN_PROPERTY: Final = re.compile(r"(?:\s+|- |#|$)")
_LINK: Final = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\]\([^)\n]*\)|<?https?://\S+|(?<!\S)#[\w/-]+")
_WORD: Final = re.compile(r"\w")
_LEAST_REPEATED: Final = 8
"""Characters of a line whose repetition counts; shorter ones are list marks and table rules."""
_FEW: Final = 3
"""Word characters that may stand beside links in a line of navigation: an arrow's label, a number."""


def share(text: str) -> float:
    """Give the share of a text's characters that is boilerplate; 0 for an empty one."""
    total = wasted = 0
    seen: set[str] = set()
    for line, is_property in _lines(text):
        total += len(line)
        folded = " ".join(line.casefold().split())
        repeated = len(folded) >= _LEAST_REPEATED and folded in seen
        seen.add(folded)
        if is_property or repeated or is_navigation(line):
            wasted += len(line)
    return wasted / total if total else 0.0


def is_navigation(line: str) -> bool:
    """Tell whether a line holds links or tags and next to nothing else: a menu, a trail, a list of links."""
    rest, links = _LINK.subn(" ", line)
    return bool(links) and len(_WORD.findall(rest)) <= _FEW


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines that hold a word, and whether each stands in properties."""
    lines = [line.strip("\r") for line in text.split("\n")]
    at = 0
    while at < len(lines):
        stop = _end_of_properties(lines, at)
        for line in lines[at : max(stop, at + 1)]:
            if _WORD.search(line):
                yield line.strip(), stop > at
        at = max(stop, at + 1)


def _end_of_properties(lines: list[str], at: int) -> int:
    """Give where properties that begin in a line end; 0 where none do, as ``---`` also parts what scripts join."""
    if not lines[at].rstrip().endswith(_FENCE) or at + 1 >= len(lines) or not _PROPERTY.match(lines[at + 1]):
        return 0
    for place in range(at + 1, len(lines)):
        if lines[place].rstrip() == _FENCE:
            return place + 1
        if not (_PROPERTY.match(lines[place]) or _IN_PROPERTY.match(lines[place])):
            return 0
    return 0
