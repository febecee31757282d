"""Find what Obsidian hides from Markdown: comments between ``%%`` and maths between ``$$`` that hold block syntax."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.vault import events
from knapper.vault.covers import Cover, Span
from knapper.vault.events import Events

_MARK: Final = re.compile(rb"%%|\$\$")
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r)[ \t>]*(?:\r\n|\n|\r)")
_LEAD: Final = re.compile(rb"(?:^|[\r\n])[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?)*\Z")
_TAIL: Final = re.compile(rb"[ \t]*(?:\r\n|\n|\r|\Z)")
_NOT_ENDING: Final = re.compile(rb"[^\r\n]")
_NOT_SPACE: Final = re.compile(rb"[^\r\n \t]")
_MAX_PASSES: Final = 6
_MAX_LEAD: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """Hold a body's events, read with comments and maths out of the way."""

    events: Events
    text: str
    """What was parsed: the body, masked by characters of the same length."""
    comments: tuple[Span, ...]
    math: tuple[Span, ...]
    """Maths that was masked; what the parser saw itself is in *events*."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hidden:
    kind: Literal["comment", "math"]
    start: int
    stop: int


def read(data: bytes, base: int) -> Masked:
    r"""Parse the body that begins at *base*, again where something had to be masked.

    ``%%\\n# x\\n%%`` has one comment and no heading.
    """
    body = data[base:]
    text = body.decode()
    found = events.read(text, base)
    hidden: list[_Hidden] = []
    at = 0
    if b"%%" not in body and b"$$" not in body:
        return Masked(events=found, text=text, comments=(), math=())
    for _ in range(_MAX_PASSES):
        fresh, at = _scan(body, base, at, found)
        hidden += fresh
        if fresh:
            text = _masked(body, hidden).decode()
            found = events.read(text, base)
        if at >= len(body):
            break
    return Masked(
        events=found,
        text=text,
        comments=tuple((base + span.start, base + span.stop) for span in hidden if span.kind == "comment"),
        math=tuple((base + span.start, base + span.stop) for span in hidden if span.kind == "math"),
    )


def _scan(body: bytes, base: int, at: int, found: Events) -> tuple[list[_Hidden], int]:
    """Find what is hidden from *at* on, as far as this pass's view of the code holds.

    Returns:
        What to mask, and the place up to which that is settled.
    """
    links = [(anchor.start, anchor.stop) for anchor in found.anchors]
    opaque = Cover((start - base, stop - base) for start, stop in (*found.code, *found.html, *links))
    known = {(start - base, stop - base) for start, stop in found.math}
    closers = _Closers(body)
    hidden: list[_Hidden] = []
    while mark := _MARK.search(body, at):
        cover = opaque.at(mark.start())
        if cover is not None or _is_text(body, mark.start()):
            at = max(cover[1] if cover else 0, mark.end())
            continue
        stop = closers.after(mark)
        at = mark.end() if stop is None else stop
        if stop is None or (mark.start(), stop) in known:
            continue
        comment = mark.group() == b"%%"
        hidden.append(_Hidden(kind="comment" if comment else "math", start=mark.start(), stop=stop))
        inside = opaque.at(stop - 1)
        if inside is not None and inside[1] > stop:
            return hidden, stop  # code that began in what is now masked: all after it has to be read anew
    return hidden, len(body)


def _is_text(body: bytes, start: int) -> bool:
    """Tell whether a mark is escaped, or part of an address such as ``https://a.b/%%20``."""
    if body[start - 1 : start] == b"\\":
        return True
    words = body[max(0, start - _MAX_LEAD) : start].split()
    return bool(words) and not body[start - 1 : start].isspace() and b"://" in words[-1]


class _Closers:
    """Find the mark that closes another, each byte of the body looked at once."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes = body
        self._blank: int = -1

    def after(self, mark: re.Match[bytes]) -> int | None:
        """Tell where the span that *mark* opens stops; None where nothing closes it."""
        sign = mark.group()
        close = self._body.find(sign, mark.end())
        if close < 0:
            return None
        lead = self._body[max(0, mark.start() - _MAX_LEAD) : mark.start()]
        if (not lead or _LEAD.search(lead)) or self._next_blank(mark.end()) > close:
            return close + len(sign)
        return None

    def _next_blank(self, place: int) -> int:
        """Find the next blank line: a mark in the middle of a line can't reach over it."""
        if self._blank < place:
            blank = _BLANK_LINE.search(self._body, place)
            self._blank = blank.start() if blank else len(self._body) + 1
        return self._blank


def _masked(body: bytes, hidden: Sequence[_Hidden]) -> bytes:
    """Replace hidden bytes: by spaces on lines of their own, by letters where text stands beside them."""
    pieces: list[bytes] = []
    done = 0
    for span in hidden:
        pieces += (body[done : span.start], _filler(body, span))
        done = span.stop
    return b"".join((*pieces, body[done:]))


def _filler(body: bytes, span: _Hidden) -> bytes:
    inner = body[span.start : span.stop]
    lead = body[max(0, span.start - _MAX_LEAD) : span.start]
    if not _TAIL.match(body, span.stop):
        return _NOT_SPACE.sub(b"x", inner)
    if not lead or lead[-1:] in b"\r\n" or not lead.strip(b" \t"):
        return _NOT_ENDING.sub(b" ", inner)
    return _NOT_SPACE.sub(b"x", inner)
