"""Tell what there is to know about a note beside its text."""

from collections.abc import Sequence
from typing import Annotated, Final, cast

from knapper.changes.text import positions
from knapper.index.graph import Edge
from knapper.jsontypes import JSONValue
from knapper.tools import foreign, notes, reading, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.noted import Info
from knapper.vault import paths, walk
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_HEADINGS: Final = 200
_SHOWN: Final = 50
"""Tasks, and links either way, that are shown."""


def note_info(context: Context, path: str) -> Annotated[Answer, Info]:
    """Tell of a note its outline, properties, tags, tasks, links in and out, size, hash and dates.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.

    Returns:
        ``outline`` with lines, ``properties``, ``aliases``, ``tags``, ``tasks``, ``links_out``, ``links_in``, ``size``,
        ``hash``, ``created`` and ``modified``; long lists show their beginning, and how many there are.

    Raises:
        NotFound: No such note is visible.
        BadInput: The path can't be one, or the file isn't text.
        RefusedError: The path leads out of the vault.
    """
    freshness = context.freshen(meaning=False)
    note = reading.read(context, path)
    block = note.outline.frontmatter
    shown: dict[str, JSONValue] = {
        "success": True,
        "path": note.path,
        "title": paths.stem(note.path) if walk.kind_of(note.path) == "note" else paths.base_name(note.path),
        "kind": walk.kind_of(note.path),
        "hash": note.hash,
        "size": len(note.raw),
        "lines": len(note.outline.line_starts) if note.raw else 0,
        **_known(context, note.path),
        "properties": dict(block.values) if block else {},
        "tags": _tags(note),
        "headings": sum(section.level > 0 for section in note.outline.sections),
        "outline": _outline(note),
        "tasks": _tasks(note),
        **_links(context, note.path),
    }
    parts: dict[str, JSONValue] = {"waiting_edits": reading.waiting(note), "problems": reading.problems(note)}
    if foreign.heard(context, note):
        shown["foreign"] = True
    return {**shown, **{name: value for name, value in parts.items() if value}, **search.missing(freshness)}


def _known(context: Context, path: NotePath) -> dict[str, JSONValue]:
    """Tell what the index knows; a note that isn't in it yet has no dates."""
    entry = context.index.catalog.entries([path]).get(path)
    if entry is None:
        return {"aliases": []}
    aliases: list[JSONValue] = [*context.index.catalog.aliases([entry.id]).get(entry.id, ())]
    return {"created": entry.created, "modified": notes.saved(entry), "aliases": aliases}


def _tags(note: Note) -> list[JSONValue]:
    names = {paths.name_key(tag.name): tag.name for tag in reversed(note.outline.tags)}
    return [*reversed(names.values())]


def _outline(note: Note) -> list[JSONValue]:
    found = [section for section in note.outline.sections if section.level]
    return [
        {"heading": positions.heading_label(section), "line": section.line, "end_line": section.end_line}
        for section in found[:_HEADINGS]
    ]


def _tasks(note: Note) -> JSONValue:
    tasks = note.outline.tasks
    rows: list[JSONValue] = [{"state": task.state, "text": task.text, "line": task.line} for task in tasks[:_SHOWN]]
    return {"total": len(tasks), "open": sum(not task.state.strip() for task in tasks), "results": rows}


def _links(context: Context, path: NotePath) -> dict[str, JSONValue]:
    graph = context.index.graph
    look = graph.remembering()
    out = [edge for edge in graph.outgoing(path, look) if edge.kind != "external" and edge.target]
    into = sorted({edge.source for edge in graph.incoming(path, look) if edge.source != path})
    seen: list[JSONValue] = [source for source in into if context.sees(source)]
    return {
        "links_out": {"total": len(out), "results": _outgoing(context, out[:_SHOWN])},
        "links_in": {"total": len(seen), "results": seen[:_SHOWN]},
    }


def _outgoing(context: Context, edges: Sequence[Edge]) -> list[JSONValue]:
    return [
        cast(
            "JSONValue",
            {
                "target": edge.target,
                "line": edge.line,
                "leads_to": edge.path if edge.path is not None and context.sees(edge.path) else None,
            },
        )
        for edge in edges
    ]
