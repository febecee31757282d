"""Take from text what a terminal would obey, or what turns the order of letters around."""

import json
import re
from typing import Final

_TURNING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode annex 9)."""
_OBEYED: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNING}]")
_OBEYED_BESIDE_OURS: Final = re.compile(f"[\x7f-\x9f{_TURNING}]")
"""Without those that colours of our own are made with."""
_SHOWN_INSTEAD: Final = "\ufffd"


def plain(text: str) -> str:
    """Replace control characters and marks of direction: a note's text must only be displayed."""
    return _OBEYED.sub(_SHOWN_INSTEAD, text)


def keep_colours(text: str) -> str:
    """Replace the same in text that may hold our own colours, and what of others' was made `plain` before."""
    return _OBEYED_BESIDE_OURS.sub(_SHOWN_INSTEAD, text)


def dump_json(data: object, *, indent: int | None = 2) -> str:
    r"""Write JSON of the very text, in which what a terminal would obey is escaped: ``\u009b``."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    # They occur in strings alone; JSON escapes the other control characters itself.
    return _OBEYED_BESIDE_OURS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
