"""Recognise what the program logs in notes: callouts of its own kind, which search leaves out unless asked."""

import re
from typing import Final

from knapper.vault.covers import Span
from knapper.vault.outline import Outline

MARK: Final = "[!knap-log]"
"""Begins each entry's first line, after ``> ``."""
_NEEDLE: Final = MARK.encode()
_OPENING: Final = re.compile(rb">[ ]?\[!knap-log\]")
_QUOTED: Final = re.compile(rb"(?:>[^\r\n]*(?:\r\n|\r|\n|\Z))+")


def find(data: bytes, outline: Outline) -> tuple[Span, ...]:
    """Find the entries, in order: whole lines that all begin with ``>``.

    A line below an entry that only goes on with its text, without ``>``, is somebody else's and no part of it. What
    stands in code or in another quote is no entry.

    Args:
        data: The note as UTF-8.
        outline: What was read from it.
    """
    if _NEEDLE not in data:
        return ()
    quotes = (block.start for block in outline.blocks if block.kind == "quote")
    return tuple((start, _stop(data, start)) for start in quotes if _OPENING.match(data, start))


def _stop(data: bytes, start: int) -> int:
    quoted = _QUOTED.match(data, start)
    return quoted.end() if quoted else start
