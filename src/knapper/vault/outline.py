r"""The parts of a note's text, each with its byte span and line.

Spans are half-open ``start``/``stop`` byte offsets into the file as it lies on disk, byte-order mark included; those of
a UTF-16 file count in ``source.decode(raw).data``, its text as UTF-8, since nothing in such a file is edited.
Lines count from 1; ``\\n``, ``\\r\\n`` and a bare ``\\r`` each end one (and nothing else does).
"""

from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One top-level block of the body: a paragraph, a whole list, a table, a fence with its marks."""

    kind: BlockKind
    start: int
    stop: int
    items: tuple[int, ...] = ()
    """Starts of a list's items or a table's rows (outermost ones), where a long block may be split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
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
