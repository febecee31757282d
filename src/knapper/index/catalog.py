"""List files, folders and tags that pass a filter, in any order and by page, from the index alone."""

import json
import sqlite3
from array import array
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from knapper.errors import StorageError
from knapper.index import database, filters, fulltext
from knapper.index.database import StateCache
from knapper.index.filters import Filter, FilterMasks, SqlCondition, folder_key, sees_all
from knapper.index.fulltext import MatchPlace
from knapper.index.graph import Graph
from knapper.index.store import IndexStore
from knapper.jsontypes import JSONValue
from knapper.vault import files, paths
from knapper.vault.paths import NotePath

_MAX_LOOKUPS = 1_000
"""Files that are looked up one by one; of more it is quicker to go through all that hold the property."""
_PROPERTY_FILES_SQL = (
    "SELECT group_concat(id, ' ') FROM ("
    "SELECT CASE WHEN number IS NULL THEN -file_id ELSE file_id END AS id FROM properties WHERE {held} ORDER BY item)"
)  # the sign tells texts from numbers, and one text is quicker than row after row
_PROPERTY_ITEMS_SQL = "SELECT COUNT(*), MAX(number) FROM properties WHERE {held} GROUP BY item ORDER BY item"


def sort_by_property(
    connection: sqlite3.Connection, ids: NDArray[np.int64], key: str, *, descending: bool = False
) -> NDArray[np.int64]:
    """Sort files by a property: numbers before texts, a list by its least element, files without it last either way.

    Args:
        connection: The index, in one state.
        ids: The files, in the order that those with equal values keep.
        key: The property's folded name.
        descending: Whether numbers go down, and so do texts after them.
    """
    is_small_set = len(ids) <= _MAX_LOOKUPS  # the plus keeps SQLite from going through all of the property for them
    condition_sql = "+key = ? AND file_id IN (SELECT value FROM json_each(?))" if is_small_set else "key = ?"
    parameters = (key, json.dumps(ids.tolist())) if is_small_set else (key,)
    file_text = connection.execute(_PROPERTY_FILES_SQL.format(held=condition_sql), parameters).fetchone()[0]
    items = connection.execute(_PROPERTY_ITEMS_SQL.format(held=condition_sql), parameters).fetchall()
    if not items:
        return ids
    signed_ids = np.fromstring(file_text, np.int64, sep=" ")
    ranks = np.full(max(np.abs(signed_ids).max(), ids.max(initial=0)) + 1, 2 * len(items))
    np.minimum.at(ranks, np.abs(signed_ids), _rank_elements(signed_ids > 0, items))
    return ids[np.argsort(_reverse_ranks(ranks[ids], len(items)) if descending else ranks[ids], kind="stable")]


def _rank_elements(numeric: NDArray[np.bool_], items: list[tuple[int, float | None]]) -> NDArray[np.int64]:
    """Return each element's place among the items: numbers first, by number and then as they are written, then texts.

    Args:
        numeric: Tells of each element, in order of its item, whether it is a number; a text may be written like one.
        items: Of each: how many elements are written so, and the number that they stand for.
    """
    counts, numbers = zip(*items, strict=True)
    by_number = np.empty(len(items), np.int64)
    by_number[np.argsort(np.array(numbers, np.float64), kind="stable")] = np.arange(len(items))
    items_of_elements = np.repeat(np.arange(len(items)), counts)
    return np.where(numeric, by_number[items_of_elements], len(items) + items_of_elements)


