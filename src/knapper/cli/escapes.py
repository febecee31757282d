"""Remove control characters and marks of text direction from what is written to a terminal."""

import json
import re
from typing import Final

_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode annex 9)."""
_CONTROL: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")
_CONTROL_BUT_COLOURS: Final = re.compile(f"[\x7f-\x9f{_BIDI}]")
"""Without those that escape sequences of our own colours are made of."""
_REPLACEMENT: Final = "\ufffd"


def plain(text: str) -> str:
    """Replace control characters and marks of direction: a note's text must only be displayed."""
    return _CONTROL.sub(_REPLACEMENT, text)


def keep_colours(text: str) -> str:
    """Replace the same in text that may hold escape sequences of our own; what is others' was made `plain` before."""
    return _CONTROL_BUT_COLOURS.sub(_REPLACEMENT, text)


def dump_json(data: object, *, indent: int | None = 2) -> str:
    r"""Return JSON in which the same characters are escaped, so that no text is lost: ``\u009b``."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    # They occur in strings alone; JSON escapes the other control characters itself.
    return _CONTROL_BUT_COLOURS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
