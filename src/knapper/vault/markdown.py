"""Parse Markdown with Obsidian's comments and maths masked, and read the links of a note's body."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, cast
from urllib.parse import unquote

import pyromark
from pyromark import Options

from knapper.vault import links
from knapper.vault.source import BlockKind, Lines, Link, LinkKind, Span, SpanSet

LinkForm = Literal["wiki", "inline", "reference", "auto"]

_BARE_CR: Final = re.compile(r"\r(?!\n)")
_PARSER_OPTIONS: Final = (
    Options.ENABLE_TABLES
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_MATH
    | Options.ENABLE_GFM
    | Options.ENABLE_WIKILINKS
)
_LINK_FORMS: Final[dict[str, LinkForm]] = {
    "Inline": "inline",
    "Reference": "reference",
    "Collapsed": "reference",
    "Shortcut": "reference",
    "Autolink": "auto",
    "Email": "auto",
}
_BLOCK_KINDS: Final[dict[str, BlockKind]] = {
    "Paragraph": "paragraph",
    "Heading": "heading",
    "List": "list",
    "Table": "table",
    "CodeBlock": "code",
    "BlockQuote": "quote",
    "HtmlBlock": "html",
    "FootnoteDefinition": "paragraph",
    "Rule": "rule",
}
_ROW_TAGS: Final = frozenset({"Item", "TableHead", "TableRow"})
_LINK_TAGS: Final = frozenset({"Link", "Image"})
_BLOCK_END_TAGS: Final = frozenset({*_BLOCK_KINDS, "Item"})
"""Tags of end events without data that close a block; end events with data close a heading, a list or a quote."""
_ENDING_LENGTH: Final = 2
_MAX_NESTED_LINKS: Final = 20
"""Depth of images inside images' texts: each text repeats all inner ones, so deep nesting takes quadratic memory."""


@dataclass(slots=True)
class MarkdownBlock:
    """One block of any depth, with the parser's span, trailing blank lines included."""

    kind: BlockKind | Literal["item"]
    start: int
    stop: int
    parent: "MarkdownBlock | None"
    """The enclosing block; None at the top level."""
    rows: list[int]
    """Starts of a list's items or a table's rows."""
    level: int = 0
    """Level of a heading; 0 for other blocks."""
    own_stop: int = 0
    """For a list item: where its first sub-list begins; 0 where it has none."""


@dataclass(slots=True)
class RawLink:
    """One link as the parser reports it."""

    form: LinkForm
    image: bool
    start: int
    stop: int
    destination: str
    """Unescaped; includes the fragment for a wikilink."""
    label: str
    """Label of a reference link."""
    text_stop: int
    """Where the link's text ends, as far as events have been read."""

    @property
    def untagged_start(self) -> int:
        """Return where tags end: a Markdown link's text may hold tags, an image or a wikilink may not."""
        return self.start if self.image or self.form in {"wiki", "auto"} else self.text_stop


@dataclass(slots=True)
class ParserEvents:
    """The result of one pass over the parser's events, in order of position."""

    blocks: list[MarkdownBlock] = field(default_factory=list[MarkdownBlock])
    links: list[RawLink] = field(default_factory=list[RawLink])
    code: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Fences and inline code."""
    html: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    math: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    hash_starts: dict[int, int] = field(default_factory=dict[int, int])
    """Starts of text runs that begin with ``#``, as in ``**#tag**`` or a table's cell, with their stops."""


def parse_events(text: str, base: int) -> ParserEvents:
    """Parse Markdown.

    Args:
        text: A note's body.
        base: Byte offset of the body in its file, added to every span.
    """
    walk = _EventCollector(base)
    if "\r" in text:
        # pyromark 0.10 doesn't end a line of indented code at a bare carriage return.
        text = _BARE_CR.sub("\n", text)
    events = pyromark.events_with_range(text, options=_PARSER_OPTIONS, merge_text=True)
    walk.run(cast("Iterable[tuple[dict[str, object] | str, dict[str, int]]]", events))
    return walk.collected


def find_definitions(text: str, base: int) -> dict[str, tuple[int, int]]:
    """Find the definitions of reference links: folded label to span."""
    raw_definitions = pyromark.reference_definitions(text, options=_PARSER_OPTIONS)
    spans = {fold_label(name): definition["span"] for name, definition in raw_definitions.items()}
    return {name: (base + span["start"], base + span["end"]) for name, span in spans.items()}


def fold_label(name: str) -> str:
    """Fold a reference's label as CommonMark compares labels."""
    return " ".join(name.split()).casefold()


