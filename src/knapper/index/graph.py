"""Resolve links between files: outgoing, incoming and broken ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from knapper.index import documents
from knapper.index.documents import FileState
from knapper.index.link_ends import LinkEndsCache
from knapper.index.store import IndexStore
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

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
        """The ends of all links, brought up to date for each state of the index."""

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
        keys = documents.link_keys(documents.link_key(paths.base_name(target)))
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
        target_keys = sorted({spelling for key in keys for spelling in documents.link_keys(key)})
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
