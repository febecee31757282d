"""Follow links from a note, one step or several."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, Literal, Unpack

from typing_extensions import TypedDict

from knapper.errors import BadInput
from knapper.index.graph import NameLookup
from knapper.jsontypes import JSONValue
from knapper.tools import answers, checks, foreign, search
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.linked import Neighbors, Reach
from knapper.vault import paths
from knapper.vault.paths import NotePath

Direction = Literal["in", "out", "both"]
_DIRECTIONS: Final = ("in", "out", "both")
_DEEPEST: Final = 3
_MOST: Final = 5_000
"""Notes that following links comes to at most."""


class Way(TypedDict, total=False):
    """Hold which links are followed."""

    direction: Direction
    exclude_folders: Sequence[str]


def get_links(
    context: Context, path: str, direction: Direction = "both", limit: int = 100, offset: int = 0
) -> Annotated[Answer, Neighbors]:
    """List the notes that a note links to, that link to it, or both.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note.
        direction: ``out`` for where its links lead, ``in`` for what links to it, ``both``.
        limit: How many at most.
        offset: How many are left out at the beginning.

    Returns:
        ``results`` with path, title and direction, by path; ``unresolved`` names that no note has.

    Raises:
        NotFound: No such file is visible.
        BadInput: An argument is out of its range.
    """
    answers.check_page(limit, offset)
    _check(direction)
    freshness = context.freshen(meaning=False)
    source = context.view.path(path)
    walk = _Walk(context)
    out = set(walk.leads_to(source)) if direction != "in" else set[NotePath]()
    into = set(walk.led_from(source)) if direction != "out" else set[NotePath]()
    found = sorted(out | into)
    titles = walk.titles(found[offset : offset + limit])
    rows: list[JSONValue] = [
        {"path": each, "title": title, "direction": "both" if each in out & into else "out" if each in out else "in"}
        for each, title in titles
    ]
    unresolved: list[JSONValue] = [*walk.unresolved(source)] if direction != "in" else []
    if unresolved:
        _ = foreign.found(context, [source])  # words of whoever wrote the note
    page = answers.stretch(rows, len(found), limit, offset)
    return {"path": source, **page, "unresolved": unresolved, **search.missing(freshness)}


def get_links_recursive(
    context: Context,
    path: str,
    depth: int = 2,
    limit: int = 100,
    offset: int = 0,
    **more: Unpack[Way],
) -> Annotated[Answer, Reach]:
    """List the notes that links lead to in up to three steps, the nearest first.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note to begin at.
        depth: Steps, 1 to 3.
        limit: How many at most.
        offset: How many are left out at the beginning.
        direction: Follow links ``out``, ``in`` (to what links here), or ``both`` ways; both if not given.
        exclude_folders: Walls: notes below these are neither listed nor passed through.

    Returns:
        ``results`` with path, title, depth, and via: the note one step before.

    Raises:
        NotFound: No such file is visible.
        BadInput: An argument is out of its range.
    """
    answers.check_page(limit, offset)
    direction = more.get("direction", "both")
    _check(direction)
    if not 1 <= depth <= _DEEPEST:
        raise BadInput(f"depth is {depth}", hint=f"give 1 to {_DEEPEST}")
    excluded = checks.texts("exclude_folders", more.get("exclude_folders", ()))
    walls = tuple(paths.name_key(each).strip("/") + "/" for each in excluded)
    freshness = context.freshen(meaning=False)
    source = context.view.path(path)
    walk = _Walk(context, lambda found: not walls or not paths.name_key(found).startswith(walls))
    reached, is_whole = walk.spread(source, depth, direction)
    shown = reached[offset : offset + limit]
    titles = dict(walk.titles([found for found, _, _ in shown]))
    rows: list[JSONValue] = [
        {"path": found, "title": titles[found], "depth": steps, "via": via}
        for found, steps, via in shown
        if found in titles
    ]
    remarks = () if is_whole else (f"more than {_MOST} notes are linked: only the first are listed",)
    page = answers.stretch(rows, len(reached), limit, offset)
    return {"path": source, "depth": depth, **page, **search.missing(freshness, remarks)}


class _Walk:
    """Go from note to note; names, and what is visible, are looked up once."""

    def __init__(self, context: Context, passes: Callable[[NotePath], bool] = lambda _: True) -> None:
        self._context = context
        self._passes = passes
        self._lookup: NameLookup = context.index.graph.remembering()
        self._seen: dict[NotePath, bool] = {}

    def leads_to(self, source: NotePath) -> list[NotePath]:
        """Give the files that a note's links lead to, in order of the links."""
        edges = self._context.index.graph.outgoing(source, self._lookup)
        found = dict.fromkeys(edge.path for edge in edges if edge.path is not None and edge.path != source)
        return [path for path in found if self._may(path)]

    def led_from(self, target: NotePath) -> list[NotePath]:
        """Give the files that link to one, by path."""
        edges = self._context.index.graph.incoming(target, self._lookup)
        found = dict.fromkeys(edge.source for edge in edges if edge.source != target)
        return [path for path in found if self._may(path)]

    def unresolved(self, source: NotePath) -> list[str]:
        edges = self._context.index.graph.outgoing(source, self._lookup)
        lost = {
            edge.target
            for edge in edges
            if edge.kind != "external" and edge.target and (edge.path is None or not self._context.sees(edge.path))
        }
        return sorted(lost, key=lambda name: (paths.name_key(name), name))

    def spread(
        self, source: NotePath, depth: int, direction: Direction
    ) -> tuple[list[tuple[NotePath, int, NotePath]], bool]:
        """Go breadth first; gives path, steps and the note before, the nearest first, and whether that is all."""
        reached: dict[NotePath, tuple[int, NotePath]] = {source: (0, source)}
        ring = [source]
        for steps in range(1, depth + 1):
            nearer = ring
            ring = list[NotePath]()
            for via in nearer:
                fresh = [found for found in self._beside(via, direction) if found not in reached]
                reached.update((found, (steps, via)) for found in fresh)
                ring.extend(fresh)
                if len(reached) > _MOST:
                    return _in_order(reached, source), False
        return _in_order(reached, source), True

    def titles(self, found: Sequence[NotePath]) -> list[tuple[NotePath, str]]:
        """Give paths with their titles, in their order."""
        known = self._context.index.catalog.entries(found)
        return [(path, known[path].title) for path in found if path in known]

    def _beside(self, path: NotePath, direction: Direction) -> Iterator[NotePath]:
        if direction != "in":
            yield from self.leads_to(path)
        if direction != "out":
            yield from self.led_from(path)

    def _may(self, path: NotePath) -> bool:
        if path not in self._seen:
            self._seen[path] = self._passes(path) and self._context.sees(path)
        return self._seen[path]


def _in_order(reached: dict[NotePath, tuple[int, NotePath]], source: NotePath) -> list[tuple[NotePath, int, NotePath]]:
    rows = [(path, steps, via) for path, (steps, via) in reached.items() if path != source]
    return sorted(rows, key=lambda row: (row[1], row[0]))


def _check(direction: str) -> None:
    if direction not in _DIRECTIONS:
        raise BadInput(f"there is no direction '{direction}'", hint="give in, out or both")