class _EventCollector:
    """Collects blocks and links from the parser's events, and tracks which are open."""

    def __init__(self, base: int) -> None:
        self.collected: ParserEvents = ParserEvents()
        self._base: int = base
        self._open: list[MarkdownBlock] = []
        """Open blocks, outermost first."""
        self._open_links: list[RawLink] = []
        """Open links, outermost first; a link may contain an image."""
        self._at_text_start: bool = False
        """Whether an inline span or a cell has just begun, so that a new text run begins."""

    def run(self, events: Iterable[tuple[dict[str, object] | str, dict[str, int]]]) -> None:
        """Read all events."""
        base = self._base
        anchors = self._open_links
        for event, span in events:
            if isinstance(event, str):
                if event == "Rule":
                    self._block_start("Rule", None, base + span["start"], base + span["end"])
                continue
            kind, value = event.popitem()
            if kind == "Text":
                if anchors:
                    anchors[-1].text_stop = base + span["end"]
                if self._at_text_start:
                    self._text(str(value), base + span["start"], base + span["end"])
            elif kind == "Start":
                self._start(value, base + span["start"], base + span["end"])
            elif kind == "End":
                self._stop(value, base + span["end"])
            else:
                self._inline(kind, base + span["start"], base + span["end"])

    def _text(self, text: str, start: int, stop: int) -> None:
        self._at_text_start = False
        if text.startswith("#"):
            self.collected.hash_starts[start] = stop

    def _inline(self, kind: str, start: int, stop: int) -> None:
        self._at_text_start = False
        if kind == "Code":
            self.collected.code.append((start, stop))
        elif kind == "InlineHtml":
            self.collected.html.append((start, stop))
        elif kind in {"InlineMath", "DisplayMath"}:
            self.collected.math.append((start, stop))
            part = self._open[-1]
            if part.start == start and part.stop - stop <= _ENDING_LENGTH and kind == "DisplayMath":
                part.kind = "math"
        if self._open_links:
            self._open_links[-1].text_stop = stop

    def _start(self, tag: object, start: int, stop: int) -> None:
        name, data = (tag, None) if isinstance(tag, str) else cast("dict[str, object]", tag).popitem()
        if name in _BLOCK_KINDS:
            self._block_start(name, data, start, stop)
        elif name in _ROW_TAGS:
            owner = self._open[-1]
            owner.rows.append(start)
            if name == "Item":
                part = MarkdownBlock("item", start, stop, owner, [])
                self.collected.blocks.append(part)
                self._open.append(part)
        else:
            self._at_text_start = True
            if name in _LINK_TAGS:
                tag_data = cast("dict[str, object]", data)
                link_type = tag_data["link_type"]
                form: LinkForm = _LINK_FORMS.get(link_type, "inline") if isinstance(link_type, str) else "wiki"
                text_start = start + (2 if name == "Image" else 1)
                anchor = RawLink(
                    form, name == "Image", start, stop, str(tag_data["dest_url"]), str(tag_data["id"]), text_start
                )
                if len(self._open_links) < _MAX_NESTED_LINKS:
                    self.collected.links.append(anchor)
                self._open_links.append(anchor)

    def _block_start(self, name: str, data: object, start: int, stop: int) -> None:
        parent = self._open[-1] if self._open else None
        part = MarkdownBlock(_BLOCK_KINDS[name], start, stop, parent, [])
        self.collected.blocks.append(part)
        if name == "Rule":
            return
        self._open.append(part)
        if name == "Paragraph":
            return
        if name == "Heading":
            part.level = int(str(cast("dict[str, object]", data)["level"])[1:])
        elif name == "List" and parent is not None and parent.kind == "item" and not parent.own_stop:
            parent.own_stop = start
        elif name == "CodeBlock":
            self.collected.code.append((start, stop))
        elif name == "HtmlBlock":
            self.collected.html.append((start, stop))

    def _stop(self, tag: object, stop: int) -> None:
        self._at_text_start = False
        if not isinstance(tag, str) or tag in _BLOCK_END_TAGS:
            _ = self._open.pop()
        elif tag in _LINK_TAGS:
            _ = self._open_links.pop()
        if self._open_links:
            self._open_links[-1].text_stop = stop


