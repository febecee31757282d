"""Divide a note into what its headings own."""

import re
from collections.abc import Sequence
from typing import Final

from knapper.vault.events import Part
from knapper.vault.lines import Lines
from knapper.vault.outline import Section

_ID_NAME: Final = re.compile(r"[A-Za-z0-9-]+")


def read(data: bytes, parts: Sequence[Part], lines: Lines, body_start: int) -> tuple[Section, ...]:
    """List the sections in order; only headings that stand in no list, quote or other block make one.

    Text before the first heading is a section of level 0 where it isn't blank, so that frontmatter and the sections'
    own spans join to the file.
    """
    headings = [part for part in parts if part.kind == "heading" and part.parent is None]
    starts = [lines.start(part.start) for part in headings]
    found: list[Section] = []
    first = starts[0] if starts else len(data)
    if data[body_start:first].strip():
        found.append(_section(lines, (0, ()), (body_start, body_start, first, first)))
    path: list[tuple[int, str]] = []
    stops = _stops([part.level for part in headings], starts, len(data))
    for index, part in enumerate(headings):
        while path and path[-1][0] >= part.level:
            _ = path.pop()
        path.append((part.level, title(data[part.start : part.stop].decode())))
        own_stop = starts[index + 1] if index + 1 < len(starts) else len(data)
        spans = (starts[index], lines.stop(part.stop - 1), own_stop, stops[index])
        found.append(_section(lines, (part.level, tuple(name for _, name in path)), spans))
    return tuple(found)


def _stops(levels: Sequence[int], starts: Sequence[int], size: int) -> list[int]:
    """Find where each section ends: at the next heading of its level or above."""
    stops = [size] * len(levels)
    open_ones: list[int] = []
    for index, level in enumerate(levels):
        while open_ones and levels[open_ones[-1]] >= level:
            stops[open_ones.pop()] = starts[index]
        open_ones.append(index)
    return stops


def _section(lines: Lines, head: tuple[int, tuple[str, ...]], spans: tuple[int, int, int, int]) -> Section:
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
        line=lines.number(start),
        end_line=lines.number(max(start, stop - 1)),
    )


def title(source: str) -> str:
    """Read a heading's text from its source: ``## A `b` ## ^id`` is ``A `b` ``, without the closing signs and the id.

    A setext heading's lines are joined by spaces.
    """
    rows = [row.strip(" \t") for row in re.split(r"\r\n|\n|\r", source.strip("\r\n"))]
    text = " ".join(rows[:-1]) if len(rows) > 1 else _without_signs(without_id(rows[0]))
    return without_id(text).strip(" \t")


def without_id(text: str) -> str:
    """Take a block id off a line's end: ``A ^id`` is ``A``."""
    head, caret, name = text.rpartition("^")
    if not caret or not _ID_NAME.fullmatch(name) or (head and head[-1] not in " \t"):
        return text
    return head.rstrip(" \t")


def _without_signs(row: str) -> str:
    text = row.lstrip("#")
    bare = text.rstrip("#")
    closes = not bare or bare[-1] in " \t"
    return (bare if closes else text).strip(" \t")
