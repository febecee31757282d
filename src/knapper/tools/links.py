"""Tell who links where: from the index, resolved as Obsidian does."""

from collections.abc import Iterator, Sequence

from knapper.errors import BadInput
from knapper.index.graph import Edge
from knapper.tools import answers, search
from knapper.tools.context import Context
from knapper.vault import paths
from knapper.vault.outline import JSONValue
from knapper.vault.paths import NotePath

_LIMIT = 100
_NOTE = ".md"


def find_backlinks(context: Context, note_name: str, limit: int = _LIMIT, offset: int = 0) -> dict[str, JSONValue]:
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
    freshness = context.freshen(meaning=False)
    targets = _named(context, note_name)
    edges = [edge for target in targets for edge in context.index.graph.incoming(target)]
    if not targets:
        edges = [edge for edge in context.index.graph.broken() if _key(edge.target) == _key(_bare(note_name))]
    seen = [edge for edge in edges if edge.source != edge.path and context.sees(edge.source)]
    shown = answers.page(sorted({edge.source for edge in seen}), limit, offset)
    found: list[JSONValue] = [*targets]
    return {
        **shown,
        "exists": bool(targets),
        "notes_of_that_name": found,
        "links": _of(context, seen, shown["results"]),
        **search.missing(freshness),
    }


def find_outlinks(context: Context, path: str, limit: int = _LIMIT, offset: int = 0) -> dict[str, JSONValue]:
    """List the notes and files that a note links to.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results``: their names as written, without alias, heading or block, each once, sorted; ``links`` with the
        line, the kind, and the path that each leads to (null where nothing is there).

    Raises:
        NotFound: There is no such note.
        RefusedError: The path leads out of the vault.
    """
    freshness = context.freshen(meaning=False)
    source = context.view.path(path)
    edges = [edge for edge in context.index.graph.outgoing(source) if edge.kind != "external" and edge.target]
    names = sorted({edge.target for edge in edges}, key=lambda name: (paths.key(name), name))
    shown = answers.page(list(names), limit, offset)
    wanted = set(names[offset : offset + limit])
    links: list[JSONValue] = [_shape(context, edge) for edge in edges if edge.target in wanted]
    return {"path": source, **shown, "links": links, **search.missing(freshness)}


def broken_links(context: Context, path: str = "", limit: int = _LIMIT, offset: int = 0) -> dict[str, JSONValue]:
    """List the links that lead to no file, by file and line.

    Args:
        context: The vault, as the client sees it.
        path: Only those in this note, or below this folder; empty for all.
        limit: How many at most.
        offset: How many are left out at the beginning.
    """
    freshness = context.freshen(meaning=False)
    below = paths.key(path).strip("/")
    edges = (edge for edge in _broken(context) if not below or _is_below(edge.source, below))
    rows: list[JSONValue] = [_shape(context, edge) for edge in edges]
    return {**answers.page(rows, limit, offset), **search.missing(freshness)}


def orphans(context: Context, limit: int = _LIMIT, offset: int = 0) -> dict[str, JSONValue]:
    """List the notes that no file links to and that link to none, by path.

    Args:
        context: The vault, as the client sees it.
        limit: How many at most.
        offset: How many are left out at the beginning.
    """
    freshness = context.freshen(meaning=False)
    found = _orphans(context) if context.view.policy.sees_all else _orphans_among_visible(context)
    rows: list[JSONValue] = [*found]
    return {**answers.page(rows, limit, offset), **search.missing(freshness)}


def _named(context: Context, note_name: str) -> list[NotePath]:
    """Find the notes that a name means, with its folders or without."""
    name = _key(_bare(note_name))
    if not name:
        raise BadInput("no note is named", hint="give its name, without brackets")
    last = name.rpartition("/")[2]
    fits = (path for path in context.index.graph.lookup(last) if context.sees(path))
    return [path for path in fits if f"/{_key(path)}".endswith(f"/{name}")]


def _bare(note_name: str) -> str:
    """Take brackets, alias, heading and block away from what a caller wrote; an absolute path isn't taken apart."""
    text = note_name.strip().removeprefix("!").removeprefix("[[").removesuffix("]]")
    return text.partition("|")[0].partition("#")[0].strip().strip("/")


def _key(name: str) -> str:
    return paths.key(name).removesuffix(_NOTE)


def _is_below(source: NotePath, folder: str) -> bool:
    key = paths.key(source)
    return key in {folder, f"{folder}{_NOTE}"} or key.startswith(f"{folder}/")


def _broken(context: Context) -> Iterator[Edge]:
    """Give broken links as the client sees them: what is hidden isn't there."""
    visible = context.sees
    if context.view.policy.sees_all:
        yield from (edge for edge in context.index.graph.broken() if visible(edge.source))
        return
    for edge in _visible_edges(context):
        if edge.path is None or not visible(edge.path):
            yield edge


def _orphans(context: Context) -> list[NotePath]:
    return [path for path in context.index.graph.orphans() if context.sees(path)]


def _orphans_among_visible(context: Context) -> list[NotePath]:
    """Find orphans by the links that the client sees, so that hidden files don't show through."""
    alone = {file.path for file in context.view.files() if file.kind == "note"}
    for edge in _visible_edges(context):
        if edge.path is not None and edge.path != edge.source and context.sees(edge.path):
            alone.discard(edge.path)
            alone.discard(edge.source)
    return sorted(alone)


def _visible_edges(context: Context) -> Iterator[Edge]:
    for path in sorted(file.path for file in context.view.files()):
        for edge in context.index.graph.outgoing(path):
            if edge.kind != "external" and edge.target:
                yield edge


def _of(context: Context, edges: Sequence[Edge], shown: JSONValue) -> list[JSONValue]:
    wanted = set(map(str, shown)) if isinstance(shown, list) else set[str]()
    kept = sorted((edge for edge in edges if edge.source in wanted), key=lambda edge: (edge.source, edge.line))
    return [_shape(context, edge) for edge in kept]


def _shape(context: Context, edge: Edge) -> JSONValue:
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
    others: list[JSONValue] = [path for path in edge.ambiguous if visible(path)]
    headings: list[JSONValue] = [*edge.headings]
    parts: dict[str, JSONValue] = {
        "headings": headings,
        "block": edge.block,
        "alias": edge.alias,
        "property": edge.key if edge.kind == "property" else "",
        "also_fits": others,
    }
    return shown | {name: value for name, value in parts.items() if value}