_HIDING_MARK: Final = re.compile(rb"%%|\$\$")
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r)[ \t>]*(?:\r\n|\n|\r)")
_LINE_LEAD: Final = re.compile(rb"(?:^|[\r\n])[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?)*\Z")
_LINE_TAIL: Final = re.compile(rb"[ \t]*(?:\r\n|\n|\r|\Z)")
_NOT_ENDING: Final = re.compile(rb"[^\r\n]")
_NOT_SPACE: Final = re.compile(rb"[^\r\n \t]")
_MAX_PASSES: Final = 6
_MAX_LEAD: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedBody:
    """The events of a body whose comments and maths were masked."""

    events: ParserEvents
    text: str
    """What was parsed: the body, masked by characters of the same length."""
    comments: tuple[Span, ...]
    math: tuple[Span, ...]
    """Maths that was masked; maths that the parser recognised is in *events*."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _HiddenSpan:
    kind: Literal["comment", "math"]
    start: int
    stop: int


def parse_body(data: bytes, base: int) -> MaskedBody:
    r"""Parse the body that begins at *base*, once more after each masking.

    ``%%\\n# x\\n%%`` has one comment and no heading.
    """
    body = data[base:]
    text = body.decode()
    parser_events = parse_events(text, base)
    hidden: list[_HiddenSpan] = []
    settled_to = 0
    if b"%%" not in body and b"$$" not in body:
        return MaskedBody(events=parser_events, text=text, comments=(), math=())
    for _ in range(_MAX_PASSES):
        new_spans, settled_to = _find_hidden(body, base, settled_to, parser_events)
        hidden += new_spans
        if new_spans:
            text = _mask_body(body, hidden).decode()
            parser_events = parse_events(text, base)
        if settled_to >= len(body):
            break
    return MaskedBody(
        events=parser_events,
        text=text,
        comments=tuple((base + span.start, base + span.stop) for span in hidden if span.kind == "comment"),
        math=tuple((base + span.start, base + span.stop) for span in hidden if span.kind == "math"),
    )


def _find_hidden(body: bytes, base: int, settled_to: int, parser_events: ParserEvents) -> tuple[list[_HiddenSpan], int]:
    """Find hidden spans from *settled_to* on, up to where masking one invalidates this pass's code spans.

    Returns:
        The spans to mask, and the offset up to which they are final.
    """
    links = [(anchor.start, anchor.stop) for anchor in parser_events.links]
    opaque = SpanSet((start - base, stop - base) for start, stop in (*parser_events.code, *parser_events.html, *links))
    parsed_math = {(start - base, stop - base) for start, stop in parser_events.math}
    closers = _ClosingMarks(body)
    hidden: list[_HiddenSpan] = []
    while mark := _HIDING_MARK.search(body, settled_to):
        opaque_span = opaque.find(mark.start())
        if opaque_span is not None or _is_literal(body, mark.start()):
            settled_to = max(opaque_span[1] if opaque_span else 0, mark.end())
            continue
        stop = closers.find_stop(mark)
        settled_to = mark.end() if stop is None else stop
        if stop is None or (mark.start(), stop) in parsed_math:
            continue
        comment = mark.group() == b"%%"
        hidden.append(_HiddenSpan(kind="comment" if comment else "math", start=mark.start(), stop=stop))
        closing_span = opaque.find(stop - 1)
        if closing_span is not None and closing_span[1] > stop:
            # Code began inside the span that is now masked, so everything after it has to be parsed again.
            return hidden, stop
    return hidden, len(body)


def _is_literal(body: bytes, start: int) -> bool:
    """Return whether a mark is escaped, or part of an address such as ``https://a.b/%%20``."""
    if body[start - 1 : start] == b"\\":
        return True
    words = body[max(0, start - _MAX_LEAD) : start].split()
    return bool(words) and not body[start - 1 : start].isspace() and b"://" in words[-1]


class _ClosingMarks:
    """Finds the closing mark of an opening one; scans each byte of the body once."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes = body
        self._blank: int = -1

    def find_stop(self, mark: re.Match[bytes]) -> int | None:
        """Return the end of the span that *mark* opens; None where it isn't closed."""
        sign = mark.group()
        close = self._body.find(sign, mark.end())
        if close < 0:
            return None
        lead = self._body[max(0, mark.start() - _MAX_LEAD) : mark.start()]
        if (not lead or _LINE_LEAD.search(lead)) or self._next_blank(mark.end()) > close:
            return close + len(sign)
        return None

    def _next_blank(self, offset: int) -> int:
        """Find the next blank line: a span that opens in the middle of a line can't cross it."""
        if self._blank < offset:
            blank = _BLANK_LINE.search(self._body, offset)
            self._blank = blank.start() if blank else len(self._body) + 1
        return self._blank


