"""Parse notes: bytes to an outline of sections, blocks, tags, tasks and links."""

import codecs
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from knapper.vault import files, frontmatter, markdown, source
from knapper.vault.frontmatter import Properties
from knapper.vault.markdown import LinkReader, MarkdownBlock, MaskedBody
from knapper.vault.paths import NotePath
from knapper.vault.source import Block, BlockId, BlockKind, Lines, Link, Outline, Section, Span, SpanSet, Tag, Task

_BLOCK_ID_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_LINE_ENDING: Final = re.compile(r"\r\n|\n|\r")


def list_sections(data: bytes, blocks: Sequence[MarkdownBlock], lines: Lines, body_start: int) -> tuple[Section, ...]:
    """List the sections in order; only top-level headings begin one, not those in lists, quotes or other blocks.

    Text before the first heading is a section of level 0 where it isn't blank, so that the frontmatter and the own
    spans of the sections cover the whole file.
    """
    headings = [part for part in blocks if part.kind == "heading" and part.parent is None]
    starts = [lines.line_start(part.start) for part in headings]
    sections: list[Section] = []
    first = starts[0] if starts else len(data)
    if data[body_start:first].strip():
        sections.append(_make_section(lines, (0, ()), (body_start, body_start, first, first)))
    # A section ends at the next heading of its level or above.
    levels = [part.level for part in headings]
    stops = [len(data)] * len(levels)
    open_sections: list[int] = []
    for number, level in enumerate(levels):
        while open_sections and levels[open_sections[-1]] >= level:
            stops[open_sections.pop()] = starts[number]
        open_sections.append(number)
    path: list[tuple[int, str]] = []
    for index, part in enumerate(headings):
        while path and path[-1][0] >= part.level:
            _ = path.pop()
        path.append((part.level, heading_title(data[part.start : part.stop].decode())))
        own_stop = starts[index + 1] if index + 1 < len(starts) else len(data)
        spans = (starts[index], lines.line_stop(part.stop - 1), own_stop, stops[index])
        sections.append(_make_section(lines, (part.level, tuple([name for _, name in path])), spans))
    return tuple(sections)


def _make_section(lines: Lines, head: tuple[int, tuple[str, ...]], spans: tuple[int, int, int, int]) -> Section:
    level, path = head
    start, body_start, own_stop, stop = spans
    return Section(
        level=level,
        title=path[-1] if path else "",
        path=path,
        start=start,
        body_start=body_start,
        own_stop=own_stop,
        stop=stop,
        line=lines.line_number(start),
        end_line=lines.line_number(max(start, stop - 1)),
    )


def heading_title(source: str) -> str:
    """Return a heading's text from its source: ``## A `b` ## ^id`` is ``A `b` ``, without closing signs and block id.

    A setext heading's lines are joined by spaces.
    """
    rows = [row.strip(" \t") for row in _LINE_ENDING.split(source.strip("\r\n"))]
    if len(rows) > 1:
        text = " ".join(rows[:-1])
    else:
        row = strip_block_id(rows[0]).lstrip("#")
        bare = row.rstrip("#")
        closes = not bare or bare[-1] in " \t"
        text = (bare if closes else row).strip(" \t")
    return strip_block_id(text).strip(" \t")


def strip_block_id(text: str) -> str:
    """Strip a block id from a line's end: ``A ^id`` is ``A``."""
    if "^" not in text:
        return text
    head, _, name = text.rpartition("^")
    if not _BLOCK_ID_NAME.fullmatch(name) or (head and head[-1] not in " \t"):
        return text
    return head.rstrip(" \t")


_BLOCK_ID: Final = re.compile(rb"\^([A-Za-z0-9-]+)[ \t]*(?=[\r\n]|\Z)")
_BLANK: Final = b" \t\r\n"
_NAMEABLE_KINDS: Final = frozenset({"paragraph", "heading", "item", "table"})


def list_blocks(
    data: bytes, body_start: int, blocks: Sequence[MarkdownBlock], hidden: Mapping[Span, BlockKind], lines: Lines
) -> Iterator[Block]:
    """List the blocks of the body as whole lines, in order and without overlap, with only blank lines in between.

    Args:
        data: The file.
        body_start: Where its body begins.
        blocks: Blocks of any depth.
        hidden: Comments and maths that were masked for the parser.
        lines: The file's lines.
    """
    covers = SpanSet(hidden)
    found: list[Block] = []
    for part in (part for part in blocks if part.parent is None):
        cover = covers.find(part.start) if hidden else None
        if cover is not None and cover[1] >= part.start + len(data[part.start : part.stop].rstrip(_BLANK)):
            continue
        part_kind: BlockKind = "list" if part.kind == "item" else part.kind
        items = tuple(map(lines.line_start, part.rows))
        found.append(_whole_lines_block(data, (part.start, part.stop), part_kind, lines, items))
    if hidden:
        found += [_whole_lines_block(data, span, kind, lines) for span, kind in hidden.items()]
        found.sort(key=lambda block: (block.start, -block.stop))
    stop = body_start
    for block in found:
        if block.start >= stop:
            yield from _leftover_paragraph(data, (stop, block.start), lines)
            yield block
            stop = block.stop
    yield from _leftover_paragraph(data, (stop, len(data)), lines)


