"""Read the links of a note's body, with the span of each and of what a move would rewrite."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from knapper.vault import events, links
from knapper.vault.covers import Cover
from knapper.vault.events import Anchor
from knapper.vault.lines import Lines
from knapper.vault.outline import Link, LinkKind

WIKILINK: Final = re.compile(rb"!?\[\[((?:[^\[\]\r\n]|\](?!\])|\[(?!\[))*)\]\]")
_ADDRESS: Final = re.compile(rb"https?://[^\s<>\"`\x00-\x20]+")
_ADDRESS_TAIL: Final = b".,;:!?'\"*_~]}|"
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_DEFINITION: Final = re.compile(rb"\[(?:[^\\\]]|\\.)*\]:[ \t]*(?:(?:\r\n|\n|\r)[ \t>]*)?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Hold a link's target apart from its fragment; ``start`` and ``stop`` span the target as written."""

    name: str
    headings: tuple[str, ...]
    block: str
    start: int
    stop: int


def fragment(text: str) -> tuple[tuple[str, ...], str]:
    """Split what follows a target: ``#H1#H2`` are headings, ``#^id`` and ``^id`` a block."""
    before, caret, block = text.partition("^")
    pieces = tuple(piece for piece in (part.strip() for part in before.split("#")) if piece)
    if caret and not pieces:
        return (), block.strip()
    if caret and before.endswith("#"):
        return pieces, block.strip()
    return tuple(piece for piece in (part.strip() for part in text.split("#")) if piece), ""


def wikilink_target(inner: bytes, start: int) -> tuple[Target, str | None]:
    """Read what stands between ``[[`` and ``]]``, the byte at *start* on.

    Returns:
        The target, and the alias or None.
    """
    whole, bar, alias = inner.partition(b"|")
    if bar:
        whole = whole.removesuffix(b"\\")
    cut = min((at for at in (whole.find(b"#"), whole.find(b"^")) if at >= 0), default=len(whole))
    name = whole[:cut]
    lead = len(name) - len(name.lstrip())
    headings, block = fragment(whole[cut:].decode())
    first = start + lead
    target = Target(
        name=name.decode().strip(),
        headings=headings,
        block=block,
        start=first,
        stop=max(first, start + len(name.rstrip())),
    )
    return target, alias.decode() if bar else None


class Reader:
    """Turn what the parser saw into links."""

    def __init__(self, data: bytes, text: str, base: int, lines: Lines) -> None:
        self._data: bytes = data
        self._text: str = text
        self._base: int = base
        self._lines: Lines = lines
        self._definitions: dict[str, tuple[int, int]] | None = None

    def read(self, anchors: list[Anchor], hidden: Cover) -> Iterator[Link]:
        """Read all links but those inside comments; addresses without brackets are links too."""
        for anchor in anchors:
            if not hidden.holds(anchor.start):
                link = self._read(anchor)
                if link is not None:
                    yield link

    def addresses(self, covers: Cover) -> Iterator[Link]:
        """Find addresses that stand in the text as they are."""
        for match in _ADDRESS.finditer(self._data, self._base):
            start = match.start()
            if covers.holds(start) or self._data[start - 1 : start].isalnum():
                continue
            written = _without_tail(match.group())
            stop = start + len(written)
            place = Target(name=written.decode(), headings=(), block="", start=start, stop=stop)
            yield self._link("external", place, None, (start, stop))

    def _read(self, anchor: Anchor) -> Link | None:
        if anchor.form == "wiki":
            return self._wikilink(anchor)
        if anchor.form == "auto":
            span = (anchor.start + 1, anchor.stop - 1)
            place = Target(name=self._slice(span), headings=(), block="", start=span[0], stop=span[1])
            return self._link("external", place, None, (anchor.start, anchor.stop))
        span = self._destination(anchor) if anchor.form == "inline" else self._definition(anchor)
        if span is None or span[0] == span[1]:
            return None
        alias = self._slice((anchor.start + (2 if anchor.image else 1), anchor.text_stop))
        is_collapsed = anchor.form == "reference" and self._data.startswith(b"[]", anchor.stop)
        whole = (anchor.start, anchor.stop + (2 if is_collapsed else 0))
        if links.is_external(anchor.destination):
            place = Target(name=anchor.destination, headings=(), block="", start=span[0], stop=span[1])
            return self._link("external", place, alias, whole)
        kind: LinkKind = "image" if anchor.image else "markdown"
        return self._link(kind, markdown_target(self._slice(span), span), alias, whole)

    def _wikilink(self, anchor: Anchor) -> Link | None:
        match = WIKILINK.fullmatch(self._data, anchor.start, anchor.stop)
        if match is None or not match[1].strip():
            return None
        place, alias = wikilink_target(match[1], match.start(1))
        if not (place.name or place.headings or place.block):
            return None
        return self._link("embed" if anchor.image else "wikilink", place, alias, (anchor.start, anchor.stop))

    def _link(self, kind: LinkKind, place: Target, alias: str | None, span: tuple[int, int]) -> Link:
        return Link(
            kind=kind,
            target=place.name,
            headings=place.headings,
            block=place.block,
            alias=alias,
            start=span[0],
            stop=span[1],
            target_start=place.start,
            target_stop=place.stop,
            line=self._lines.number(span[0]),
        )

    def _slice(self, span: tuple[int, int]) -> str:
        return self._data[span[0] : span[1]].decode()

    def _destination(self, anchor: Anchor) -> tuple[int, int] | None:
        """Find the span of an inline link's destination, without ``<>``."""
        opening = self._data.find(b"](", anchor.text_stop, anchor.stop)
        return None if opening < 0 else destination_span(self._data, opening + 2, anchor.stop)

    def _definition(self, anchor: Anchor) -> tuple[int, int] | None:
        """Find the span of the destination that a reference link's definition gives."""
        if self._definitions is None:
            self._definitions = events.definitions(self._text, self._base)
        span = self._definitions.get(events.label(anchor.label))
        match = _DEFINITION.match(self._data, *span) if span else None
        return destination_span(self._data, match.end(), span[1]) if match and span else None


def destination_span(data: bytes, start: int, stop: int) -> tuple[int, int]:
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


def unescaped(written: str) -> str:
    """Take Markdown's escapes and entities out of a destination."""
    return html.unescape(_ESCAPE.sub(r"\1", written)) if "\\" in written or "&" in written else written


def _decoded(text: str) -> str:
    """Decode percent signs; text that they make no UTF-8 of stays as written."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def markdown_target(written: str, span: tuple[int, int]) -> Target:
    """Read a destination as written: percent signs decoded, after the fragment is cut off."""
    whole = unescaped(written)
    name, sign, rest = whole.partition("#")
    cut = len(written)
    if sign:
        # an entity such as &#32; holds a sign that begins no fragment
        places = [at for at, character in enumerate(written) if character == "#"]
        cut = next((at for at in places if unescaped(written[:at]) == name), written.find("#"))
    headings, block = fragment(_decoded(sign + rest))
    return Target(
        name=_decoded(name),
        headings=headings,
        block=block,
        start=span[0],
        stop=span[0] + len(written[:cut].encode()),
    )


def _without_tail(address: bytes) -> bytes:
    """Leave out the punctuation that ends a sentence, and a closing bracket that nothing opens."""
    stop = len(address)
    surplus = address.count(b")") - address.count(b"(")
    while stop:
        last = address[stop - 1]
        if last == ord(")") and surplus > 0:
            surplus -= 1
        elif last not in _ADDRESS_TAIL:
            break
        stop -= 1
    return address[:stop]
