"""Resolve links between files: who links where, who links here, what is broken, what stands alone."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knapper.index import file_rows
from knapper.index.records import Known
from knapper.index.store import Store
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

_COLUMNS = "f.path, l.kind, l.target, l.headings, l.block, l.alias, l.line, l.key"
_SAID = (
    "SELECT f.path, l.rowid, l.kind, l.target, f.size, f.mtime_ns, f.racy FROM links l JOIN files f ON f.id = l.file_id"
    " WHERE l.kind != 'external' AND l.target != ''"
)


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

    def lookup(self, key: str) -> Sequence[NotePath]:
        """Give all files whose last part, folded and without ``.md``, is *key*; by path."""
        rows = self._store.database.reader().execute("SELECT path FROM files WHERE name_key = ? ORDER BY path", (key,))
        return [NotePath(path) for (path,) in rows]

    def resolve(self, target: str, source: NotePath) -> links.Resolution:
        """Find the file that a link's target means, as seen from *source*."""
        return links.resolve(target, source, self.lookup)

    def outgoing(self, source: NotePath) -> list[Edge]:
        """Give a file's links in order of their place."""
        with self._store.database.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id WHERE f.path = ? ORDER BY l.rowid",
                (source,),
            ).fetchall()
            return [self._edge(row) for row in rows]

    def incoming(self, target: NotePath) -> list[Edge]:
        """Give the links that lead to *target*, by source and place; links from the file to itself are among them."""
        with self._store.database.snapshot() as connection:
            found = [self._edge(row) for row in _candidates(connection, target)]
            return [edge for edge in found if edge.path == target]

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
        key = paths.key(tag).strip().removeprefix("#").rstrip("/")
        rows = self._store.database.reader().execute(
            "SELECT DISTINCT f.path FROM tags t JOIN files f ON f.id = t.file_id"
            " WHERE t.key = ? OR (t.key >= ? AND t.key < ?) ORDER BY f.path",
            (key, f"{key}/", f"{key}0"),
        )
        return [NotePath(path) for (path,) in rows]

    def broken(self) -> list[Edge]:
        """Give the links that lead to no file, by source and place."""
        with self._store.database.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id"
                " WHERE l.kind != 'external' AND l.target != '' ORDER BY f.path, l.rowid"
            ).fetchall()
            return [edge for edge in map(self._edge, rows) if edge.path is None]

    def orphans(self) -> list[NotePath]:
        """Give the notes that no other file links to and that link to none, by path."""
        with self._store.database.snapshot() as connection:
            notes = {NotePath(p) for (p,) in connection.execute("SELECT path FROM files WHERE kind = 'note'")}
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id"
                " WHERE l.kind != 'external' AND l.target != ''"
            ).fetchall()
            for edge in map(self._edge, rows):
                if edge.path is not None and edge.path != edge.source:
                    notes.discard(edge.path)
                    notes.discard(edge.source)
            return sorted(notes)

    def _edge(self, row: tuple[str, str, str, str, str, str | None, int, str]) -> Edge:
        source, kind, target, headings, block, alias, line, key = row
        path = NotePath(source)
        if kind == "external":
            found = links.Resolution(path=None, ambiguous=())
        elif target:
            found = self.resolve(target, path)
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


def _candidates(
    connection: sqlite3.Connection, target: NotePath
) -> list[tuple[str, str, str, str, str, str | None, int, str]]:
    """Give all links whose last part is the file's name, and the file's links to itself."""
    keys = _link_keys(file_rows.link_key(paths.name(target)))
    return connection.execute(
        f"SELECT {_COLUMNS} FROM links l JOIN files f ON f.id = l.file_id"
        " WHERE l.target_key IN (?, ?) OR (l.target = '' AND f.path = ?) ORDER BY f.path, l.rowid",
        (*keys, target),
    ).fetchall()


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
