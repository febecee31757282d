"""List backlinks, outgoing links, broken links and orphans, and follow links over several steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, Unpack, get_args

from typing_extensions import TypedDict

from knapper import jsontypes
from knapper.errors import BadInput, KnapError, NotFound
from knapper.index.catalog import ListingQuery
from knapper.index.documents import Filter
from knapper.index.graph import Edge, NameLookup
from knapper.tools import answers, search
from knapper.tools.context import Context, check_text, check_texts, missing_folders, resolve_folder
from knapper.tools.shapes.read import (
    BacklinkPage,
    BrokenLinkPage,
    GraphEdge,
    GraphNode,
    LinkingNote,
    LinkingNotePage,
    LinkRow,
    Neighbor,
    NeighborPage,
    NoteGraph,
    NoteSurroundings,
    OutlinkPage,
    PathPage,
    ReachableNote,
    ReachableNotePage,
)
from knapper.vault import paths
from knapper.vault.paths import NotePath

_DEFAULT_LIMIT = 100
_MAX_NEAREST: Final = 3
"""Most names that are suggested where none fits."""


def find_backlinks(context: Context, note_name: str, limit: int = _DEFAULT_LIMIT, offset: int = 0) -> BacklinkPage:
    """Find the files that link to a note: wikilinks with alias, heading or block, embeds, Markdown links, properties.

    Args:
        context: The vault, as the client sees it.
        note_name: Without brackets and ``.md``, in any case; with its folder where several notes have the name. A
            title or an alias, where no note has the name.
        limit: How many files at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results``: their paths, sorted; ``links`` of these files with path, line, kind and what is written, and
        ``self_link`` where a note links to itself. For a name that no note has, the broken links to it, and ``exists``
        is false.

    Raises:
        BadInput: The name is empty, or limit or offset is out of its range.
    """
    answers.check_page(limit, offset)
    name = paths.lookup_key(_strip_link_syntax(check_text("note_name", note_name)))
    if not name:
        raise BadInput("no note is named", hint="give its name, without brackets")
    freshness = context.freshen(meaning=False)
    targets, edges = _links_to_named(context, name, _strip_link_syntax(note_name))
    visibility = {source: context.sees(source) for source in {edge.source for edge in edges}}
    # A link to a heading of the same note, without the note's name, isn't one to the note.
    visible_edges = [edge for edge in edges if edge.target and visibility[edge.source]]
    sources = sorted({edge.source for edge in visible_edges})
    page_sources = set(sources[offset : offset + limit])
    page_edges = sorted(
        (edge for edge in visible_edges if edge.source in page_sources), key=lambda edge: (edge.source, edge.line)
    )
    return {
        **answers.paginate([str(source) for source in sources], limit, offset),
        "exists": bool(targets),
        "notes_of_that_name": [*targets],
        "links": link_answers(context, page_edges),
        **search.freshness_fields(freshness),
    }


def find_outlinks(context: Context, path: str, limit: int = _DEFAULT_LIMIT, offset: int = 0) -> OutlinkPage:
    """List the notes and files that a note links to.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results``: their names as first written, without alias, heading or block, each once, sorted; ``links`` with
        the line, the kind, and the path that each leads to (null where nothing is there).

    Raises:
        NotFound: No such file is visible.
        BadInput: The path isn't valid, or limit or offset is out of its range.
        RefusedError: The path leads outside the vault.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    source = context.view.locate(path)
    edges = [edge for edge in context.index.graph.outgoing(source) if edge.kind != "external" and edge.target]
    # Reversed, so that of several spellings the first in the note wins.
    spellings = {paths.name_key(edge.target): edge.target for edge in reversed(edges)}
    keys = sorted(spellings)
    page_fields = answers.paginate([spellings[key] for key in keys], limit, offset)
    page_keys = set(keys[offset : offset + limit])
    link_rows = link_answers(context, [edge for edge in edges if paths.name_key(edge.target) in page_keys])
    return {"path": source, **page_fields, "links": link_rows, **search.freshness_fields(freshness)}