def _reverse_ranks(ranks: NDArray[np.int64], items: int) -> NDArray[np.int64]:
    """Turn the places of numbers round, and those of texts; files without the property stay last."""
    range_sums = np.array([items - 1, 3 * items - 1, 4 * items])
    return range_sums[ranks // items] - ranks


IsVisible = Callable[[str, str], bool]
SortKey = Literal["path", "title", "created", "modified", "size", "property"]
_SORT_SQL: Mapping[SortKey, str] = {
    "path": "f.path {way}",
    "title": "f.name_key {way}, f.path {way}",
    "created": "f.created {way}, f.path {way}",
    "modified": "f.mtime_ns {way}, f.path {way}",
    "size": "f.size {way}, f.path {way}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """Say how files are sorted."""

    by: SortKey = "path"
    descending: bool = False
    name: str = ""
    """The property's, where it is sorted by one: numbers before texts, a list by its least element; files without it
    come last either way."""

    @property
    def direction(self) -> str:
        """Return SQL's word."""
        return "DESC" if self.descending else "ASC"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingQuery:
    """Say which files, in which order, and which stretch of them."""

    where: Filter = field(default_factory=Filter)
    order: SortOrder = field(default_factory=SortOrder)
    among: Collection[int] | None = None
    """Only files with these ids; None for all."""
    limit: int = 100
    offset: int = 0

    @property
    def is_selective(self) -> bool:
        """Return whether an index finds the files, so that only these are sorted."""
        return self.among is not None or filters.is_selective(self.where)


def listing_condition(listing: ListingQuery) -> SqlCondition:
    """Return the SQL condition on ``files f`` and its parameters; policy and ignore rules aren't part of it."""
    sql, parameters = filters.build_condition(listing.where)
    if listing.among is None:
        return sql, parameters
    return f"{sql} AND f.id IN (SELECT value FROM json_each(?))", [*parameters, json.dumps(list(listing.among))]


def select_ids(
    connection: sqlite3.Connection,
    listing: ListingQuery,
    *,
    shows: IsVisible | None = None,
    limit: int = -1,
    offset: int = 0,
) -> list[int]:
    """Return the ids of the files that meet the condition, in order.

    Args:
        connection: The index.
        listing: What is asked for; its own limit and offset aren't looked at.
        shows: Tells of a path, and what it leads to, whether it is shown; None shows all.
        limit: How many at most; a property's order always gives all.
        offset: How many are left out at the beginning.
    """
    if listing.order.by == "property":
        return _select_by_property(connection, listing, shows)
    sql, parameters = listing_condition(listing)
    order_by = _SORT_SQL[listing.order.by].format(way=listing.order.direction)
    if listing.is_selective:
        order_by = f"+{order_by}"  # so that SQLite sorts the few, and doesn't go through all in this order
    source_sql = f"FROM files f WHERE {sql} ORDER BY {order_by} LIMIT ? OFFSET ?"
    return _fetch_ids(connection, source_sql, (*parameters, limit, offset), shows)


def _select_by_property(connection: sqlite3.Connection, listing: ListingQuery, shows: IsVisible | None) -> list[int]:
    by_path = replace(listing, order=SortOrder(descending=listing.order.descending))
    path_order = np.array(select_ids(connection, by_path, shows=shows), np.int64)
    name = paths.name_key(listing.order.name)
    return sort_by_property(connection, path_order, name, descending=listing.order.descending).tolist()


def _fetch_ids(
    connection: sqlite3.Connection, source_sql: str, parameters: Sequence[object], shows: IsVisible | None
) -> list[int]:
    """Return the ids of an ordered question; as one text where all are shown, which is quicker than row after row."""
    if shows is not None:
        rows = connection.execute(f"SELECT f.id, f.path, f.target {source_sql}", parameters)
        return [int(i) for i, path, target in rows if shows(path, target)]
    id_text = connection.execute(f"SELECT group_concat(id, ' ') FROM (SELECT f.id AS id {source_sql})", parameters)
    return np.fromstring(id_text.fetchone()[0] or "", np.int64, sep=" ").tolist()


_LAST_CHARACTER = "\U0010ffff"
"""Comes after every other character."""
_TAG_SPELLINGS_SQL = (
    "SELECT key, name, COUNT(*), group_concat(file_id, ' ') FROM tags WHERE key >= ? AND key < ?"
    " GROUP BY key, name ORDER BY key, name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """Say how many notes have a tag; tags that only differ in case are one."""

    name: str
    """In the spelling that most notes use."""
    notes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCounts:
    """A stretch of the tags, the most used first, and how many there are."""

    tags: tuple[TagCount, ...]
    total: int


def count_tags(
    connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None, prefix: str, limit: int, offset: int
) -> TagCounts:
    """Count notes by tag; the most used first, then by name.

    Args:
        connection: To the index.
        allowed: By file id: whether it counts; None counts all.
        prefix: What the tag begins with, folded.
        limit: How many tags at most.
        offset: How many are left out at the beginning.
    """
    rows = connection.execute(_TAG_SPELLINGS_SQL, (prefix, prefix + _LAST_CHARACTER)).fetchall()
    numbers: dict[str, int] = {}
    tags = np.array([numbers.setdefault(str(key), len(numbers)) for key, *_ in rows], np.int64)
    files = np.fromstring(" ".join(row[3] for row in rows), np.int64, sep=" ")
    spellings = np.repeat(np.arange(len(rows)), [int(row[2]) for row in rows])
    if allowed is not None:
        files, spellings = files[allowed[files]], spellings[allowed[files]]
    spelling_uses = _count_distinct_files(spellings, files, len(rows))
    notes = _count_distinct_files(tags[spellings], files, len(numbers))
    used_tags = np.argsort(-notes, kind="stable")[: np.count_nonzero(notes)].tolist()
    page = np.array(used_tags[offset : offset + limit], np.int64)
    page_ranges = zip(np.searchsorted(tags, page).tolist(), np.searchsorted(tags, page, "right").tolist(), strict=True)
    names = [rows[first + int(np.argmax(spelling_uses[first:end]))][1] for first, end in page_ranges]
    tag_totals = zip(names, notes[page].tolist(), strict=True)
    return TagCounts(tags=tuple(TagCount(name=str(name), notes=n) for name, n in tag_totals), total=len(used_tags))


def _count_distinct_files(groups: NDArray[np.int64], files: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Count the files of each of *size* groups, each file once a group."""
    span = int(files.max(initial=0)) + 1
    pairs = np.sort(groups * span + files)
    return np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] // span, minlength=size)


_BELOW_FOLDER_SQL = "(f.folder_key = ? OR (f.folder_key >= ? AND f.folder_key < ?))"
_HIGHEST_CHARACTER = "\U0010ffff"
"""Comes after every other character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCount:
    """Say how many files lie in a folder and below it."""

    path: NotePath
    files: int


def count_folders(connection: sqlite3.Connection, condition: SqlCondition, below: str) -> list[FolderCount]:
    """Return the folders right below one that hold files that pass, with how many at any depth; by path.

    Args:
        connection: To the index.
        condition: Which files count.
        below: The folder; empty for the vault's own.
    """
    sql, parameters = condition
    counts: list[FolderCount] = []
    for key in _child_folders(connection, folder_key(below)):
        row = connection.execute(
            f"SELECT MIN(f.path), COUNT(*) FROM files f INDEXED BY files_folder WHERE {sql} AND {_BELOW_FOLDER_SQL}",
            (*parameters, key, f"{key}/", f"{key}0"),
        ).fetchone()
        if row[1]:
            path = "/".join(str(row[0]).split("/")[: key.count("/") + 1])
            counts.append(FolderCount(path=NotePath(path), files=int(row[1])))
    return sorted(counts, key=lambda one: one.path)


def _child_folders(connection: sqlite3.Connection, below: str) -> list[str]:
    """Find the folded paths of the folders right below one, leaping over what lies in each."""
    prefix = f"{below}/" if below else ""
    stop = f"{below}0" if below else _HIGHEST_CHARACTER  # "0" comes right after "/"
    folder_keys: dict[str, None] = {}
    after_key = prefix
    sql = "SELECT MIN(folder_key) FROM files INDEXED BY files_folder WHERE folder_key > ? AND folder_key < ?"
    while (row := connection.execute(sql, (after_key, stop)).fetchone()[0]) is not None:
        key = str(row)
        child = prefix + key[len(prefix) :].partition("/")[0]
        folder_keys[child] = None
        after_key = key if key == child else f"{child}/{_HIGHEST_CHARACTER}"
    return list(folder_keys)


_MAX_COMPARED_NAMES = 50_000
"""Names beyond which a mistyped path would be slow."""
_PATHS_PER_READ = 20
"""Paths that are read at once: most often the first few are those that are shown."""


def find_similar_paths(connection: sqlite3.Connection, path: NotePath) -> Iterator[NotePath] | None:
    """Return the paths whose names are like a path's own, the most like first; None where no file is known.

    Args:
        connection: The index.
        path: What was asked for, and isn't there.
    """
    ids, stems = _read_stems(connection, paths.name_key(paths.parent_folder(path)))
    if not ids:
        return None
    likeness = {ids[place]: score for score, place in files.score_stems(path, stems)}
    return _paths_by_likeness(connection, path, sorted(likeness.items(), key=lambda one: -one[1]))


def _paths_by_likeness(
    connection: sqlite3.Connection, path: NotePath, scored_ids: Sequence[tuple[int, float]]
) -> Generator[NotePath]:
    """Read paths by likeness, some at once; those that are equally like belong together."""
    start = 0
    while start < len(scored_ids):
        least_likeness = scored_ids[min(start + _PATHS_PER_READ, len(scored_ids)) - 1][1]
        end = start + sum(1 for _, score in scored_ids[start:] if score >= least_likeness)
        yield from map(NotePath, files.order_by_likeness(path, _read_paths(connection, dict(scored_ids[start:end]))))
        start = end


def _read_stems(connection: sqlite3.Connection, folder_key: str) -> tuple[Sequence[int], Sequence[str]]:
    """Read names as one text, with what no name holds between them; a folder's own are always among them."""
    rows = (
        "SELECT id, name_key FROM files WHERE folder_key = ?"
        " UNION ALL SELECT id, name_key FROM files INDEXED BY files_name_key LIMIT ?"
    )
    names_sql = f"SELECT group_concat(id || '/' || name_key, '/') FROM ({rows})"
    names_parts = str(connection.execute(names_sql, (folder_key, _MAX_COMPARED_NAMES)).fetchone()[0] or "").split("/")
    return [int(i) for i in names_parts[::2] if i], [paths.stem(name) for name in names_parts[1::2]]


def _read_paths(connection: sqlite3.Connection, scores: dict[int, float]) -> list[tuple[float, str]]:
    rows = connection.execute(
        "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(scores)),)
    )
    return [(scores[int(i)], str(path)) for i, path in rows]


_MAX_OFFSET = 2**62
_MAX_CACHED_ORDERS = 4
"""Orders by a property that are remembered, since who reads one page of it reads the next."""
_ENTRY_COLUMNS = "id, path, target, title, kind, size, mtime_ns, hash, created, modified, properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """What the index knows of a file beside its text."""

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
    """A stretch of the files that pass."""

    entries: tuple[CatalogEntry, ...]
    total: int
    """Of all that pass."""


class Catalog:
    """Answer what is known of files; any thread may ask."""

    def __init__(
        self, store: IndexStore, graph: Graph, allowed: FilterMasks, by_rules: Callable[[Filter], Filter]
    ) -> None:
        """Ask *store*; *by_rules* adds to a filter what the vault's rules hide by now."""
        self._store = store
        self._graph = graph
        self._allowed = allowed
        self._by_rules = by_rules
        self._sorted: StateCache[Sequence[int]] = StateCache(_MAX_CACHED_ORDERS)

    def find(self, listing: ListingQuery) -> Listing:
        """Return a stretch of the files that pass, and how many pass: all filters in one query."""
        with self._store.database.snapshot() as connection:
            ids, total = self._ids(connection, listing)
            entries_by_id = _read_entries(connection, "id", ids)
            return Listing(entries=tuple(entries_by_id[i] for i in ids), total=total)

    def entries(self, paths: Sequence[NotePath]) -> dict[NotePath, CatalogEntry]:
        """Return what is known of files by path; those that the index doesn't know are left out."""
        entries_by_id = _read_entries(self._store.database.reader(), "path", paths)
        return {entry.path: entry for entry in entries_by_id.values()}

    def similar_paths(self, path: NotePath) -> Iterable[NotePath] | None:
        """Return the paths whose names are like one that isn't there, best first; None where the index can't tell."""
        try:
            return find_similar_paths(self._store.database.reader(), path)
        except (sqlite3.DatabaseError, StorageError):  # that a path isn't there is known without the index
            return None

    def is_set(self, name: str, where: Filter) -> bool:
        """Return whether a file of a kind that *where* names, and that its rules show, has a property."""
        shows = self._allowed.visibility.predicate(self._by_rules(where))
        rows = self._store.database.reader().execute(
            "SELECT f.path, f.target FROM properties p JOIN files f ON f.id = p.file_id"
            " WHERE p.key = ? AND f.kind IN (SELECT value FROM json_each(?))",
            (paths.name_key(name), json.dumps(where.kinds)),
        )
        return any(shows(path, target) for path, target in rows)

    def by_ids(self, ids: Sequence[int]) -> list[CatalogEntry]:
        """Return what is known of files by id, in the order asked; those that are gone are left out."""
        entries_by_id = _read_entries(self._store.database.reader(), "id", ids)
        return [entries_by_id[i] for i in ids if i in entries_by_id]

    def aliases(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Return files' other names, as they stand in the note."""
        return _group_by_file(self._store.database.reader(), "SELECT file_id, alias FROM aliases", ids)

    def tags(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Return files' tags, each once, in order of place."""
        names_by_file = _group_by_file(self._store.database.reader(), "SELECT file_id, name FROM tags", ids)
        return {
            i: list({paths.name_key(name): name for name in reversed(names)}.values())[::-1]
            for i, names in names_by_file.items()
        }

    def first_texts(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the text that files begin with, properties aside."""
        connection = self._store.database.reader()
        sql = (
            "SELECT text FROM chunks WHERE id >= ? AND id < ? AND kind NOT IN ('frontmatter', 'log')"
            " ORDER BY position LIMIT 1"
        )
        rows = ((i, connection.execute(sql, database.chunk_range(i)).fetchone()) for i in ids)
        return {i: str(row[0]) for i, row in rows if row}

    def folders(self, where: Filter, below: str) -> list[FolderCount]:
        """Return the folders right below one that hold files that pass, with how many at any depth; by path."""
        with self._store.database.snapshot() as connection:
            return count_folders(connection, self._condition(connection, where), below)

    def tag_counts(self, where: Filter, *, prefix: str = "", limit: int = 100, offset: int = 0) -> TagCounts:
        """Count the notes of each tag that begins with *prefix*, folded; the most used first."""
        with self._store.database.snapshot() as connection:
            allowed = self._allowed.mask(connection, self._by_rules(where))
            return count_tags(connection, allowed, prefix, limit, offset)

    def match_places(self, text: str, ids: Sequence[int]) -> dict[int, MatchPlace]:
        """Return of each file where the words of a query stand."""
        return fulltext.find_match_places(self._store.database.reader(), text, ids)

    def broken(self, where: Filter, below: str = "") -> list[int]:
        """Return the rows of links that lead nowhere, by source and place; only what passes is there.

        Args:
            where: Which files are there.
            below: Only links in the note of this path, or below this folder; empty for all.
        """
        with self._store.database.snapshot() as connection:
            visible = self._allowed.mask(connection, self._by_rules(where))
            link_ends = self._graph.link_ends.get()
            if not below:
                return link_ends.broken(visible)
            below_filters = (Filter(folders=(below,)), Filter(paths=(below, f"{below}.md")))
            masks = [
                mask
                for below_filter in below_filters
                if (mask := self._allowed.mask(connection, below_filter)) is not None
            ]
            return link_ends.broken(visible, np.logical_or.reduce(masks))

    def orphans(self, where: Filter) -> list[NotePath]:
        """Return the notes without any link to or from another file, by path; only what passes is there."""
        with self._store.database.snapshot() as connection:
            return self._graph.link_ends.get().orphans(self._allowed.mask(connection, self._by_rules(where)))

    def _ids(self, connection: sqlite3.Connection, listing: ListingQuery) -> tuple[list[int], int]:
        """Return the stretch's ids, and how many files pass."""
        where = self._by_rules(listing.where)
        limit, offset = listing.limit, min(listing.offset, _MAX_OFFSET)
        if listing.order.by == "property" and not listing.is_selective:
            name = f"{listing.order!r}|{where.cache_key}"
            ids = self._sorted.get(connection, name, lambda: array("q", self._all(connection, listing, where)))
            return list(ids[offset : offset + limit]), len(ids)
        if sees_all(where) and listing.order.by != "property":
            condition, parameters = listing_condition(listing)
            total = connection.execute(f"SELECT COUNT(*) FROM files f WHERE {condition}", parameters).fetchone()[0]
            return select_ids(connection, listing, limit=limit, offset=offset), int(total)
        ids = self._all(connection, listing, where)
        return ids[offset : offset + limit], len(ids)

    def _all(self, connection: sqlite3.Connection, listing: ListingQuery, where: Filter) -> list[int]:
        """Return the ids of all files that pass, in order."""
        if sees_all(where):
            return select_ids(connection, listing)
        if listing.is_selective:  # each is looked at by itself, so that it costs only as much as there are
            return select_ids(connection, listing, shows=self._allowed.visibility.predicate(where))
        mask = self._allowed.mask(connection, Filter(policy=where.policy, ignore=where.ignore))
        return [i for i in select_ids(connection, listing) if mask is None or mask[i]]

    def _condition(self, connection: sqlite3.Connection, where: Filter) -> tuple[str, list[str]]:
        wanted = self._by_rules(where)
        condition, parameters = filters.build_condition(wanted)
        shows = self._allowed.visibility.register(connection, wanted)
        return f"{condition} AND {shows}" if shows else condition, parameters


def _read_entries(
    connection: sqlite3.Connection, column: str, values: Sequence[int] | Sequence[str]
) -> dict[int, CatalogEntry]:
    rows = connection.execute(
        f"SELECT {_ENTRY_COLUMNS} FROM files WHERE {column} IN (SELECT value FROM json_each(?))",
        (json.dumps(values, ensure_ascii=False),),
    )
    return {
        int(i): CatalogEntry(
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


def _group_by_file(connection: sqlite3.Connection, sql: str, ids: Sequence[int]) -> dict[int, list[str]]:
    texts_by_file: dict[int, list[str]] = {}
    rows = connection.execute(
        f"{sql} WHERE file_id IN (SELECT value FROM json_each(?)) ORDER BY file_id, rowid", (json.dumps(list(ids)),)
    )
    for i, text in rows:
        texts_by_file.setdefault(int(i), []).append(str(text))
    return texts_by_file
