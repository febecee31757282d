"""List a note's blocks and the ids that name some of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from knapper.vault.covers import Cover, Span
from knapper.vault.events import Part
from knapper.vault.lines import Lines
from knapper.vault.outline import Block, BlockId, BlockKind

_ID: Final = re.compile(rb"\^([A-Za-z0-9-]+)[ \t]*(?=[\r\n]|\Z)")
_BLANK: Final = b" \t\r\n"
_NAMED: Final = frozenset({"paragraph", "heading", "item", "table"})


def read(
    data: bytes, body_start: int, parts: Sequence[Part], hidden: Mapping[Span, BlockKind], lines: Lines
) -> Iterator[Block]:
    """List the blocks of the body, whole lines each, in order and without overlap; only blank lines lie between.

    Args:
        data: The file.
        body_start: Where its body begins.
        parts: Blocks of any depth.
        hidden: Comments and maths that the parser didn't see.
        lines: The file's lines.
    """
    covers = Cover(hidden)
    plain = [_block(data, part, lines) for part in parts if part.parent is None and not _lies_in(data, part, covers)]
    own = [_whole(data, span, kind, lines) for span, kind in hidden.items()]
    stop = body_start
    for block in sorted((*plain, *own), key=lambda block: (block.start, -block.stop)):
        if block.start >= stop:
            yield from _rest(data, (stop, block.start), lines)
            yield block
            stop = block.stop
    yield from _rest(data, (stop, len(data)), lines)


def _rest(data: bytes, span: Span, lines: Lines) -> Iterator[Block]:
    """Take as a paragraph what the parser gives no block for: definitions of reference links."""
    text = data[span[0] : span[1]]
    if text and not text.isspace():
        yield _whole(data, (span[1] - len(text.lstrip(_BLANK)), span[1]), "paragraph", lines)


def _lies_in(data: bytes, part: Part, covers: Cover) -> bool:
    cover = covers.at(part.start)
    return cover is not None and cover[1] >= part.start + len(data[part.start : part.stop].rstrip(_BLANK))


def _block(data: bytes, part: Part, lines: Lines) -> Block:
    kind: BlockKind = "list" if part.kind == "item" else part.kind
    items = tuple(lines.start(row) for row in part.rows)
    return _whole(data, (part.start, part.stop), kind, lines, items)


def _whole(data: bytes, span: Span, kind: BlockKind, lines: Lines, items: tuple[int, ...] = ()) -> Block:
    start, stop = span
    last = max(start, start + len(data[start:stop].rstrip(_BLANK)) - 1)
    return Block(kind=kind, start=lines.start(start), stop=lines.stop(last), items=items)


def ids(data: bytes, parts: Sequence[Part], code: Cover, lines: Lines) -> Iterator[BlockId]:
    """Find each ``^id`` at the end of a paragraph, list item or heading, or alone after the block that it names."""
    found = [
        match for match in _ID.finditer(data) if _stands_apart(data, match.start()) and not code.holds(match.start())
    ]
    if not found:
        return
    stops = _Stops(data)
    ends = {stops.of(part.start, part.own_stop or part.stop): part for part in parts if part.kind in _NAMED}
    before = _siblings(parts)
    for match in found:
        part = ends.get(match.end(1))
        if part is None:
            continue
        if part.kind == "paragraph" and part.start == match.start():
            part = before.get(id(part), part)
        elif part.kind == "paragraph" and part.parent is not None and part.parent.kind == "item":
            part = part.parent
        yield BlockId(
            name=match[1].decode(),
            start=part.start,
            stop=stops.of(part.start, part.stop),
            id_start=match.start(),
            line=lines.number(match.start()),
        )


def _stands_apart(data: bytes, start: int) -> bool:
    return not start or data[start - 1] in _BLANK


def _siblings(parts: Sequence[Part]) -> dict[int, Part]:
    """Find the block before each paragraph, under the same parent."""
    last: dict[int, Part] = {}
    found: dict[int, Part] = {}
    for part in parts:
        parent = id(part.parent)
        if part.kind == "paragraph" and parent in last:
            found[id(part)] = last[parent]
        last[parent] = part
    return found


class _Stops:
    """Find where text ends before trailing blanks; nested items share their end, so each is looked for once."""

    def __init__(self, data: bytes) -> None:
        self._data: bytes = data
        self._known: dict[int, int] = {}

    def of(self, start: int, stop: int) -> int:
        """Tell the byte after the last one in *start* to *stop* that isn't blank."""
        if stop not in self._known:
            last = stop
            while last > 0 and self._data[last - 1] in _BLANK:
                last -= 1
            self._known[stop] = last
        return max(start, self._known[stop])
