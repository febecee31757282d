"""Resolve links between files: who links where, who links here, what is broken, what stands alone."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from knapper.index import file_rows
from knapper.index.connections import Connections
from knapper.index.records import Known
from knapper.index.store import Store
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

_COLUMNS = "f.path, l.kind, l.target, l.headings, l.block, l.alias, l.line, l.key"
_SAID = (
    "SELECT f.path, l.rowid, l.kind, l.target, f.size, f.mtime_ns, f.racy FROM links l JOIN files f ON f.id = l.file_id"
    " WHERE l.kind != 'external' AND l.target != ''"
)
_ENDS = "SELECT rowid FROM links WHERE target_key IN (?, ?)"
Lookup = Callable[[str], Sequence[NotePath]]
_Row = tuple[str, str, str, str, str, str | None, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Hold one link, and the file that it leads to."""

    source: NotePath
    kind: str
    target: str
    """As written, without fragment."""
    headings: tuple[str, ...]
    block: str
    alias: str | None
    line: int
    key: str
    path: NotePath | None
    """None where nothing is there, and for addresses."""
    ambiguous: tuple[NotePath, ...]
    """Other files that the name fits as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Hold what links of a file say, before it is known where they lead."""

    source: NotePath
    known: Known
    """The file as it was when it was read."""
    links: tuple[tuple[str, str], ...]
    """Kind and target of each, in order of place; addresses aren't among them."""


