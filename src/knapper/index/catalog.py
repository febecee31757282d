"""List the files that pass a filter, in any order and in stretches, from the index alone."""

import json
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from knapper.errors import StorageError
from knapper.index import alike, conditions, folder_counts, places, schema, stretches, tag_counts
from knapper.index.allowed import Allowed
from knapper.index.filters import Filter
from knapper.index.folder_counts import FolderCount
from knapper.index.graph import Graph
from knapper.index.places import Place
from knapper.index.remembered import Remembered
from knapper.index.sight import is_open
from knapper.index.store import Store
from knapper.index.stretches import Stretch
from knapper.index.tag_counts import TagCounts
from knapper.jsontypes import JSONValue
from knapper.vault import paths
from knapper.vault.paths import NotePath

_LARGEST = 2**62
_SORTS = 4
"""Orders by a property that are remembered, since who reads one page of it reads the next."""
_COLUMNS = "id, path, target, title, kind, size, mtime_ns, hash, created, modified, properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Hold what the index knows of a file beside its text."""

    id: int
    path: NotePath
    target: str
    """Where the bytes lie, for a symbolic link; empty for others."""
    title: str
    kind: str
    size: int
    mtime_ns: int
    hash: str
    """Empty for attachments."""
    created: str
    """ISO date, as is ``modified``."""
    modified: str
    raw_properties: str
    """As JSON."""

    @property
    def properties(self) -> Mapping[str, JSONValue]:
        """Read the properties, which most lists don't show."""
        return cast("dict[str, JSONValue]", json.loads(self.raw_properties))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Hold a stretch of the files that pass."""

    entries: tuple[Entry, ...]
    total: int
    """Of all that pass."""


class Catalog:
    """Answer what is known of files; any thread may ask."""

    def __init__(self, store: Store, graph: Graph, allowed: Allowed, by_rules: Callable[[Filter], Filter]) -> None:
        """Ask *store*; *by_rules* adds to a filter what the vault's rules hide by now."""
        self._store = store
        self._graph = graph
        self._allowed = allowed
        self._by_rules = by_rules
        self._sorted: Remembered[Sequence[int]] = Remembered(_SORTS)

    def find(self, wanted: Stretch) -> Listing:
        """Give a stretch of the files that pass, and how many pass: all filters in one query."""
        with self._store.database.snapshot() as connection:
            ids, total = self._ids(connection, wanted)
            found = _entries(connection, "id", ids)
            return Listing(entries=tuple(found[i] for i in ids), total=total)

    def entries(self, wanted: Sequence[NotePath]) -> dict[NotePath, Entry]:
        """Give what is known of files by path; those that the index doesn't know are left out."""
        found = _entries(self._store.database.reader(), "path", wanted)
        return {entry.path: entry for entry in found.values()}

    def alike(self, path: NotePath) -> Iterable[NotePath] | None:
        """Give the paths whose names are like one that isn't there, best first; None where the index can't tell."""
        try:
            return alike.names(self._store.database.reader(), path)
        except (sqlite3.DatabaseError, StorageError):  # that a path isn't there is known without the index
            return None

    def is_set(self, name: str, where: Filter) -> bool:
        """Tell whether a file of a kind that *where* names, and that its rules show, has a property."""
        shows = self._allowed.sight.of(self._by_rules(where))
        rows = self._store.database.reader().execute(
            "SELECT f.path, f.target FROM properties p JOIN files f ON f.id = p.file_id"
            " WHERE p.key = ? AND f.kind IN (SELECT value FROM json_each(?))",
            (paths.name_key(name), json.dumps(where.kinds)),
        )
        return any(shows(path, target) for path, target in rows)

    def by_ids(self, ids: Sequence[int]) -> list[Entry]:
        """Give what is known of files by id, in the order asked; those that are gone are left out."""
        found = _entries(self._store.database.reader(), "id", ids)
        return [found[i] for i in ids if i in found]

    def aliases(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Give files' other names, as they stand in the note."""
        return _grouped(self._store.database.reader(), "SELECT file_id, alias FROM aliases", ids)

    def tags(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Give files' tags, each once, in order of place."""
        found = _grouped(self._store.database.reader(), "SELECT file_id, name FROM tags", ids)
        return {
            i: list({paths.name_key(name): name for name in reversed(names)}.values())[::-1]
            for i, names in found.items()
        }

    def firsts(self, ids: Sequence[int]) -> dict[int, str]:
        """Give the text that files begin with, properties aside."""
        connection = self._store.database.reader()
        sql = (
            "SELECT text FROM chunks WHERE id >= ? AND id < ? AND kind NOT IN ('frontmatter', 'log')"
            " ORDER BY position LIMIT 1"
        )
        rows = ((i, connection.execute(sql, schema.chunk_range(i)).fetchone()) for i in ids)
        return {i: str(row[0]) for i, row in rows if row}

    def folders(self, where: Filter, below: str) -> list[FolderCount]:
        """Give the folders right below one that hold files that pass, with how many at any depth; by path."""
        with self._store.database.snapshot() as connection:
            return folder_counts.count(connection, self._condition(connection, where), below)

    def tag_counts(self, where: Filter, *, prefix: str = "", limit: int = 100, offset: int = 0) -> TagCounts:
        """Count the notes of each tag that begins with *prefix*, folded; the most used first."""
        with self._store.database.snapshot() as connection:
            allowed = self._allowed.mask(connection, self._by_rules(where))
            return tag_counts.count(connection, allowed, prefix, limit, offset)

    def places(self, text: str, ids: Sequence[int]) -> dict[int, Place]:
        """Tell of each file where the words of a query stand."""
        return places.of(self._store.database.reader(), text, ids)

    def broken(self, where: Filter, below: str = "") -> list[int]:
        """Give the rows of links that lead nowhere, by source and place; only what passes is there.

        Args:
            where: Which files are there.
            below: Only links in the note of this path, or below this folder; empty for all.
        """
        with self._store.database.snapshot() as connection:
            shown = self._allowed.mask(connection, self._by_rules(where))
            ends = self._graph.connections.get()
            if not below:
                return ends.broken(shown)
            here = (Filter(folders=(below,)), Filter(paths=(below, f"{below}.md")))
            masks = [mask for each in here if (mask := self._allowed.mask(connection, each)) is not None]
            return ends.broken(shown, np.logical_or.reduce(masks))

    def alone(self, where: Filter) -> list[NotePath]:
        """Give the notes without any link to or from another file, by path; only what passes is there."""
        with self._store.database.snapshot() as connection:
            return self._graph.connections.get().alone(self._allowed.mask(connection, self._by_rules(where)))

    def _ids(self, connection: sqlite3.Connection, wanted: Stretch) -> tuple[list[int], int]:
        """Give the stretch's ids, and how many files pass."""
        where = self._by_rules(wanted.where)
        limit, offset = wanted.limit, min(wanted.offset, _LARGEST)
        if wanted.order.by == "property" and not wanted.is_few:
            name = f"{wanted.order!r}|{where.cache_key}"
            ids = self._sorted.get(connection, name, lambda: array("q", self._all(connection, wanted, where)))
            return list(ids[offset : offset + limit]), len(ids)
        if is_open(where) and wanted.order.by != "property":
            condition, parameters = stretches.condition(wanted)
            total = connection.execute(f"SELECT COUNT(*) FROM files f WHERE {condition}", parameters).fetchone()[0]
            return stretches.ids(connection, wanted, limit=limit, offset=offset), int(total)
        ids = self._all(connection, wanted, where)
        return ids[offset : offset + limit], len(ids)

    def _all(self, connection: sqlite3.Connection, wanted: Stretch, where: Filter) -> list[int]:
        """Give the ids of all files that pass, in order."""
        if is_open(where):
            return stretches.ids(connection, wanted)
        if wanted.is_few:  # each is looked at by itself, so that it costs only as much as there are
            return stretches.ids(connection, wanted, shows=self._allowed.sight.of(where))
        mask = self._allowed.mask(connection, Filter(policy=where.policy, ignore=where.ignore))
        return [i for i in stretches.ids(connection, wanted) if mask is None or mask[i]]

    def _condition(self, connection: sqlite3.Connection, where: Filter) -> tuple[str, list[str]]:
        wanted = self._by_rules(where)
        condition, parameters = conditions.select(wanted)
        shows = self._allowed.sight.teach(connection, wanted)
        return f"{condition} AND {shows}" if shows else condition, parameters


def _entries(connection: sqlite3.Connection, column: str, values: Sequence[int] | Sequence[str]) -> dict[int, Entry]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM files WHERE {column} IN (SELECT value FROM json_each(?))",
        (json.dumps(values, ensure_ascii=False),),
    )
    return {
        int(i): Entry(
            id=int(i),
            path=NotePath(path),
            target=target,
            title=title,
            kind=kind,
            size=int(size),
            mtime_ns=int(mtime_ns),
            hash=digest,
            created=created,
            modified=modified,
            raw_properties=properties,
        )
        for i, path, target, title, kind, size, mtime_ns, digest, created, modified, properties in rows
    }


def _grouped(connection: sqlite3.Connection, sql: str, ids: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    rows = connection.execute(
        f"{sql} WHERE file_id IN (SELECT value FROM json_each(?)) ORDER BY file_id, rowid", (json.dumps(list(ids)),)
    )
    for i, text in rows:
        found.setdefault(int(i), []).append(str(text))
    return found
