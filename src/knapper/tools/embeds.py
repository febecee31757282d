"""Show what a note embeds: other notes, their sections and blocks, one level deep."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from knapper.errors import KnapError
from knapper.index.graph import NameLookup
from knapper.jsontypes import JSONValue
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.vault import links, parser, source, walk
from knapper.vault.outline import Link, Outline
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_MOST: Final = 50
"""Embeds that are expanded."""
_LENGTH: Final = 4_000
"""Characters of one that are shown."""


def expand(context: Context, note: Note, first: int, last: int) -> list[JSONValue]:
    """Give what the embeds in some lines of a note show, or why they show nothing; in order of place.

    Args:
        context: The vault, as the client sees it.
        note: The note.
        first: Line, from 1.
        last: Included.
    """
    found = [link for link in note.outline.links if link.kind == "embed" and first <= link.line <= last]
    lookup = context.index.graph.remembering()
    return [_expanded(context, note, link, lookup) for link in found[:_MOST]]


def _expanded(context: Context, note: Note, link: Link, lookup: NameLookup) -> JSONValue:
    shown: dict[str, JSONValue] = {"embed": parser.decode_text(_data(note)[link.start : link.stop]), "line": link.line}
    path = links.resolve(link.target, note.path, lookup).path
    if path is None or not context.sees(path):
        return {**shown, "error": "nothing is there", "code": "not_found"}
    shown["path"] = path
    if walk.kind_of(path) != "note":
        return {**shown, "error": "it isn't a note", "code": "not_a_note"}
    try:
        return shown | _content(context, path, link)
    except KnapError as error:  # it vanished a moment ago, or can't be read
        return {**shown, "error": error.message, "code": error.code}


def _content(context: Context, path: NotePath, link: Link) -> dict[str, JSONValue]:
    embedded = context.view.read(path)
    span = _span(embedded.outline, link, len(_data(embedded)))
    if span is None:
        what, code = ("block", "block_not_found") if link.block else ("heading", "heading_not_found")
        return {"error": f"it has no such {what}", "code": code}
    start, stop = span
    text = parser.decode_text(_data(embedded)[start:stop])
    content = text[:_LENGTH]
    line = _line(embedded.outline.line_starts, start)
    ends_line = content.endswith(("\r", "\n"))
    breaks = content.count("\n") + content.replace("\r\n", "").count("\r")
    shown: dict[str, JSONValue] = {
        "start_line": line,
        "end_line": line + breaks - (1 if ends_line else 0),
        "content": content,
        "truncated": len(content) < len(text),
    }
    return shown | ({"foreign": True} if foreign.heard(context, embedded) else {})


def _span(outline: Outline, link: Link, size: int) -> tuple[int, int] | None:
    """Give the bytes that an embed shows; properties are shown by none."""
    if link.block:
        wanted = links.fold_target(link.block)
        named = next((block for block in outline.block_ids if links.fold_target(block.name) == wanted), None)
        return (named.start, named.stop) if named else None
    if not link.headings:
        return outline.body_start, size
    fits = (section for section in outline.sections if section.level and _fits(link.headings, section.path))
    found = next(fits, None)
    return (found.start, found.stop) if found else None


def _fits(wanted: Sequence[str], path: Sequence[str]) -> bool:
    """Tell whether a section lies where a link's headings lead: the last is its own, the others stand around it."""
    if not path or not links.heading_matches(wanted[-1], path[-1]):
        return False
    around = iter(path[:-1])
    return all(any(links.heading_matches(each, title) for title in around) for each in wanted[:-1])


def _data(note: Note) -> bytes:
    return source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw


def _line(starts: Sequence[int], at: int) -> int:
    return max(bisect_right(starts, at), 1)