class Graph:
    """Answer questions about links from the index; nothing is read from the vault."""

    def __init__(self, store: Store) -> None:
        """Ask *store*."""
        self._store = store
        self.connections = Connections(store)
        """Where all links lead, worked out once for each state of the index."""

    def remembering(self) -> Lookup:
        """Give `lookup` with a memory, for a question that asks for the same names again and again."""
        known: dict[str, Sequence[NotePath]] = {}

        def look(key: str) -> Sequence[NotePath]:
            if key not in known:
                known[key] = self.lookup(key)
            return known[key]

        return look

    def lookup(self, key: str) -> Sequence[NotePath]:
        """Give all files whose last part, folded and without ``.md``, is *key*; by path."""
        rows = self._store.database.reader().execute("SELECT path FROM files WHERE name_key = ? ORDER BY path", (key,))
        return [NotePath(path) for (path,) in rows]

    def resolve(self, target: str, source: NotePath) -> links.Resolution:
        """Find the file that a link's target means, as seen from *source*."""
        return links.resolve(target, source, self.lookup)

    def outgoing(self, source: NotePath, lookup: Lookup | None = None) -> list[Edge]:
        """Give a file's links in order of their place; *lookup* may remember names over several questions."""
        with self._store.database.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM files f JOIN links l ON l.file_id = f.id WHERE f.path = ? ORDER BY l.rowid",
                (source,),
            ).fetchall()
            return self._edges(rows, lookup)

    def incoming(self, target: NotePath, lookup: Lookup | None = None) -> list[Edge]:
        """Give the links that lead to *target*, by source and place; links from the file to itself are among them."""
        keys = _link_keys(file_rows.link_key(paths.base_name(target)))
        own = "SELECT l.rowid FROM files f JOIN links l ON l.file_id = f.id WHERE f.path = ? AND l.target = ''"
        with self._store.database.snapshot() as connection:
            rows = _rows(connection, f"l.rowid IN ({_ENDS} UNION {own})", (*keys, target))
            return [edge for edge in self._edges(rows, lookup) if edge.path == target]

    def wanting(self, key: str, sees: Callable[[NotePath], bool]) -> list[Edge]:
        """Give the links that want a file of a folded name, and lead to none that is seen; by source and place."""
        with self._store.database.snapshot() as connection:
            rows = _rows(connection, "l.target_key = ? AND l.kind != 'external'", (key,))
            return [edge for edge in self._edges(rows) if edge.path is None or not sees(edge.path)]

    def edges(self, rowids: Sequence[int]) -> list[Edge]:
        """Give links by their row, in the order asked; those that are gone are left out."""
        with self._store.database.snapshot() as connection:
            wanted = f"SELECT l.rowid, {_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id WHERE l.rowid = ?"
            found = [row for rowid in rowids for row in connection.execute(wanted, (rowid,))]
            return self._edges([row[1:] for row in found])

    def naming(self, keys: Iterable[str]) -> list[Written]:
        """Give the links whose target may be a file with one of these name keys, by source.

        Args:
            keys: Folded names, as `lookup` takes them.
        """
        wanted = sorted({spelling for key in keys for spelling in _link_keys(key)})
        with self._store.database.snapshot() as connection:
            rows = [row for key in wanted for row in connection.execute(f"{_SAID} AND l.target_key = ?", (key,))]
        return _by_source(rows)

    def written(self, source: NotePath) -> Written | None:
        """Give what all links of a file say; None where the index doesn't know the file."""
        found = _by_source(self._store.database.reader().execute(f"{_SAID} AND f.path = ?", (source,)))
        if found:
            return found[0]
        known = self._store.known(below=source).get(source)
        return Written(source=source, known=known, links=()) if known else None

    @property
    def is_complete(self) -> bool:
        """Tell whether the vault was read from end to end since the index was made."""
        return self._store.meta("complete") == "1"

    def tagged(self, tag: str) -> list[NotePath]:
        """Give the notes that have *tag*, or one below it, by path."""
        key = paths.name_key(tag).strip().removeprefix("#").rstrip("/")
        rows = self._store.database.reader().execute(
            "SELECT DISTINCT f.path FROM tags t JOIN files f ON f.id = t.file_id"
            " WHERE t.key = ? OR (t.key >= ? AND t.key < ?) ORDER BY f.path",
            (key, f"{key}/", f"{key}0"),
        )
        return [NotePath(path) for (path,) in rows]

    def broken(self) -> list[Edge]:
        """Give the links that lead to no file, by source and place."""
        return self.edges(self.connections.get().broken())

    def _edges(self, rows: Iterable[_Row], lookup: Lookup | None = None) -> list[Edge]:
        look = lookup or self.remembering()
        return [self._edge(row, look) for row in rows]

    def _edge(self, row: _Row, lookup: Lookup) -> Edge:
        source, kind, target, headings, block, alias, line, key = row
        path = NotePath(source)
        if kind == "external":
            found = links.Resolution(path=None, ambiguous=())
        elif target:
            found = links.resolve(target, path, lookup)
        else:
            found = links.Resolution(path=path, ambiguous=())
        return Edge(
            source=path,
            kind=kind,
            target=target,
            headings=tuple(headings.split("#")) if headings else (),
            block=block,
            alias=alias,
            line=line,
            key=key,
            path=found.path,
            ambiguous=found.ambiguous,
        )


def _rows(connection: sqlite3.Connection, condition: str, parameters: Sequence[str]) -> list[_Row]:
    """Give the links for which a condition on ``links l`` holds, by source and place."""
    sql = f"SELECT {_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id WHERE {condition} ORDER BY f.path, l.rowid"
    return connection.execute(sql, parameters).fetchall()


def _link_keys(name_key: str) -> tuple[str, str]:
    """Give the keys of links that may mean a file: ``x.md.md`` is named by ``x.md`` with its ending left out, too."""
    return name_key, name_key.removesuffix(".md")


def _by_source(rows: Iterable[tuple[str, int, str, str, int, int, int]]) -> list[Written]:
    found: dict[str, list[tuple[str, str]]] = {}
    known: dict[str, Known] = {}
    for path, _, kind, target, size, mtime_ns, racy in sorted(rows):
        if path not in found:
            found[path] = []
            known[path] = Known(size=size, mtime_ns=mtime_ns, racy=bool(racy))
        found[path].append((kind, target))
    return [Written(source=NotePath(path), known=known[path], links=tuple(said)) for path, said in found.items()]
