r"""Find where lines begin: ``\\n``, ``\\r\\n`` and a bare ``\\r`` end one, and nothing else does."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

Newline = Literal["\n", "\r\n", "\r", "mixed"]


def starts(data: bytes) -> tuple[int, ...]:
    r"""List the byte offset of each line's first byte.

    ``b"a\\r\\nb"`` gives ``(0, 3)``; ``b"a\\n"`` gives ``(0,)``, for nothing stands after its line ending.
    """
    lengths = map(len, data.splitlines(keepends=True))  # bytes split at these three endings only, unlike str
    return tuple(accumulate(lengths, initial=0))[:-1] or (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Hold where a file's lines begin, and answer in the time of a binary search."""

    starts: tuple[int, ...]
    size: int
    """Bytes in the file."""

    def number(self, offset: int) -> int:
        """Tell the 1-based number of the line that holds the byte at *offset*."""
        return bisect_right(self.starts, offset) or 1

    def start(self, offset: int) -> int:
        """Find the first byte of the line that holds *offset*."""
        return self.starts[self.number(offset) - 1]

    def stop(self, offset: int) -> int:
        """Find the byte after the line that holds *offset*, its ending included."""
        number = self.number(offset)
        return self.starts[number] if number < len(self.starts) else self.size


def of(data: bytes, *, text_start: int = 0) -> Lines:
    """Measure a file's lines.

    Args:
        data: The file.
        text_start: First byte after a byte-order mark, which the first line's text begins at.
    """
    found = starts(data)
    return Lines(starts=(text_start, *found[1:]) if text_start else found, size=len(data))


def count(data: bytes, offset: int) -> int:
    """Tell the 1-based number of the line at *offset* without a list of starts."""
    head = data[:offset]
    endings = head.count(b"\n") + head.count(b"\r") - head.count(b"\r\n")
    return endings + (0 if head.endswith(b"\r") and data[offset : offset + 1] == b"\n" else 1)


def ending(data: bytes) -> Newline:
    r"""Name the only line ending in *data*; ``\\n`` where there is none."""
    both = data.count(b"\r\n")
    feeds = data.count(b"\n") - both
    returns = data.count(b"\r") - both
    kinds: list[Newline] = []
    if feeds:
        kinds.append("\n")
    if both:
        kinds.append("\r\n")
    if returns:
        kinds.append("\r")
    return kinds[0] if len(kinds) == 1 else ("mixed" if kinds else "\n")