def broken_links(context: Context, path: str = "", limit: int = _DEFAULT_LIMIT, offset: int = 0) -> BrokenLinkPage:
    """List the links that lead to no file, by file and line.

    Args:
        context: The vault, as the client sees it.
        path: Only those in this note, or below this folder; empty for all.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Raises:
        BadInput: The path isn't valid, or limit or offset is out of its range.
        NotFound: No such note or folder is visible.
        RefusedError: The path leads outside the vault.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    place = _resolve_place(context, check_text("path", path))
    rows = context.index.catalog.broken(context.restrict(Filter()), place)
    link_rows = link_answers(context, context.index.graph.edges(rows[offset : offset + limit]))
    return {**answers.page_of(link_rows, len(rows), limit, offset), **search.freshness_fields(freshness)}


def _resolve_place(context: Context, raw: str) -> NotePath:
    """Resolve a folder, or a note with or without its extension, as a caller wrote it."""
    nearest: list[str] = []
    try:
        return resolve_folder(context, raw)
    except NotFound as error:
        nearest += jsontypes.strings_in(error.details.get("nearest"))
    try:
        return context.view.locate(raw)
    except NotFound as error:
        nearest += jsontypes.strings_in(error.details.get("nearest"))
    nearest = list(dict.fromkeys(nearest))[:_MAX_NEAREST]
    hint = "nearest: " + ", ".join(map(repr, nearest)) if nearest else "explore the vault for its folders"
    raise NotFound(f"no note or folder {paths.quote_path(raw)} in the vault", hint=hint, details={"nearest": nearest})


def orphans(context: Context, limit: int = _DEFAULT_LIMIT, offset: int = 0) -> PathPage:
    """List the notes that no file links to and that link to none, by path.

    Args:
        context: The vault, as the client sees it.
        limit: How many at most.
        offset: How many to skip at the beginning.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    rows = [str(path) for path in context.index.catalog.orphans(context.restrict(Filter()))]
    return {**answers.paginate(rows, limit, offset), **search.freshness_fields(freshness)}


def link_answers(context: Context, edges: Sequence[Edge]) -> list[LinkRow]:
    """Return links as every surface shows them; taint the client if others wrote the text in them."""
    # Others show only the name of an existing note, and no words of their own.
    own_text = (edge for edge in edges if edge.path is None or edge.headings or edge.block or edge.alias)
    _ = answers.mark_foreign_paths(context, (edge.source for edge in own_text))
    return [link_answer(context, edge) for edge in edges]


def link_answer(context: Context, edge: Edge) -> LinkRow:
    """Return a link as every surface shows it; empty parts are left out."""
    is_visible = context.sees
    # A link to a hidden file looks broken, so that it doesn't reveal that the file exists.
    target_path = edge.path if edge.path is not None and is_visible(edge.path) else None
    answer: LinkRow = {
        "path": edge.source,
        "line": edge.line,
        "kind": edge.kind,
        "target": edge.target,
        "leads_to": target_path,
        "headings": [*edge.headings],
        "block": edge.block or "",
        "alias": edge.alias or "",
        "property": (edge.key or "") if edge.kind == "property" else "",
        # A hidden file of the same name makes no link ambiguous.
        "also_fits": [path for path in edge.ambiguous if target_path and path != target_path and is_visible(path)],
        "self_link": target_path == edge.source,
    }
    for name in ("headings", "block", "alias", "property", "also_fits", "self_link"):
        if not answer.get(name):
            del answer[name]
    return answer


def _links_to_named(context: Context, name: str, written: str) -> tuple[list[NotePath], list[Edge]]:
    """Return the notes that a name may mean, and the links to them; with broken links, where no file has the name.

    Args:
        context: The vault, as the client sees it.
        name: The name, folded.
        written: The same as the caller wrote it.
    """
    graph = context.index.graph
    candidates = (path for path in graph.lookup(name.rpartition("/")[2]) if context.sees(path))
    named = [path for path in candidates if f"/{paths.lookup_key(path)}".endswith(f"/{name}")]
    targets = named or context.index.catalog.files_named(written, context.restrict(Filter()))
    lookup = graph.cached_lookup()
    edges = [edge for target in targets for edge in graph.incoming(target, lookup)]
    if not named:
        # Also for a note's title or alias: as a link's target, it leads nowhere.
        unresolved = graph.broken_links_to(paths.lookup_key(name.rpartition("/")[2]), context.sees)
        edges += [edge for edge in unresolved if paths.lookup_key(edge.target) == name]
    return targets, edges


