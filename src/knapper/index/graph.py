"""Resolve links between files: outgoing, incoming, broken, and notes without any."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from knapper.index import database, store
from knapper.index.arrays import np
from knapper.index.documents import FileState
from knapper.index.store import IndexStore
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray

FileIds: TypeAlias = "NDArray[np.int64]"
FileMask: TypeAlias = "NDArray[np.bool_]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnds:
    """Source and target of every link between files, by source and position."""

    rows: FileIds
    """Row ids of the links."""
    sources: FileIds
    targets: FileIds
    """0 for a broken link."""
    notes: tuple[tuple[int, NotePath], ...]
    """Id and path of every note, by path."""

    def broken(self, visible: FileMask | None = None, within: FileMask | None = None) -> list[int]:
        """Return the rows of the broken links.

        Args:
            visible: Mask by file id; hidden files count as missing. None shows all.
            within: Mask by file id of the sources. None takes all.
        """
        is_broken = self.targets == 0
        if visible is not None:
            is_broken = visible[self.sources] & (is_broken | ~visible[self.targets])
        if within is not None:
            is_broken &= within[self.sources]
        return self.rows[is_broken].tolist()

    def orphans(self, visible: FileMask | None = None) -> list[NotePath]:
        """Return the notes without links in or out, by path; only *visible* files count."""
        is_link = (self.targets != 0) & (self.targets != self.sources)
        if visible is not None:
            is_link &= visible[self.sources] & visible[self.targets]
        linked = {*self.sources[is_link].tolist(), *self.targets[is_link].tolist()}
        return [path for i, path in self.notes if i not in linked and (visible is None or visible[i])]

    def around(
        self, start: int, *, depth: int, limit: int, visible: FileMask | None = None
    ) -> tuple[dict[int, int], list[tuple[int, int]], bool]:
        """Follow links both ways from a file, breadth first.

        Args:
            start: Its id.
            depth: Steps.
            limit: Most files; of a step that doesn't fit, those with the most links to the files before it.
            visible: Mask by file id; only these files are followed. None shows all.

        Returns:
            Steps by file id, the nearest first; the links between these files, each pair once for each direction; and
            whether these are all that links reach.
        """
        is_link = (self.targets != 0) & (self.targets != self.sources)
        if visible is not None:
            is_link &= visible[self.sources] & visible[self.targets]
        sources, targets = self.sources[is_link], self.targets[is_link]
        steps, frontier, is_complete = {start: 0}, [start], True
        for step in range(1, depth + 1):
            reached = np.concatenate([targets[np.isin(sources, frontier)], sources[np.isin(targets, frontier)]])
            ids, counts = np.unique(reached, return_counts=True)
            order = np.argsort(-counts, kind="stable")
            frontier = [i for i in ids[order].tolist() if i not in steps]
            is_complete &= len(frontier) <= limit - len(steps)
            frontier = frontier[: limit - len(steps)]
            steps |= dict.fromkeys(frontier, step)
        within = np.isin(sources, list(steps)) & np.isin(targets, list(steps))
        return steps, sorted({*zip(sources[within].tolist(), targets[within].tolist(), strict=True)}), is_complete


class LinkEndsCache:
    """A thread-safe cache of the ends of all links, while the index stays the same."""

    def __init__(self, store: IndexStore) -> None:
        """Read from *store*."""
        self._store = store
        self._lock = threading.Lock()
        self._known: tuple[tuple[str, int], LinkEnds] | None = None

    def get(self) -> LinkEnds:
        """Return the ends for the index's current state."""
        with self._store.database.snapshot() as connection:
            key = database.state_of(connection)
            # Threads that need the ends at the same time wait for one computation.
            with self._lock:
                if self._known is None or self._known[0] != key:
                    self._known = key, _resolve_all(connection)
                return self._known[1]


class _LinkResolver:
    """Resolves links in memory, with a cache: most targets mean the same file in every note."""

    def __init__(self, files: Sequence[tuple[int, NotePath, str]]) -> None:
        self._ids = {path: i for i, path, _ in files}
        self._named: dict[str, list[NotePath]] = {}
        for _, path, key in files:
            self._named.setdefault(key, []).append(path)
        self._paths = {i: path for i, path, _ in files}
        self._anywhere: dict[str, int] = {}
        self._here: dict[tuple[str, str], int] = {}

    def lookup(self, key: str) -> Sequence[NotePath]:
        return self._named.get(key, ())

    def end(self, source: int, target: str) -> int:
        """Return the id of a link's target; 0 where it is broken."""
        known_end = self._anywhere.get(target)
        if known_end is not None:
            return known_end
        path = self._paths[source]
        target_and_folder = (target, paths.parent_folder(path))
        if target_and_folder not in self._here:
            resolution = links.resolve(target, path, self.lookup)
            end = self._ids[resolution.path] if resolution.path is not None else 0
            self._here[target_and_folder] = end
            # Only an unambiguous target that isn't relative means the same file in every folder.
            if not resolution.ambiguous and not target.strip().startswith("."):
                self._anywhere[target] = end
        return self._here[target_and_folder]