def _leftover_paragraph(data: bytes, span: Span, lines: Lines) -> Sequence[Block]:
    """Return a paragraph for text without a block of the parser: definitions of reference links."""
    text = data[span[0] : span[1]]
    if not text or text.isspace():
        return ()
    return (_whole_lines_block(data, (span[1] - len(text.lstrip(_BLANK)), span[1]), "paragraph", lines),)


def _whole_lines_block(data: bytes, span: Span, kind: BlockKind, lines: Lines, items: tuple[int, ...] = ()) -> Block:
    start, stop = span
    last = max(start, start + len(data[start:stop].rstrip(_BLANK)) - 1)
    return Block(kind=kind, start=lines.line_start(start), stop=lines.line_stop(last), items=items)


def find_block_ids(data: bytes, blocks: Sequence[MarkdownBlock], code: SpanSet, lines: Lines) -> Iterator[BlockId]:
    """Find each ``^id`` at the end of a paragraph, list item or heading, or alone after the identified block."""
    id_matches = [
        match
        for match in _BLOCK_ID.finditer(data)
        if (not match.start() or data[match.start() - 1] in _BLANK) and not code.contains(match.start())
    ]
    if not id_matches:
        return
    stops = _TrimmedStops(data)
    blocks_by_stop = {
        stops.trimmed_stop(block.start, block.own_stop or block.stop): block
        for block in blocks
        if block.kind in _NAMEABLE_KINDS
    }
    last_children: dict[int, MarkdownBlock] = {}
    previous: dict[int, MarkdownBlock] = {}  # the block before each paragraph, under the same parent
    for part in blocks:
        parent = id(part.parent)
        if part.kind == "paragraph" and parent in last_children:
            previous[id(part)] = last_children[parent]
        last_children[parent] = part
    for match in id_matches:
        block = blocks_by_stop.get(match.end(1))
        if block is None:
            continue
        if block.kind == "paragraph" and block.start == match.start():
            block = previous.get(id(block), block)
        elif block.kind == "paragraph" and block.parent is not None and block.parent.kind == "item":
            block = block.parent
        yield BlockId(
            name=match[1].decode(),
            start=block.start,
            stop=stops.trimmed_stop(block.start, block.stop),
            id_start=match.start(),
            line=lines.line_number(match.start()),
        )


class _TrimmedStops:
    """Finds where text ends before trailing blanks; caches the ends, as nested items share them."""

    def __init__(self, data: bytes) -> None:
        self._data: bytes = data
        self._known: dict[int, int] = {}

    def trimmed_stop(self, start: int, stop: int) -> int:
        """Return the byte after the last one in *start* to *stop* that isn't blank."""
        if stop not in self._known:
            last = stop
            while last > 0 and self._data[last - 1] in _BLANK:
                last -= 1
            self._known[stop] = last
        return max(start, self._known[stop])


_TASK_ITEM: Final = re.compile(
    rb"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([^\]\r\n]{1,4})\](?=[ \t]|[\r\n]|\Z)[ \t]*([^\r\n]*)"
)


def find_tasks(data: bytes, blocks: Sequence[MarkdownBlock], hidden: SpanSet, lines: Lines) -> Iterator[Task]:
    """List the items that begin with ``[ ]``, ``[x]`` or any other character in brackets.

    A task's span is its first line, from the list marker to before the line ending.
    """
    for part in blocks:
        if part.kind != "item":
            continue
        match = _TASK_ITEM.match(data, part.start)
        if match is None or hidden.contains(match.start(1)):
            continue
        state = match[1].decode(errors="replace")
        if len(state) == 1:
            text = strip_block_id(match[2].decode().rstrip())
            yield Task(state=state, text=text, start=part.start, stop=match.end(), line=lines.line_number(part.start))


_TAG_CANDIDATE: Final = re.compile(rb"#[^\s'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\0]+")
_TAG_NAME: Final = re.compile(r"[^\s\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\0]+")
_TAG_PROPERTIES: Final = frozenset({"tag", "tags"})
_TAG_WORD: Final = re.compile(rb"[^\s,\[\]\"']+")
_YAML_BLOCK_SIGNS: Final = frozenset({"|", "|-", "|+", ">", ">-", ">+"})