def _strip_link_syntax(note_name: str) -> str:
    """Strip brackets, alias, heading and block from a name as a caller wrote it."""
    text = note_name.strip().removeprefix("!").removeprefix("[[").removesuffix("]]")
    return text.partition("|")[0].partition("#")[0].strip().strip("/")


LinkDirection = Literal["in", "out", "both"]
_DIRECTIONS: Final = ("in", "out", "both")
_MAX_DEPTH: Final = 3
_MAX_REACHED: Final = 5_000
"""Most notes that a traversal reaches."""


class TraversalParameters(TypedDict, total=False):
    """Optional parameters of `get_links_recursive`."""

    direction: LinkDirection
    exclude_folders: Sequence[str]


def get_links(
    context: Context, path: str, direction: LinkDirection = "both", limit: int = 100, offset: int = 0
) -> NeighborPage:
    """List the notes that a note links to, that link to it, or both.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note.
        direction: ``out`` for where its links lead, ``in`` for what links to it, ``both``.
        limit: How many at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results`` with path, title and direction, by path; ``unresolved`` names that no note has.

    Raises:
        NotFound: No such file is visible.
        BadInput: An argument is out of its range.
    """
    answers.check_page(limit, offset)
    _check_direction(direction)
    freshness = context.freshen(meaning=False)
    source = context.view.locate(path)
    traversal = _LinkTraversal(context)
    outgoing = set(traversal.outgoing(source)) if direction != "in" else set[NotePath]()
    incoming = set(traversal.incoming(source)) if direction != "out" else set[NotePath]()
    linked = sorted(outgoing | incoming)
    titles = traversal.titles(linked[offset : offset + limit])
    rows: list[Neighbor] = [
        {
            "path": linked_path,
            "title": title,
            "direction": "both" if linked_path in outgoing & incoming else "out" if linked_path in outgoing else "in",
        }
        for linked_path, title in titles
    ]
    unresolved = traversal.unresolved(source) if direction != "in" else []
    if unresolved:
        # Broken names are words of the note's author, who may be another person.
        _ = answers.mark_foreign_paths(context, [source])
    page = answers.page_of(rows, len(linked), limit, offset)
    return {"path": source, **page, "unresolved": unresolved, **search.freshness_fields(freshness)}


def get_links_recursive(
    context: Context,
    path: str,
    depth: int = 2,
    limit: int = 100,
    offset: int = 0,
    **more: Unpack[TraversalParameters],
) -> ReachableNotePage:
    """List the notes that links lead to in up to three steps, the nearest first.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note to begin at.
        depth: Steps, 1 to 3.
        limit: How many at most.
        offset: How many to skip at the beginning.
        direction: Follow links ``out``, ``in`` (to what links here), or ``both`` ways; both if not given.
        exclude_folders: Notes below these folders are neither listed nor followed.

    Returns:
        ``results`` with path, title, depth, and via: the note one step before.

    Raises:
        NotFound: No such file is visible.
        BadInput: An argument is out of its range.
    """
    answers.check_page(limit, offset)
    direction = more.get("direction", "both")
    _check_direction(direction)
    if not 1 <= depth <= _MAX_DEPTH:
        raise BadInput(f"depth is {depth}", hint=f"give 1 to {_MAX_DEPTH}")
    excluded = check_texts("exclude_folders", more.get("exclude_folders", ()))
    excluded_prefixes = tuple(paths.name_key(each).strip("/") + "/" for each in excluded)
    freshness = context.freshen(meaning=False)
    source = context.view.locate(path)
    traversal = _LinkTraversal(
        context,
        lambda reached_path: not excluded_prefixes or not paths.name_key(reached_path).startswith(excluded_prefixes),
    )
    reached, is_complete = traversal.breadth_first(source, depth, direction)
    page_rows = reached[offset : offset + limit]
    titles = dict(traversal.titles([reached_path for reached_path, _, _ in page_rows]))
    rows: list[ReachableNote] = [
        {"path": reached_path, "title": titles[reached_path], "depth": steps, "via": via}
        for reached_path, steps, via in page_rows
        if reached_path in titles
    ]
    cut = () if is_complete else (f"more than {_MAX_REACHED} notes are linked: only the first are listed",)
    remarks = (*cut, *missing_folders(context, excluded))
    page = answers.page_of(rows, len(reached), limit, offset)
    return {"path": source, "depth": depth, **page, **search.freshness_fields(freshness, remarks)}