def _resolve_all(connection: sqlite3.Connection) -> LinkEnds:
    files = [
        (int(i), NotePath(path), str(key), str(kind))
        for i, path, key, kind in connection.execute("SELECT id, path, name_key, kind FROM files ORDER BY path")
    ]
    resolver = _LinkResolver([file[:3] for file in files])
    position_of = {i: number for number, (i, *_) in enumerate(files)}
    ends = np.array(
        [
            (position_of[source], row, source, resolver.end(source, target))
            for row, source, target in connection.execute(
                "SELECT rowid, file_id, target FROM links WHERE kind != 'external' AND target != ''"
            )
        ],
        np.int64,
    ).reshape(-1, 4)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    return LinkEnds(
        rows=ends[:, 1].copy(),
        sources=ends[:, 2].copy(),
        targets=ends[:, 3].copy(),
        notes=tuple((i, path) for i, path, _, kind in files if kind == "note"),
    )


_EDGE_COLUMNS = "f.path, l.kind, l.target, l.headings, l.block, l.alias, l.line, l.key"
_TARGETS_SQL = (
    "SELECT f.path, l.rowid, l.kind, l.target, f.size, f.mtime_ns, f.racy, f.ctime_ns FROM links l"
    " JOIN files f ON f.id = l.file_id WHERE l.kind != 'external' AND l.target != ''"
)
_LINKS_BY_KEY_SQL = "SELECT rowid FROM links WHERE target_key IN (?, ?)"
NameLookup = Callable[[str], Sequence[NotePath]]
_EdgeRow = tuple[str, str, str, str, str, str | None, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One link with its resolved target."""

    source: NotePath
    kind: str
    target: str
    """The target as written, without fragment."""
    headings: tuple[str, ...]
    block: str
    alias: str | None
    line: int
    key: str
    path: NotePath | None
    """None for broken links and web addresses."""
    ambiguous: tuple[NotePath, ...]
    """Other files that match the name equally well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedLinks:
    """The links of a file before they are resolved."""

    source: NotePath
    known: FileState
    """The file's state when it was indexed."""
    links: tuple[tuple[str, str], ...]
    """Kind and target of each link in order of position, without web addresses."""


class Graph:
    """The links between files, from the index alone."""

    def __init__(self, store: IndexStore) -> None:
        """Read from *store*."""
        self._store = store
        self.link_ends = LinkEndsCache(store)
        """The ends of all links, computed once for each state of the index."""

    def cached_lookup(self) -> NameLookup:
        """Return `lookup` with a cache, for repeated look-ups of the same names."""
        paths_by_key: dict[str, Sequence[NotePath]] = {}

        def look(key: str) -> Sequence[NotePath]:
            if key not in paths_by_key:
                paths_by_key[key] = self.lookup(key)
            return paths_by_key[key]

        return look

    def lookup(self, key: str) -> Sequence[NotePath]:
        """Return all files whose folded name without ``.md`` is *key*, by path."""
        rows = self._store.database.reader().execute("SELECT path FROM files WHERE name_key = ? ORDER BY path", (key,))
        return [NotePath(path) for (path,) in rows]

    def resolve(self, target: str, source: NotePath) -> links.Resolution:
        """Find the file that a link's target in *source* refers to."""
        return links.resolve(target, source, self.lookup)

    def outgoing(self, source: NotePath, lookup: NameLookup | None = None) -> list[Edge]:
        """Return a file's links in order of position; *lookup* may be a cached one."""
        with self._store.database.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {_EDGE_COLUMNS} FROM files f JOIN links l ON l.file_id = f.id"
                " WHERE f.path = ? ORDER BY l.rowid",
                (source,),
            ).fetchall()
            return self._edges(rows, lookup)

    def incoming(self, target: NotePath, lookup: NameLookup | None = None) -> list[Edge]:
        """Return the links to *target*, those from the file to itself included, by source and position."""
        keys = _link_keys(store.link_key(paths.base_name(target)))
        own_links_sql = (
            "SELECT l.rowid FROM files f JOIN links l ON l.file_id = f.id WHERE f.path = ? AND l.target = ''"
        )
        with self._store.database.snapshot() as connection:
            rows = _select_links(connection, f"l.rowid IN ({_LINKS_BY_KEY_SQL} UNION {own_links_sql})", (*keys, target))
            return [edge for edge in self._edges(rows, lookup) if edge.path == target]

    def broken_links_to(self, key: str, sees: Callable[[NotePath], bool]) -> list[Edge]:
        """Return the links whose target has a folded name and resolves to no visible file, by source and position."""
        with self._store.database.snapshot() as connection:
            rows = _select_links(connection, "l.target_key = ? AND l.kind != 'external'", (key,))
            return [edge for edge in self._edges(rows) if edge.path is None or not sees(edge.path)]

    def edges(self, rowids: Sequence[int]) -> list[Edge]:
        """Return links by row in the given order, without those that were removed."""
        with self._store.database.snapshot() as connection:
            edge_sql = (
                f"SELECT l.rowid, {_EDGE_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id WHERE l.rowid = ?"
            )
            edge_rows = [row for rowid in rowids for row in connection.execute(edge_sql, (rowid,))]
            return self._edges([row[1:] for row in edge_rows])

    def links_to_keys(self, keys: Iterable[str]) -> list[UnresolvedLinks]:
        """Return the links whose target may be a file with one of these names, by source.

        Args:
            keys: Folded names, as `lookup` takes them.
        """
        target_keys = sorted({spelling for key in keys for spelling in _link_keys(key)})
        with self._store.database.snapshot() as connection:
            rows = [
                row for key in target_keys for row in connection.execute(f"{_TARGETS_SQL} AND l.target_key = ?", (key,))
            ]
        return _group_by_source(rows)

    def links_of(self, source: NotePath) -> UnresolvedLinks | None:
        """Return the unresolved links of a file; None where the file isn't in the index."""
        by_source = _group_by_source(self._store.database.reader().execute(f"{_TARGETS_SQL} AND f.path = ?", (source,)))
        if by_source:
            return by_source[0]
        file_state = self._store.file_states(below=source).get(source)
        return UnresolvedLinks(source=source, known=file_state, links=()) if file_state else None

    @property
    def is_complete(self) -> bool:
        """Return whether the whole vault was read since the index was created."""
        return self._store.meta("complete") == "1"

    def tagged(self, tag: str) -> list[NotePath]:
        """Return the notes with *tag* or a tag nested below it, by path."""
        key = paths.name_key(tag).strip().removeprefix("#").rstrip("/")
        rows = self._store.database.reader().execute(
            "SELECT DISTINCT f.path FROM tags t JOIN files f ON f.id = t.file_id"
            " WHERE t.key = ? OR (t.key >= ? AND t.key < ?) ORDER BY f.path",
            (key, f"{key}/", f"{key}0"),
        )
        return [NotePath(path) for (path,) in rows]

    def broken(self) -> list[Edge]:
        """Return the broken links by source and position."""
        return self.edges(self.link_ends.get().broken())

    def _edges(self, rows: Iterable[_EdgeRow], lookup: NameLookup | None = None) -> list[Edge]:
        lookup_name = lookup or self.cached_lookup()
        return [self._edge(row, lookup_name) for row in rows]

    def _edge(self, row: _EdgeRow, lookup: NameLookup) -> Edge:
        source, kind, target, headings, block, alias, line, key = row
        path = NotePath(source)
        if kind == "external":
            resolution = links.Resolution(path=None, ambiguous=())
        elif target:
            resolution = links.resolve(target, path, lookup)
        else:
            resolution = links.Resolution(path=path, ambiguous=())
        return Edge(
            source=path,
            kind=kind,
            target=target,
            headings=tuple(headings.split("#")) if headings else (),
            block=block,
            alias=alias,
            line=line,
            key=key,
            path=resolution.path,
            ambiguous=resolution.ambiguous,
        )


