"""Make strangers' text fit to be shown."""

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters, marks that turn the direction of writing, and tags, in all of which text can be hidden."""
_SPACES: Final = re.compile(r"\s+")


def tidy(text: str) -> str:
    """Leave out characters that nobody sees, and write each line's end as a newline."""
    return _UNSEEN.sub("", whole(text).replace("\r\n", "\n").replace("\r", "\n"))


def whole(text: str) -> str:
    """Put a question mark for half of a character: JSON can hold it, and providers cut texts within an emoji."""
    return text.encode(errors="replace").decode()


def line(text: str, most: int) -> str:
    """Write a text on one line of at most so many characters."""
    short = _SPACES.sub(" ", tidy(text)).strip()
    return short if len(short) <= most else short[: most - 1].rstrip() + "…"