class _LinkTraversal:
    """A walk along links that looks up names, and what is visible, once."""

    def __init__(self, context: Context, passes: Callable[[NotePath], bool] = lambda _: True) -> None:
        self._context = context
        self._passes = passes
        self._lookup: NameLookup = context.index.graph.cached_lookup()
        self._allowed: dict[NotePath, bool] = {}

    def outgoing(self, source: NotePath) -> list[NotePath]:
        """Return the files that a note's links lead to, in order of the links."""
        edges = self._context.index.graph.outgoing(source, self._lookup)
        targets = dict.fromkeys(edge.path for edge in edges if edge.path is not None and edge.path != source)
        return [path for path in targets if self._is_allowed(path)]

    def incoming(self, target: NotePath) -> list[NotePath]:
        """Return the files that link to one, by path."""
        edges = self._context.index.graph.incoming(target, self._lookup)
        sources = dict.fromkeys(edge.source for edge in edges if edge.source != target)
        return [path for path in sources if self._is_allowed(path)]

    def unresolved(self, source: NotePath) -> list[str]:
        """Return the names that a note links to and that no visible note has, sorted."""
        edges = self._context.index.graph.outgoing(source, self._lookup)
        names = {
            edge.target
            for edge in edges
            if edge.kind != "external" and edge.target and (edge.path is None or not self._context.sees(edge.path))
        }
        return sorted(names, key=lambda name: (paths.name_key(name), name))

    def breadth_first(
        self, source: NotePath, depth: int, direction: LinkDirection
    ) -> tuple[list[tuple[NotePath, int, NotePath]], bool]:
        """Follow links breadth first.

        Returns:
            Path, steps and the note one step before, the nearest first; and whether these are all.
        """
        reached: dict[NotePath, tuple[int, NotePath]] = {source: (0, source)}
        frontier = [source]
        for steps in range(1, depth + 1):
            previous = frontier
            frontier = list[NotePath]()
            for via in previous:
                neighbors: list[NotePath] = []
                if direction != "in":
                    neighbors += self.outgoing(via)
                if direction != "out":
                    neighbors += self.incoming(via)
                unvisited = [neighbor for neighbor in neighbors if neighbor not in reached]
                reached.update((neighbor, (steps, via)) for neighbor in unvisited)
                frontier.extend(unvisited)
                if len(reached) > _MAX_REACHED:
                    return _nearest_first(reached, source), False
        return _nearest_first(reached, source), True

    def titles(self, note_paths: Sequence[NotePath]) -> list[tuple[NotePath, str]]:
        """Return paths with their titles, in their order."""
        entries = self._context.index.catalog.entries(note_paths)
        return [(path, entries[path].title) for path in note_paths if path in entries]

    def _is_allowed(self, path: NotePath) -> bool:
        if path not in self._allowed:
            self._allowed[path] = self._passes(path) and self._context.sees(path)
        return self._allowed[path]


def _nearest_first(
    reached: dict[NotePath, tuple[int, NotePath]], source: NotePath
) -> list[tuple[NotePath, int, NotePath]]:
    rows = [(path, steps, via) for path, (steps, via) in reached.items() if path != source]
    return sorted(rows, key=lambda row: (row[1], row[0]))


_MAX_LINE_CHARS: Final = 600
_MAX_LINES_OF_NOTE: Final = 20
"""Most links of one note that are shown with their lines."""


