"""Decode a file's bytes as UTF-8, and locate lines and byte spans in them."""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from knapper.vault.outline import Problem

Span = tuple[int, int]


class SpanSet:
    """A set of spans, merged and in order.

    ``SpanSet([(2, 5)]).find(3)`` is ``(2, 5)``, and ``.find(5)`` is None.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans: tuple[Span, ...] = merge_spans(spans)
        self._starts: list[int] = [start for start, _ in self.spans]

    def find(self, offset: int) -> Span | None:
        """Return the span that contains the byte at *offset*, or None."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or self.spans[index][1] <= offset:
            return None
        return self.spans[index]

    def contains(self, offset: int) -> bool:
        """Return whether a span contains the byte at *offset*."""
        return self.find(offset) is not None


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort spans and join those that overlap."""
    merged_spans: list[Span] = []
    for start, stop in sorted(spans):
        if merged_spans and start < merged_spans[-1][1]:
            merged_spans[-1] = (merged_spans[-1][0], max(stop, merged_spans[-1][1]))
        else:
            merged_spans.append((start, stop))
    return tuple(merged_spans)


Newline = Literal["\n", "\r\n", "\r", "mixed"]


def find_line_starts(data: bytes) -> tuple[int, ...]:
    r"""List the byte offset of each line's first byte.

    ``b"a\\r\\nb"`` gives ``(0, 3)``; ``b"a\\n"`` gives ``(0,)``, as nothing follows its line ending.
    """
    # bytes.splitlines() splits at these three endings only, unlike that of str.
    lengths = map(len, data.splitlines(keepends=True))
    return tuple(accumulate(lengths, initial=0))[:-1] or (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The line starts of a file, with lookups by binary search."""

    starts: tuple[int, ...]
    size: int
    """Length of the file in bytes."""

    def line_number(self, offset: int) -> int:
        """Return the 1-based number of the line that contains the byte at *offset*."""
        return bisect_right(self.starts, offset) or 1

    def line_start(self, offset: int) -> int:
        """Find the first byte of the line that contains *offset*."""
        return self.starts[self.line_number(offset) - 1]

    def line_stop(self, offset: int) -> int:
        """Find the byte after the line that contains *offset*, its ending included."""
        number = self.line_number(offset)
        return self.starts[number] if number < len(self.starts) else self.size


def measure_lines(data: bytes, *, text_start: int = 0) -> Lines:
    """Index a file's lines.

    Args:
        data: The file.
        text_start: First byte after a byte-order mark, which the first line's text begins at.
    """
    line_starts = find_line_starts(data)
    return Lines(starts=(text_start, *line_starts[1:]) if text_start else line_starts, size=len(data))


def line_number_at(data: bytes, offset: int) -> int:
    """Return the 1-based number of the line at *offset*, without an index of the lines."""
    before = data[:offset]
    endings = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
    return endings + (0 if before.endswith(b"\r") and data[offset : offset + 1] == b"\n" else 1)


def detect_newline(data: bytes) -> Newline:
    r"""Return the line ending of *data*, or ``mixed``; ``\\n`` where there is none."""
    crlfs = data.count(b"\r\n")
    lfs = data.count(b"\n") - crlfs
    crs = data.count(b"\r") - crlfs
    kinds: list[Newline] = []
    if lfs:
        kinds.append("\n")
    if crlfs:
        kinds.append("\r\n")
    if crs:
        kinds.append("\r")
    return kinds[0] if len(kinds) == 1 else ("mixed" if kinds else "\n")


Encoding = Literal["utf-8", "utf-8-sig", "utf-16", "unknown"]

_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file as valid UTF-8.

    Except for UTF-16, *data* has the file's length, so that every offset in it is also one in the file.
    """

    data: bytes
    encoding: Encoding
    problems: tuple[Problem, ...]


def decode(raw: bytes) -> Source:
    r"""Decode a file's bytes as UTF-8 without changing any offset.

    ``b"a\\xffb"`` gives ``b"a?b"`` and the problem ``not_utf8``.

    Returns:
        The file itself where it is UTF-8, else with one ``?`` for each invalid byte. A file with a UTF-16
        byte-order mark is transcoded, without the mark, and its offsets count in the transcoded bytes.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _transcode_utf16(raw)
    encoding: Encoding = "utf-8-sig" if raw.startswith(codecs.BOM_UTF8) else "utf-8"
    problems: tuple[Problem, ...] = ()
    data = raw
    try:
        _ = raw.decode()
    except UnicodeDecodeError as error:
        # A UTF-8 decoder never yields a lone surrogate itself, so each one stands for exactly one bad byte.
        data = _ESCAPED_BYTE.sub("?", raw.decode(errors="surrogateescape")).encode()
        line = line_number_at(raw, error.start)
        byte = f"byte 0x{raw[error.start]:02x}"
        message = f"not UTF-8 from line {line} on ({byte}): such lines are shown as Windows-1252"
        problems = (Problem(code="not_utf8", message=message, line=line),)
        encoding = encoding if encoding == "utf-8-sig" else "unknown"
    return Source(data=data, encoding=encoding, problems=problems + _nul_problems(data))


def _transcode_utf16(raw: bytes) -> Source:
    text = raw.decode("utf-16", errors="replace")
    data = text.encode(errors="replace")
    problem = Problem(code="not_utf8", message="the file is UTF-16; it can be read, but not edited", line=1)
    return Source(data=data, encoding="utf-16", problems=(problem, *_nul_problems(data)))


def _nul_problems(data: bytes) -> tuple[Problem, ...]:
    at = data.find(b"\0")
    if at < 0:
        return ()
    line = line_number_at(data, at)
    return (Problem(code="nul_bytes", message=f"there is a NUL byte in line {line}", line=line),)
