"""Tell who links where: from the index, resolved as Obsidian does."""

from collections.abc import Sequence
from typing import Annotated, Final, cast

from knapper.errors import BadInput, NotFound
from knapper.index.filters import Filter
from knapper.index.graph import Edge
from knapper.jsontypes import JSONValue
from knapper.tools import answers, checks, foreign, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.found import Paths
from knapper.tools.shapes.linked import Backlinks, Broken, Outlinks
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

_LIMIT = 100
_NEAREST: Final = 3
"""Names that are told where none fits."""


def find_backlinks(
    context: Context, note_name: str, limit: int = _LIMIT, offset: int = 0
) -> Annotated[Answer, Backlinks]:
    """Find the files that link to a note: wikilinks with alias, heading or block, embeds, Markdown links, properties.

    Args:
        context: The vault, as the client sees it.
        note_name: Without brackets and ``.md``, in any case; with its folder where several notes have the name.
        limit: How many files at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results``: their paths, sorted; ``links`` of these files with path, line, kind and what is written. A name
        that no note has is looked for among the links that lead nowhere, and ``exists`` is false then.

    Raises:
        BadInput: The name is empty, or the stretch can't be one.
    """
    answers.check_page(limit, offset)
    name = links.lookup_key(_bare(checks.text("note_name", note_name)))
    if not name:
        raise BadInput("no note is named", hint="give its name, without brackets")
    freshness = context.freshen(meaning=False)
    targets = _named(context, name)
    look = context.index.graph.remembering()
    edges = [edge for target in targets for edge in context.index.graph.incoming(target, look)]
    if not targets:
        wanted = context.index.graph.wanting(links.lookup_key(name.rpartition("/")[2]), context.sees)
        edges = [edge for edge in wanted if links.lookup_key(edge.target) == name]
    shown = {source: context.sees(source) for source in {edge.source for edge in edges}}
    seen = [edge for edge in edges if edge.source != edge.path and shown[edge.source]]
    sources = sorted({edge.source for edge in seen})
    listed = set(sources[offset : offset + limit])
    kept = sorted((edge for edge in seen if edge.source in listed), key=lambda edge: (edge.source, edge.line))
    found: list[JSONValue] = [*targets]
    return {
        **answers.page(sources, limit, offset),
        "exists": bool(targets),
        "notes_of_that_name": found,
        "links": shapes(context, kept),
        **search.missing(freshness),
    }


def find_outlinks(context: Context, path: str, limit: int = _LIMIT, offset: int = 0) -> Annotated[Answer, Outlinks]:
    """List the notes and files that a note links to.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results``: their names as first written, without alias, heading or block, each once, sorted; ``links`` with
        the line, the kind, and the path that each leads to (null where nothing is there).

    Raises:
        NotFound: No such file is visible.
        BadInput: The path can't be one, or the stretch can't be one.
        RefusedError: The path leads out of the vault.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    source = context.view.path(path)
    edges = [edge for edge in context.index.graph.outgoing(source) if edge.kind != "external" and edge.target]
    spelled = {paths.name_key(edge.target): edge.target for edge in reversed(edges)}  # as it stands first
    keys = sorted(spelled)
    shown = answers.page([spelled[key] for key in keys], limit, offset)
    wanted = set(keys[offset : offset + limit])
    found = shapes(context, [edge for edge in edges if paths.name_key(edge.target) in wanted])
    return {"path": source, **shown, "links": found, **search.missing(freshness)}


def broken_links(context: Context, path: str = "", limit: int = _LIMIT, offset: int = 0) -> Annotated[Answer, Broken]:
    """List the links that lead to no file, by file and line.

    Args:
        context: The vault, as the client sees it.
        path: Only those in this note, or below this folder; empty for all.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Raises:
        BadInput: The path can't be one, or the stretch can't be one.
        NotFound: No such note or folder is visible.
        RefusedError: The path leads out of the vault.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    below = _place(context, checks.text("path", path))
    rows = context.index.catalog.broken(context.restrict(Filter()), below)
    found = shapes(context, context.index.graph.edges(rows[offset : offset + limit]))
    return {**answers.stretch(found, len(rows), limit, offset), **search.missing(freshness)}


def _place(context: Context, raw: str) -> NotePath:
    """Find the folder, or the note with its ending or without, that a caller means."""
    near: list[str] = []
    try:
        return checks.folder(context, raw)
    except NotFound as error:
        near += cast("list[str]", error.details["nearest"])
    for name in (raw, f"{raw}.md"):
        try:
            return context.view.path(name)
        except NotFound as error:
            near += cast("list[str]", error.details.get("nearest", []))
    near = list(dict.fromkeys(near))[:_NEAREST]
    hint = "nearest: " + ", ".join(map(repr, near)) if near else "explore_vault lists the folders"
    raise NotFound(f"no note or folder {paths.quote_path(raw)} in the vault", hint=hint, details={"nearest": near})


def orphans(context: Context, limit: int = _LIMIT, offset: int = 0) -> Annotated[Answer, Paths]:
    """List the notes that no file links to and that link to none, by path.

    Args:
        context: The vault, as the client sees it.
        limit: How many at most.
        offset: How many are left out at the beginning.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    rows: list[JSONValue] = [*context.index.catalog.alone(context.restrict(Filter()))]
    return {**answers.page(rows, limit, offset), **search.missing(freshness)}


def shapes(context: Context, edges: Sequence[Edge]) -> list[JSONValue]:
    """Give links as every surface shows them; what others wrote in them counts as read."""
    _ = foreign.found(context, (edge.source for edge in edges if _tells(edge)))
    return [shape(context, edge) for edge in edges]


def _tells(edge: Edge) -> bool:
    """Tell whether a link shows words of its own, and not only the name of a note that is there."""
    return edge.path is None or bool(edge.headings or edge.block or edge.alias)


def shape(context: Context, edge: Edge) -> dict[str, JSONValue]:
    """Give a link as every surface shows it; empty parts are left out."""
    visible = context.sees
    leads = edge.path if edge.path is not None and visible(edge.path) else None
    shown: dict[str, JSONValue] = {
        "path": edge.source,
        "line": edge.line,
        "kind": edge.kind,
        "target": edge.target,
        "leads_to": leads,
    }
    others: list[JSONValue] = [path for path in edge.ambiguous if leads and path != leads and visible(path)]
    headings: list[JSONValue] = [*edge.headings]
    parts: dict[str, JSONValue] = {
        "headings": headings,
        "block": edge.block,
        "alias": edge.alias,
        "property": edge.key if edge.kind == "property" else "",
        "also_fits": others,
    }
    return shown | {name: value for name, value in parts.items() if value}


def _named(context: Context, name: str) -> list[NotePath]:
    """Find the notes that a name means, with its folders or without."""
    fits = (path for path in context.index.graph.lookup(name.rpartition("/")[2]) if context.sees(path))
    return [path for path in fits if f"/{links.lookup_key(path)}".endswith(f"/{name}")]


def _bare(note_name: str) -> str:
    """Take brackets, alias, heading and block away from what a caller wrote; an absolute path isn't taken apart."""
    text = note_name.strip().removeprefix("!").removeprefix("[[").removesuffix("]]")
    return text.partition("|")[0].partition("#")[0].strip().strip("/")