def backlink_lines(context: Context, path: str, limit: int, offset: int) -> LinkingNotePage:
    """List the notes that link to one, each with the lines that do; taint the client if others wrote them.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note.
        limit: How many notes at most.
        offset: How many to skip at the beginning.

    Returns:
        ``results`` by path: path, title and ``links`` with line, text and whether it is an embed.

    Raises:
        NotFound: No such file is visible.
        BadInput: limit or offset is out of its range.
    """
    answers.check_page(limit, offset)
    freshness = context.freshen(meaning=False)
    target = context.view.locate(path)
    by_source: dict[NotePath, list[Edge]] = {}
    for edge in context.index.graph.incoming(target):
        if edge.source != target and edge.target and context.sees(edge.source):
            by_source.setdefault(edge.source, []).append(edge)
    sources = list(by_source)[offset : offset + limit]
    foreign_paths = answers.mark_foreign_paths(context, sources)
    titles = dict(_LinkTraversal(context).titles(sources))
    rows: list[LinkingNote] = []
    for source in sources:
        try:
            lines = context.view.read_bytes(source).decode("utf-8", "replace").splitlines()
        except KnapError:  # it can't be read any more
            lines = []
        edges = by_source[source][:_MAX_LINES_OF_NOTE]
        embeds = {edge.line for edge in edges if edge.kind == "embed"}
        row: LinkingNote = {
            "path": source,
            "title": titles.get(source, paths.stem(source)),
            "links": [
                {"line": number, "text": lines[number - 1].strip()[:_MAX_LINE_CHARS], "is_embed": number in embeds}
                for number in dict.fromkeys(edge.line for edge in edges)
                if 1 <= number <= len(lines)
            ],
        }
        if source in foreign_paths:
            row["foreign"] = True
        rows.append(row)
    page = answers.page_of(rows, len(by_source), limit, offset)
    return {"path": target, **page, **search.freshness_fields(freshness)}


GraphTies = Literal["links", "meaning", "both"]
GRAPH_TIES: Final[tuple[GraphTies, ...]] = get_args(GraphTies)
MAX_GRAPH_NODES: Final = 2_000
_NEAR_PER_NOTE: Final = 5
"""Notes near in meaning that a note leads to."""
_MAX_NEAR_SOURCES: Final = 40
"""Most notes whose nearest ones are looked for: each costs a ranking of all vectors."""
_MAX_NODE_TAGS: Final = 8


def surroundings(
    context: Context, path: str, *, depth: int = 2, by: GraphTies = "links", limit: int = 300
) -> NoteSurroundings:
    """Return the notes around one and the ties between them, as a graph.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note in the middle.
        depth: Steps, 1 to 3.
        by: What ties notes: links in either direction, nearness in meaning, or both.
        limit: Most notes, 1 to 2,000.

    Returns:
        ``nodes`` with path, title, depth and tags, the nearest first; ``edges`` between them, whose ends count nodes
        from 0; ``is_complete`` is false where the limit left some out.

    Raises:
        NotFound: No such file is visible.
        BadInput: An argument is out of its range.
    """
    if not 1 <= depth <= _MAX_DEPTH:
        raise BadInput(f"depth is {depth}", hint=f"give 1 to {_MAX_DEPTH}")
    if not 1 <= limit <= MAX_GRAPH_NODES:
        raise BadInput(f"limit is {limit}", hint=f"give 1 to {MAX_GRAPH_NODES}")
    _check_ties(by)
    freshness = context.freshen(meaning=by != "links")
    source = context.view.locate(path)
    where = context.restrict(Filter(kinds=search.NOTE_KINDS))
    steps, links_found, is_complete = {source: 0}, list[tuple[NotePath, NotePath]](), True
    if by != "meaning":
        steps, links_found, is_complete = context.index.catalog.around(source, where, depth=depth, limit=limit)
    near: dict[tuple[NotePath, NotePath], float] = {}
    if by != "links":
        is_complete &= _add_near(context, where, steps, near, depth=depth, limit=limit)
    nodes = _graph_nodes(context, steps)
    return {
        "success": True,
        "path": source,
        "depth": depth,
        "by": by,
        "limit": limit,
        "is_complete": is_complete,
        "nodes": nodes,
        "edges": _graph_edges(nodes, links_found, near),
        **search.freshness_fields(freshness),
    }