def _mask_body(body: bytes, hidden: Sequence[_HiddenSpan]) -> bytes:
    """Replace hidden bytes: by spaces on lines of their own, by letters next to other text."""
    pieces: list[bytes] = []
    copied_to = 0
    for span in hidden:
        inner = body[span.start : span.stop]
        lead = body[max(0, span.start - _MAX_LEAD) : span.start]
        starts_line = not lead or lead[-1:] in b"\r\n" or not lead.strip(b" \t")
        if starts_line and _LINE_TAIL.match(body, span.stop):
            masked = _NOT_ENDING.sub(b" ", inner)
        else:
            masked = _NOT_SPACE.sub(b"x", inner)
        pieces += (body[copied_to : span.start], masked)
        copied_to = span.stop
    return b"".join((*pieces, body[copied_to:]))


WIKILINK: Final = re.compile(rb"!?\[\[((?:[^\[\]\r\n]|\](?!\])|\[(?!\[))*)\]\]")
_ADDRESS: Final = re.compile(rb"https?://[^\s<>\"`\x00-\x20]+")
_ADDRESS_TAIL: Final = b".,;:!?'\"*_~]}|"
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_PLAIN_DESTINATION: Final = re.compile(rb"[^\x00- ()<\\]++(?=\))")
"""A destination without white space, brackets and escapes, which the link's closing bracket ends."""
_DEFINITION_LEAD: Final = re.compile(rb"\[(?:[^\\\]]|\\.)*\]:[ \t]*(?:(?:\r\n|\n|\r)[ \t>]*)?", re.DOTALL)


class LinkTarget(NamedTuple):
    """A link's target apart from its fragment; ``start`` and ``stop`` span the target as written."""

    name: str
    headings: tuple[str, ...]
    block: str
    start: int
    stop: int


def split_fragment(text: str) -> tuple[tuple[str, ...], str]:
    """Split what follows a target: ``#H1#H2`` are headings, ``#^id`` and ``^id`` a block."""
    before, caret, block = text.partition("^")
    pieces = tuple(piece for piece in (part.strip() for part in before.split("#")) if piece)
    if caret and not pieces:
        return (), block.strip()
    if caret and before.endswith("#"):
        return pieces, block.strip()
    return tuple(piece for piece in (part.strip() for part in text.split("#")) if piece), ""


def parse_wikilink_target(inner: bytes, start: int) -> tuple[LinkTarget, str | None]:
    """Parse the content between ``[[`` and ``]]``, which begins at byte *start*.

    Returns:
        The target, and the alias or None.
    """
    target_text, bar, alias = inner.partition(b"|")
    if bar:
        target_text = target_text.removesuffix(b"\\")
    name = target_text.partition(b"#")[0].partition(b"^")[0]
    indent = len(name) - len(name.lstrip())
    fragment = target_text[len(name) :].decode()
    headings, block = split_fragment(fragment) if fragment else ((), "")
    name_start = start + indent
    target = LinkTarget(
        name=name.decode().strip(),
        headings=headings,
        block=block,
        start=name_start,
        stop=max(name_start, start + len(name.rstrip())),
    )
    return target, alias.decode() if bar else None


