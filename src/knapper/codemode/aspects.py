"""Split a task into the things that it asks about, where nobody has said which they are."""

import re
from typing import Final

MOST: Final = 12
_ENDS: Final = re.compile(
    r"[.!?;:,]+(?=\s|$)|[\n()\[\]\u2026\u3001\u3002\uff0c\uff1a\uff1b\uff01\uff1f\u061f\u060c\u061b\u0964]+"
)
_WORD: Final = re.compile(r"\w+")
_LEAST_CHARS: Final = 12
"""Of a part that stands for itself; a shorter one belongs to what comes before it."""


def split(task: str) -> tuple[str, ...]:
    """Give a task's parts, at most `MOST`; the last one takes what is beyond that.

    ``"Plan the garden: which fence, and when to plant?"`` gives three parts. Marks part them, not words, so that it is
    the same in every language; a part without a word is none.
    """
    parts: list[str] = []
    for part in _ENDS.split(task):
        text = part.strip()
        if not _WORD.search(text):
            continue
        if parts and (len(text) < _LEAST_CHARS or len(parts) == MOST):
            parts[-1] = f"{parts[-1]} {text}"
        else:
            parts.append(text)
    return tuple(parts)