def _select_links(connection: sqlite3.Connection, condition: str, parameters: Sequence[str]) -> list[_EdgeRow]:
    """Return the links that meet a condition on ``links l``, by source and position."""
    joined = f"SELECT {_EDGE_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id"
    sql = f"{joined} WHERE {condition} ORDER BY f.path, l.rowid"
    return connection.execute(sql, parameters).fetchall()


def _link_keys(name_key: str) -> tuple[str, str]:
    """Return the keys of links that may mean a file: a link ``x.md`` may also mean ``x.md.md``."""
    return name_key, name_key.removesuffix(".md")


def _group_by_source(rows: Iterable[tuple[str, int, str, str, int, int, int, int]]) -> list[UnresolvedLinks]:
    targets_by_source: dict[str, list[tuple[str, str]]] = {}
    states_by_source: dict[str, FileState] = {}
    for path, _, kind, target, size, mtime_ns, racy, ctime_ns in sorted(rows):
        if path not in targets_by_source:
            targets_by_source[path] = []
            states_by_source[path] = FileState(size=size, mtime_ns=mtime_ns, racy=bool(racy), ctime_ns=ctime_ns)
        targets_by_source[path].append((kind, target))
    return [
        UnresolvedLinks(source=NotePath(path), known=states_by_source[path], links=tuple(targets))
        for path, targets in targets_by_source.items()
    ]