class LinkReader:
    """Converts the parser's raw links to links."""

    def __init__(self, data: bytes, text: str, base: int, lines: Lines) -> None:
        self._data: bytes = data
        self._text: str = text
        self._base: int = base
        self._lines: Lines = lines
        self._definitions: dict[str, tuple[int, int]] | None = None

    def read(self, anchors: list[RawLink], hidden: SpanSet) -> Iterator[Link]:
        """Read all links but those inside comments; addresses without brackets are links too."""
        for anchor in anchors:
            if not hidden.contains(anchor.start):
                link = self._link_from(anchor)
                if link is not None:
                    yield link

    def addresses(self, covers: SpanSet) -> Iterator[Link]:
        """Find bare web addresses in the text."""
        for match in _ADDRESS.finditer(self._data, self._base):
            start = match.start()
            if covers.contains(start) or self._data[start - 1 : start].isalnum():
                continue
            # Without the punctuation that ends a sentence, and an unmatched closing bracket.
            address = match.group()
            size, surplus = len(address), address.count(b")") - address.count(b"(")
            while size:
                last = address[size - 1]
                if last == ord(")") and surplus > 0:
                    surplus -= 1
                elif last not in _ADDRESS_TAIL:
                    break
                size -= 1
            stop = start + size
            target = LinkTarget(name=address[:size].decode(), headings=(), block="", start=start, stop=stop)
            yield self._link("external", target, None, (start, stop))

    def _link_from(self, anchor: RawLink) -> Link | None:
        if anchor.form == "wiki":
            return self._wikilink(anchor)
        if anchor.form == "auto":
            span = (anchor.start + 1, anchor.stop - 1)
            target = LinkTarget(name=self._slice(span), headings=(), block="", start=span[0], stop=span[1])
            return self._link("external", target, None, (anchor.start, anchor.stop))
        span = self._destination(anchor) if anchor.form == "inline" else self._definition(anchor)
        if span is None or span[0] == span[1]:
            return None
        alias = self._slice((anchor.start + (2 if anchor.image else 1), anchor.text_stop))
        is_collapsed = anchor.form == "reference" and self._data.startswith(b"[]", anchor.stop)
        link_span = (anchor.start, anchor.stop + (2 if is_collapsed else 0))
        if links.is_external(anchor.destination):
            target = LinkTarget(name=anchor.destination, headings=(), block="", start=span[0], stop=span[1])
            return self._link("external", target, alias, link_span)
        kind: LinkKind = "image" if anchor.image else "markdown"
        return self._link(kind, parse_markdown_target(self._slice(span), span), alias, link_span)

    def _wikilink(self, anchor: RawLink) -> Link | None:
        match = WIKILINK.fullmatch(self._data, anchor.start, anchor.stop)
        if match is None or not match[1].strip():
            return None
        target, alias = parse_wikilink_target(match[1], match.start(1))
        if not (target.name or target.headings or target.block):
            return None
        return self._link("embed" if anchor.image else "wikilink", target, alias, (anchor.start, anchor.stop))

    def _link(self, kind: LinkKind, target: LinkTarget, alias: str | None, span: tuple[int, int]) -> Link:
        return Link(
            kind=kind,
            target=target.name,
            headings=target.headings,
            block=target.block,
            alias=alias,
            start=span[0],
            stop=span[1],
            target_start=target.start,
            target_stop=target.stop,
            line=self._lines.line_number(span[0]),
        )

    def _slice(self, span: tuple[int, int]) -> str:
        return self._data[span[0] : span[1]].decode()

    def _destination(self, anchor: RawLink) -> tuple[int, int] | None:
        """Find the span of an inline link's destination, without ``<>``."""
        opening = self._data.find(b"](", anchor.text_stop, anchor.stop)
        if opening < 0:
            return None
        plain = _PLAIN_DESTINATION.match(self._data, opening + 2, anchor.stop)
        return plain.span() if plain else find_destination_span(self._data, opening + 2, anchor.stop)

    def _definition(self, anchor: RawLink) -> tuple[int, int] | None:
        """Find the span of the destination in a reference link's definition."""
        if self._definitions is None:
            self._definitions = find_definitions(self._text, self._base)
        span = self._definitions.get(fold_label(anchor.label))
        match = _DEFINITION_LEAD.match(self._data, *span) if span else None
        return find_destination_span(self._data, match.end(), span[1]) if match and span else None


def find_destination_span(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Find a destination as CommonMark delimits it: in ``<>``, or up to white space or an unmatched ``)``."""
    while start < stop and data[start] in b" \t\r\n":
        start += 1
    bracketed = data[start : start + 1] == b"<"
    at = start + bracketed
    first, depth = at, 0
    while at < stop:
        byte = data[at]
        if byte == ord("\\"):
            at += 1
        elif bracketed:
            if byte == ord(">"):
                break
        elif byte <= ord(" "):
            break
        elif byte == ord("("):
            depth += 1
        elif byte == ord(")"):
            if not depth:
                break
            depth -= 1
        at += 1
    return first, min(at, stop)


def unescape_destination(written: str) -> str:
    """Resolve Markdown's escapes and entities in a destination."""
    return html.unescape(_ESCAPE.sub(r"\1", written)) if "\\" in written or "&" in written else written


def _decode_percent(text: str) -> str:
    """Decode percent-encoding; text that wouldn't become UTF-8 stays as written."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def parse_markdown_target(written: str, span: tuple[int, int]) -> LinkTarget:
    """Parse a destination as written: the fragment is split off before percent-encoding is decoded."""
    unescaped_text = unescape_destination(written)
    name, sign, rest = unescaped_text.partition("#")
    fragment_start = len(written)
    if sign:
        # The "#" of an entity such as &#32; doesn't begin a fragment.
        sign_offsets = [at for at, character in enumerate(written) if character == "#"]
        fragment_start = next(
            (at for at in sign_offsets if unescape_destination(written[:at]) == name), written.find("#")
        )
    headings, block = split_fragment(_decode_percent(sign + rest))
    return LinkTarget(
        name=_decode_percent(name),
        headings=headings,
        block=block,
        start=span[0],
        stop=span[0] + len(written[:fragment_start].encode()),
    )