def read_tag_name(text: str) -> str:
    """Return the tag name that *text* begins with, after ``#``; empty where there is none.

    A name holds letters of any script, digits, emoji, ``_``, ``-`` and ``/``, and at least one that isn't a digit.
    """
    match = _TAG_NAME.match(text)
    name = match.group() if match else ""
    return "" if not name.strip("/") or name.isdecimal() else name


def find_text_tags(
    data: bytes, body_start: int, covers: SpanSet, openings: Mapping[int, int], lines: Lines
) -> Iterator[Tag]:
    """Find ``#tag`` outside code, comments, HTML, maths and addresses.

    Obsidian recognises one at a line's start, after white space of any script, at the start of a text run
    (``**#tag**``, a table's cell), after ``_`` and directly after another tag; after any other punctuation it is text.

    Args:
        data: The file.
        body_start: Where its text begins.
        covers: Spans that contain no tags.
        openings: Starts of text runs that begin with ``#``, and where each run stops.
        lines: The file's lines.
    """
    previous_stop = -1
    for match in _TAG_CANDIDATE.finditer(data, body_start):
        start = match.start()
        # An escaped "#" isn't a tag, even at the start of a text run.
        if data[start - 1 : start] == b"\\":
            continue
        limit = openings.get(start)
        if limit is None and start != previous_stop and not _follows_space(data, start, body_start):
            continue
        if covers.contains(start):
            continue
        name = read_tag_name(data[start + 1 : limit or match.end()].decode(errors="ignore"))
        if name:
            previous_stop = start + 1 + len(name.encode())
            name = name.rstrip("/")
            stop = start + 1 + len(name.encode())
            yield Tag(name=name, start=start, stop=stop, line=lines.line_number(start), origin="text")


def _follows_space(data: bytes, start: int, body_start: int) -> bool:
    if start == body_start:
        return True
    if data[start - 1] < 0x80:
        return data[start - 1 : start].isspace() or data[start - 1] == ord("_")
    return data[max(body_start, start - 3) : start].decode(errors="ignore")[-1:].isspace()


def find_property_tags(data: bytes, properties: Properties, lines: Lines) -> Iterator[Tag]:
    """Find the entries of ``tags`` and ``tag``: a list, or words between commas and spaces; ``#`` may lead each."""
    if properties.root is None:
        return
    for key, value in frontmatter.mapping_pairs(properties.root):
        if isinstance(key, yaml.ScalarNode) and str(key.value).casefold() in _TAG_PROPERTIES:
            for node in frontmatter.sequence_items(value) or [value]:
                if not isinstance(node, yaml.ScalarNode) or node.value in {"", "~", "null"}:
                    continue
                span = (properties.offsets[node.start_mark.index], properties.offsets[node.end_mark.index])
                for match in _TAG_WORD.finditer(data, *span):
                    name = match.group().removeprefix(b"#").decode()
                    if name and name not in _YAML_BLOCK_SIGNS and not name.startswith(("&", "!")):
                        line = lines.line_number(match.start())
                        yield Tag(name=name, start=match.start(), stop=match.end(), line=line, origin="property")


def parse_note(raw: bytes) -> Outline:
    """Parse a note; damaged content is reported in ``problems``.

    Args:
        raw: The file as it lies on disk.

    Returns:
        Its outline; parts that couldn't be read are empty and listed in ``problems``.
    """
    head = _read_head(raw)
    data, line_index, body_start = head.data, head.lines, head.outline.body_start
    body = markdown.parse_body(data, body_start)
    block_tree = body.events.blocks
    code = SpanSet((*body.events.code, *body.events.html, *body.events.math, *body.math, *body.comments))
    hidden: dict[Span, BlockKind] = dict.fromkeys(body.math, "math")
    hidden.update(dict.fromkeys(body.comments, "comment"))
    tags = list(find_property_tags(data, head.properties, line_index)) if head.properties else []
    if data.find(b"#", body_start) >= 0:
        covers = _opaque_spans(body, ((anchor.untagged_start, anchor.stop) for anchor in body.events.links))
        tags += find_text_tags(data, body_start, covers, body.events.hash_starts, line_index)
    outline = head.outline
    # A copy by `replace` looks at all fields, also at those that are empty still.
    return Outline(
        encoding=outline.encoding,
        newline=outline.newline,
        line_starts=outline.line_starts,
        frontmatter=outline.frontmatter,
        body_start=body_start,
        problems=outline.problems,
        sections=list_sections(data, block_tree, line_index, body_start),
        blocks=tuple(list_blocks(data, body_start, block_tree, hidden, line_index)),
        links=_collect_links(head, body),
        tags=tuple(tags),
        tasks=tuple(find_tasks(data, block_tree, code, line_index)),
        block_ids=tuple(find_block_ids(data, block_tree, code, line_index)),
        code_spans=code.spans,
    )


