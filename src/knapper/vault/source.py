"""A note's text: its bytes decoded as UTF-8, and the parts of it, each with its byte span and line."""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from knapper.jsontypes import JSONValue

BlockKind = Literal["paragraph", "heading", "list", "table", "code", "quote", "html", "math", "comment", "rule"]
LinkKind = Literal["wikilink", "embed", "markdown", "image", "property", "canvas", "base", "external"]
ProblemCode = Literal[
    "invalid_yaml", "duplicate_key", "not_utf8", "nul_bytes", "unreadable", "too_large", "invalid_json"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem in a file, with its line."""

    code: ProblemCode
    message: str
    line: int = 0
    """1-based; 0 where no line applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontmatter:
    r"""The properties at the head of a note.

    ``---\\ntags: [a]\\n---\\n`` has start 0, stop 18, ``values == {"tags": ["a"]}``.
    """

    start: int
    """First byte of the opening ``---``; 3 after a byte-order mark, else 0."""
    yaml_start: int
    yaml_stop: int
    stop: int
    """After the closing line with its line ending."""
    values: dict[str, JSONValue]
    """Empty where the YAML is invalid; ``Outline.problems`` has the reason then."""
    end_line: int
    valid: bool


class Section(NamedTuple):
    """A heading and its text, up to the next heading of the same or a higher level."""

    level: int
    """1 to 6; 0 for the text before the first heading (present only where that text isn't blank)."""
    title: str
    """The heading's source text without ``#`` signs; empty at level 0."""
    path: tuple[str, ...]
    """Titles from the outermost heading to this one."""
    start: int
    body_start: int
    """First byte after the heading's line (after the underline of a setext heading)."""
    own_stop: int
    """Where the first sub-heading begins; equals ``stop`` where there is none."""
    stop: int
    line: int
    end_line: int
    """The section's last line."""


class Block(NamedTuple):
    """One top-level block of the body: a paragraph, a whole list, a table, a fence with its marks."""

    kind: BlockKind
    start: int
    stop: int
    items: tuple[int, ...] = ()
    """Starts of a list's items or a table's rows (outermost ones), where a long block may be split."""


class Link(NamedTuple):
    """One link as written.

    ``![[Folder/Note#H1#H2|text]]`` has kind ``embed``, target ``Folder/Note``, headings ``("H1", "H2")`` and alias
    ``text``. A reference link's target span lies in its definition, which several links may share.
    """

    kind: LinkKind
    target: str
    """Decoded path or name without fragment; empty for ``[[#Heading]]``; the address for ``external``."""
    headings: tuple[str, ...]
    block: str
    """Block id without ``^``; empty where there is none."""
    alias: str | None
    """Shown text as written; None where a wikilink has none."""
    start: int
    stop: int
    target_start: int
    """Span that a move rewrites: the target as written, without fragment, alias, brackets or ``<>``."""
    target_stop: int
    line: int
    key: str = ""
    """Property, canvas node id or Bases path of the link; empty in text."""


class Tag(NamedTuple):
    """One tag as written, without ``#``."""

    name: str
    start: int
    stop: int
    line: int
    origin: Literal["text", "property"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task item."""

    state: str
    """The character between the brackets; a space for an open task."""
    text: str
    start: int
    stop: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockId:
    """A ``^id`` and the block that it identifies."""

    name: str
    start: int
    """First byte of the identified block (paragraph or list item)."""
    stop: int
    id_start: int
    """Offset of the ``^``."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of decoded text from a file that isn't Markdown."""

    text: str
    start: int
    """Span of the text as written, escapes included and quotes not."""
    stop: int
    line: int
    key: str
    """Canvas node id or Bases path of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The structure of a file, read from its bytes; everything in order of position.

    Fields that don't apply to a kind of file are empty: a canvas has no sections.
    """

    encoding: Literal["utf-8", "utf-8-sig", "utf-16", "unknown"]
    newline: Literal["\n", "\r\n", "\r", "mixed"]
    """The file's line ending where it uses only one; ``\\n`` where it has none."""
    line_starts: tuple[int, ...]
    """Byte offset of each line's first byte; ``(0,)`` for an empty file. No line begins after the last ending."""
    frontmatter: Frontmatter | None = None
    body_start: int
    """First byte after the frontmatter; after the byte-order mark where there is none."""
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()
    links: tuple[Link, ...] = ()
    tags: tuple[Tag, ...] = ()
    tasks: tuple[Task, ...] = ()
    block_ids: tuple[BlockId, ...] = ()
    code_spans: tuple[tuple[int, int], ...] = ()
    """Fences, inline code, maths, comments and raw HTML, which contain no links or tags."""
    problems: tuple[Problem, ...] = ()
    passages: tuple[Passage, ...] = ()
    """Text of a canvas or base, which has no sections and blocks; empty for Markdown."""


PENDING_MARKS: Final = (b"`ai-edit", b"#ai_edit")
"""In the fence and the tag of each pending edit; see `knapper.vault.pending`."""


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
        return self.starts[(bisect_right(self.starts, offset) or 1) - 1]

    def line_stop(self, offset: int) -> int:
        """Find the byte after the line that contains *offset*, its ending included."""
        number = bisect_right(self.starts, offset) or 1
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
    if b"\r" not in data:
        return "\n"
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
        data = raw.decode("utf-16", errors="replace").encode(errors="replace")
        problem = Problem(code="not_utf8", message="the file is UTF-16; it can be read, but not edited", line=1)
        return Source(data=data, encoding="utf-16", problems=(problem, *_nul_problems(data)))
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


def utf8_bytes(raw: bytes, outline: Outline) -> bytes:
    """Return a file's bytes as its outline's offsets count in them."""
    return decode(raw).data if outline.encoding == "utf-16" else raw


def _nul_problems(data: bytes) -> tuple[Problem, ...]:
    at = data.find(b"\0")
    if at < 0:
        return ()
    line = line_number_at(data, at)
    return (Problem(code="nul_bytes", message=f"there is a NUL byte in line {line}", line=line),)
