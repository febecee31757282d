"""Cut text that is longer than a chunk may be, at the best place there is."""

import re
import unicodedata
from typing import Literal

Grain = Literal["prose", "lines"]

_LINE = re.compile(r"[\r\n]+")
_SENTENCE = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019\u00bb)\]*_]*\s+"  # with closing quotes and emphasis
    r"|[\u3002\uff01\uff1f\uff0e\uff61][\u300d\u300f\u201d\u2019\uff09\u3009\u300b\u3011]*\s*"  # the same in CJK
    r"|[\r\n]\s*"
)
_SPACE = re.compile(r"\s+")
_BREAKS = {"prose": (_SENTENCE, _SPACE), "lines": (_LINE, _SENTENCE, _SPACE)}
_JOINER = "\u200d"
_LONGEST_CLUSTER = 32
"""Characters that a cut steps back at most, so as not to tear an emoji or a letter from its marks."""


def stops(text: str, limit: int, grain: Grain) -> list[int]:
    """Cut *text* into pieces of at most *limit* characters, and give where each ends.

    ``stops("One. Two. Three.", 10, "prose")`` gives ``[10, 16]``.

    Args:
        text: What is to be cut.
        limit: Characters in a piece, at least 1.
        grain: Where to cut first: ``prose`` at sentence and line ends, ``lines`` at line ends alone; then at white
            space, then anywhere.

    Returns:
        Ends of the pieces, the last one the text's; empty for an empty text.
    """
    found: list[int] = []
    at = 0
    while len(text) - at > limit:
        at = _stop(text, at, limit, grain)
        found.append(at)
    return [*found, len(text)] if text else []


def _stop(text: str, at: int, limit: int, grain: Grain) -> int:
    for pattern in _BREAKS[grain]:
        best = at
        for match in pattern.finditer(text, at, at + limit):
            best = match.end()
        if best - at > limit // 3 or (pattern is _SPACE and best > at):
            return best
    return _hard_stop(text, at, limit)


def _hard_stop(text: str, at: int, limit: int) -> int:
    stop = at + limit
    lowest = max(at, stop - _LONGEST_CLUSTER)
    while stop > lowest and _joined(text, stop):
        stop -= 1
    return stop if stop > lowest else at + limit


def _joined(text: str, at: int) -> bool:
    """Tell whether the characters on both sides of *at* are seen as one."""
    after, before = text[at], text[at - 1]
    skin_tone = "\U0001f3fb" <= after <= "\U0001f3ff"
    return skin_tone or _JOINER in {after, before} or unicodedata.category(after)[0] == "M" or before + after == "\r\n"