def parse_links(raw: bytes) -> Outline:
    """Parse a note's properties and links, and no other structure, in two thirds of the time.

    Args:
        raw: The file as it lies on disk.

    Returns:
        An outline without sections, blocks, tags and tasks.
    """
    head = _read_head(raw)
    body = markdown.parse_body(head.data, head.outline.body_start)
    return replace(head.outline, links=_collect_links(head, body))


def parse_head(raw: bytes) -> Outline:
    """Parse a note's properties and line starts but not its text, in a tenth of the time.

    Args:
        raw: The file as it lies on disk.

    Returns:
        An outline without sections, blocks, links, tags and tasks.
    """
    return _read_head(raw).outline


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    data: bytes
    """The file as UTF-8."""
    lines: Lines
    properties: Properties | None
    outline: Outline
    """Without what is read from the text."""


def _read_head(raw: bytes) -> _Head:
    decoded = source.decode(raw)
    text_start = frontmatter.find_text_start(decoded.data)
    lines = source.measure_lines(decoded.data, text_start=text_start)
    properties = frontmatter.read_properties(decoded.data)
    outline = Outline(
        encoding=decoded.encoding,
        newline=source.detect_newline(decoded.data),
        line_starts=(0, *lines.starts[1:]) if text_start else lines.starts,
        frontmatter=properties.frontmatter if properties else None,
        body_start=properties.frontmatter.stop if properties else text_start,
        problems=(*decoded.problems, *(properties.problems if properties else ())),
    )
    return _Head(data=decoded.data, lines=lines, properties=properties, outline=outline)


def _collect_links(head: _Head, body: MaskedBody) -> tuple[Link, ...]:
    """Return the links of properties and body, without those in comments, as Obsidian does."""
    data, body_start = head.data, head.outline.body_start
    properties = head.properties
    link_list = list(frontmatter.find_property_links(data, properties, head.lines)) if properties else []
    reader = LinkReader(data, body.text, body_start, head.lines)
    link_list += reader.read(body.events.links, SpanSet((*body.comments, *body.math)))
    if data.find(b"://", body_start) >= 0:
        anchors = ((anchor.start, anchor.stop) for anchor in body.events.links)
        link_list += reader.addresses(_opaque_spans(body, anchors))
    link_list.sort(key=lambda link: (link.start, link.stop))
    return tuple(link_list)


def _opaque_spans(body: MaskedBody, links: Iterable[Span]) -> SpanSet:
    """Return all spans that contain neither tags nor web addresses."""
    events = body.events
    return SpanSet((*events.code, *events.html, *events.math, *body.math, *body.comments, *links))


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One note at one moment: its bytes, outline and hash."""

    path: NotePath
    raw: bytes
    hash: str
    """Hash of ``raw``, which a change names as its base."""
    outline: Outline

    @property
    def may_have_pending(self) -> bool:
        """Return whether pending edits may wait in it, by a look that needs no structure."""
        data = source.utf8_bytes(self.raw, self.outline)
        return any(mark in data for mark in source.PENDING_MARKS)


def read_note(root: Path, path: NotePath, *, max_bytes: int = files.DEFAULT_MAX_BYTES) -> Note:
    """Read and parse a note.

    Args:
        root: The vault's folder.
        path: From `knapper.vault.paths.parse`; another spelling of the name on disk is accepted.
        max_bytes: A larger note is an error (code ``too_large``).

    Raises:
        NotFound: There is no such file, or it was removed meanwhile.
        BadInput: It is a folder, a pipe or a device (code ``not_a_file``), or too large.
        RefusedError: A symbolic link leads out of the vault (code ``outside_vault``).
        StorageError: Permission is missing, or the disk fails.
    """
    file = files.resolve_path(root, path)
    raw = files.read_bytes(file.file, shown_as=file.path, max_bytes=max_bytes)
    return make_note(file.path, raw)


def make_note(path: NotePath, raw: bytes, *, read: Callable[[bytes], Outline] = parse_note) -> Note:
    """Build a note from bytes; *read* may be `parse_head` where only properties matter."""
    return Note(path=path, raw=raw, hash=content_hash(raw), outline=read(raw))


def content_hash(raw: bytes) -> str:
    """Return the hash of a file's content: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def decode_text(raw: bytes) -> str:
    """Decode a note of any bytes for people and the index; changes are made to the bytes instead.

    UTF-8, or UTF-16 where there is such a byte-order mark; the mark is dropped. Lines that aren't UTF-8 are decoded as
    Windows-1252, or Latin-1 where that has gaps, so that a note of mixed origin stays readable.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    body = raw.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "".join(_decode_line(line) for line in body.splitlines(keepends=True))


def _decode_line(line: bytes) -> str:
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")