def graph_between(context: Context, wanted: Sequence[str], *, by: GraphTies = "links") -> NoteGraph:
    """Return some notes and the ties between them, as a graph: what a run read, or what an agent chose.

    Args:
        context: The vault, as the client sees it.
        wanted: Paths of notes, at most 2,000.
        by: What ties notes: links in either direction, nearness in meaning, or both.

    Returns:
        ``nodes`` in the order of *wanted*, each once; ``edges`` between them, whose ends count nodes from 0;
        ``missing`` counts the paths where no note is visible; ``is_complete`` is false where there are too many notes
        to compare the meaning of all.

    Raises:
        BadInput: An argument is out of its range.
    """
    if not 1 <= len(wanted) <= MAX_GRAPH_NODES:
        raise BadInput(f"{len(wanted)} paths were given", hint=f"give 1 to {MAX_GRAPH_NODES}")
    _check_ties(by)
    freshness = context.freshen(meaning=by != "links")
    asked = dict.fromkeys(NotePath(path) for path in check_texts("paths", wanted))
    where = context.restrict(Filter(kinds=search.NOTE_KINDS))
    listing = ListingQuery(where=replace(where, paths=tuple(asked)), limit=MAX_GRAPH_NODES)
    shown = {entry.path for entry in context.index.catalog.find(listing).entries}
    notes = [path for path in asked if path in shown]
    nodes_by_path = {node["path"]: node for node in _graph_nodes(context, dict.fromkeys(notes, 1))}
    nodes = [nodes_by_path[path] for path in notes]
    links_found = [] if by == "meaning" else context.index.catalog.links_between(notes, where)
    near: dict[tuple[NotePath, NotePath], float] = {}
    if by != "links":
        among = replace(where, paths=tuple(notes))
        for path in notes[:_MAX_NEAR_SOURCES]:
            for other, cosine in context.index.near_notes(path, among, limit=_NEAR_PER_NOTE):
                if (other, path) not in near:
                    near[path, other] = cosine
    return {
        "success": True,
        "by": by,
        "is_complete": by == "links" or len(notes) <= _MAX_NEAR_SOURCES,
        "missing": len(asked) - len(nodes),
        "nodes": nodes,
        "edges": _graph_edges(nodes, links_found, near),
        **search.freshness_fields(freshness),
    }


def _graph_edges(
    nodes: Sequence[GraphNode],
    links_found: Sequence[tuple[NotePath, NotePath]],
    near: Mapping[tuple[NotePath, NotePath], float],
) -> list[GraphEdge]:
    places = {node["path"]: place for place, node in enumerate(nodes)}
    edges: list[GraphEdge] = [
        {"source": places[one], "target": places[other], "kind": "link"}
        for one, other in links_found
        if one in places and other in places
    ]
    edges += [
        GraphEdge(source=places[one], target=places[other], kind="meaning", cosine=round(cosine, 4))
        for (one, other), cosine in near.items()
        if one in places and other in places
    ]
    return edges


def _add_near(
    context: Context,
    where: Filter,
    steps: dict[NotePath, int],
    near: dict[tuple[NotePath, NotePath], float],
    *,
    depth: int,
    limit: int,
) -> bool:
    """Add the notes near in meaning to each one, breadth first; return whether none was left out."""
    asked = 0
    for step in range(depth):
        for path in [path for path, at in steps.items() if at == step]:
            if asked == _MAX_NEAR_SOURCES:
                return False
            asked += 1
            for other, cosine in context.index.near_notes(path, where, limit=_NEAR_PER_NOTE):
                if other not in steps and len(steps) >= limit:
                    return False
                steps[other] = min(steps.get(other, depth), step + 1)
                if (other, path) not in near:
                    near[path, other] = cosine
    return True


def _graph_nodes(context: Context, steps: Mapping[NotePath, int]) -> list[GraphNode]:
    """Return the notes of a graph, the nearest first; those that others wrote without their tags."""
    entries = context.index.catalog.entries(list(steps))
    tags = context.index.catalog.tags([entry.id for entry in entries.values()])
    nodes: list[GraphNode] = []
    for path, step in sorted(steps.items(), key=lambda row: (row[1], row[0])):
        entry = entries.get(path)
        title = entry.title if entry else paths.stem(path)
        node: GraphNode = {"path": path, "title": title, "depth": step, "tags": []}
        if entry and answers.is_foreign_entry(context, entry):
            nodes.append({**node, "foreign": True})
        elif entry or step == 0:
            shown_tags = [*tags.get(entry.id, ())[:_MAX_NODE_TAGS]] if entry else []
            nodes.append({**node, "tags": shown_tags})
    return nodes


def _check_ties(by: str) -> None:
    if by not in GRAPH_TIES:
        raise BadInput(f"there are no ties '{by}'", hint=f"give {', '.join(GRAPH_TIES)}")


def _check_direction(direction: str) -> None:
    if direction not in _DIRECTIONS:
        raise BadInput(f"there is no direction '{direction}'", hint="give in, out or both")
