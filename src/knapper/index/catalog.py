"""Find and list notes, files, folders and tags from the index alone: by name or by filter, in any order and by page."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from knapper.errors import StorageError
from knapper.index import database, documents
from knapper.index.documents import Filter, FilterMasks, SqlCondition, StateCache, folder_key, sees_all
from knapper.index.graph import Graph
from knapper.index.store import IndexStore
from knapper.index.tokenizer import segment
from knapper.index.words import fulltext
from knapper.index.words.fulltext import MatchPlace
from knapper.jsontypes import JSONValue, loads, object_or_empty
from knapper.system.arrays import np
from knapper.vault import files, links, paths
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray


Shows = Callable[[int], bool]
"""Tells from a file's id whether the client may see it."""


def find_named(connection: sqlite3.Connection, name: str, shows: Shows) -> list[NotePath]:
    """Return the visible files that a name may mean, by path.

    Those whose path ends with it come before the notes that have it as title or alias: these count only where there are
    none of the first kind.

    Args:
        connection: The index.
        name: A file's name with or without ``.md``, with or without folders; a title; an alias.
        shows: Asked for every file of that name, and for none besides.
    """

    def lookup(key: str) -> Sequence[NotePath]:
        rows = connection.execute("SELECT id, path FROM files WHERE name_key = ? ORDER BY path", (key,))
        return [NotePath(path) for i, path in rows if shows(i)]

    named = sorted(links.find_named(name, lookup))
    if named:
        return named
    # Titles are a note's first heading, where that is of level 1, and its property ``title``.
    key = paths.name_key(name.strip())
    ids = {int(i) for (i,) in connection.execute("SELECT file_id FROM aliases WHERE key = ?", (key,))}
    # The words of a name stand one after another.
    phrase = segment(name.replace('"', " ").replace("\0", " ")).strip()
    if any(map(str.isalnum, phrase)):
        rows = connection.execute("SELECT rowid FROM title_words WHERE title_words MATCH ?", (f'aliases : "{phrase}"',))
        ids |= {int(i) for (i,) in rows}
    visible_ids = [i for i in ids if shows(i)]
    rows = connection.execute(
        "SELECT path, title_row FROM files WHERE id IN (SELECT value FROM json_each(?)) ORDER BY path",
        (json.dumps(visible_ids),),
    )
    return [NotePath(path) for path, title_row in rows if key in _name_keys(title_row)]


def _name_keys(title_row: str) -> set[str]:
    """Return the folded names of a note: its file's, its aliases and its titles."""
    if not title_row:
        return set()
    *_, names = json.loads(title_row)
    return {paths.name_key(each.strip()) for each in str(names).split("\n")}


_MAX_LOOKUPS = 1_000
"""Files that are looked up one by one; for more it is quicker to scan all files that have the property."""
# The sign distinguishes texts from numbers; one concatenated text is read faster than many rows.
_PROPERTY_FILES_SQL = (
    "SELECT group_concat(id, ' ') FROM ("
    "SELECT CASE WHEN number IS NULL THEN -file_id ELSE file_id END AS id FROM properties WHERE {held} ORDER BY item)"
)
_PROPERTY_ITEMS_SQL = "SELECT COUNT(*), MAX(number) FROM properties WHERE {held} GROUP BY item ORDER BY item"


def sort_by_property(
    connection: sqlite3.Connection, ids: NDArray[np.int64], key: str, *, descending: bool = False
) -> NDArray[np.int64]:
    """Sort files by a property: numbers before texts, a list by its least element, files without it always last.

    Args:
        connection: A snapshot of the index.
        ids: The files, in the order that breaks ties.
        key: The property's folded name.
        descending: Sort numbers, and the texts after them, in descending order.
    """
    # The unary plus keeps SQLite from using the property's index, which would scan all of its rows.
    is_small_set = len(ids) <= _MAX_LOOKUPS
    condition_sql = "+key = ? AND file_id IN (SELECT value FROM json_each(?))" if is_small_set else "key = ?"
    parameters = (key, json.dumps(ids.tolist())) if is_small_set else (key,)
    file_text = connection.execute(_PROPERTY_FILES_SQL.format(held=condition_sql), parameters).fetchone()[0]
    items = connection.execute(_PROPERTY_ITEMS_SQL.format(held=condition_sql), parameters).fetchall()
    if not items:
        return ids
    signed_ids = np.fromstring(file_text, np.int64, sep=" ")
    ranks = np.full(max(np.abs(signed_ids).max(), ids.max(initial=0)) + 1, 2 * len(items))
    # Elements rank among the items: numbers by value and then by spelling, then texts, which may be spelled like one.
    counts, numbers = zip(*items, strict=True)
    by_number = np.empty(len(items), np.int64)
    by_number[np.argsort(np.array(numbers, np.float64), kind="stable")] = np.arange(len(items))
    items_of_elements = np.repeat(np.arange(len(items)), counts)
    element_ranks = np.where(signed_ids > 0, by_number[items_of_elements], len(items) + items_of_elements)
    np.minimum.at(ranks, np.abs(signed_ids), element_ranks)
    file_ranks = ranks[ids]
    if descending:
        # Those of numbers, and those of texts; files without the property stay last.
        range_sums = np.array([len(items) - 1, 3 * len(items) - 1, 4 * len(items)])
        file_ranks = range_sums[file_ranks // len(items)] - file_ranks
    return ids[np.argsort(file_ranks, kind="stable")]


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
    """The sort order of a listing."""

    by: SortKey = "path"
    descending: bool = False
    name: str = ""
    """Name of the property to sort by: numbers before texts, a list by its least element; files without it always
    come last."""

    @property
    def direction(self) -> str:
        """Return SQL's keyword."""
        return "DESC" if self.descending else "ASC"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingQuery:
    """A query for a page of files: which files, in which order."""

    where: Filter = field(default_factory=Filter)
    order: SortOrder = field(default_factory=SortOrder)
    among: Collection[int] | None = None
    """Only files with these ids; None for all."""
    limit: int = 100
    offset: int = 0

    @property
    def is_selective(self) -> bool:
        """Return whether a database index finds the files, so that only these have to be sorted."""
        return self.among is not None or documents.is_selective(self.where)


def listing_condition(listing: ListingQuery) -> SqlCondition:
    """Return the SQL condition on ``files f`` and its parameters; policy and ignore rules aren't part of it."""
    sql, parameters = documents.build_condition(listing.where)
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
        listing: The query; its own limit and offset are ignored.
        shows: Returns whether a path with its link target is visible; None shows all.
        limit: Maximum number; sorting by a property always returns all.
        offset: How many to skip.
    """
    if listing.order.by == "property":
        by_path = replace(listing, order=SortOrder(descending=listing.order.descending))
        path_order = np.array(select_ids(connection, by_path, shows=shows), np.int64)
        name = paths.name_key(listing.order.name)
        return sort_by_property(connection, path_order, name, descending=listing.order.descending).tolist()
    sql, parameters = listing_condition(listing)
    order_by = _SORT_SQL[listing.order.by].format(way=listing.order.direction)
    if listing.is_selective:
        # The unary plus makes SQLite sort the few matches instead of scanning all files in this order.
        order_by = f"+{order_by}"
    source_sql, parameters = (
        f"FROM files f WHERE {sql} ORDER BY {order_by} LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    if shows is not None:
        rows = connection.execute(f"SELECT f.id, f.path, f.target {source_sql}", parameters)
        return [int(i) for i, path, target in rows if shows(path, target)]
    # Read as one text, but not into an array: most listings need numpy for nothing else.
    ids_json = connection.execute(f"SELECT json_group_array(id) FROM (SELECT f.id AS id {source_sql})", parameters)
    return json.loads(ids_json.fetchone()[0])


_LAST_CHARACTER = "\U0010ffff"
"""Sorts after every other character."""
_TAG_SPELLINGS_SQL = (
    "SELECT key, name, COUNT(*), group_concat(file_id, ' ') FROM tags WHERE key >= ? AND key < ?"
    " GROUP BY key, name ORDER BY key, name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """The number of notes with a tag; tags that differ only in case are one."""

    name: str
    """The most frequent spelling."""
    notes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCounts:
    """A page of the tags, the most used first, and their total number."""

    tags: tuple[TagCount, ...]
    total: int


def count_tags(
    connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None, prefix: str, limit: int, offset: int
) -> TagCounts:
    """Count notes by tag; the most used first, then by name.

    Args:
        connection: To the index.
        allowed: Mask by file id; None counts all files.
        prefix: Folded prefix of the tags.
        limit: Maximum number of tags.
        offset: How many to skip.
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
    """Count the distinct files of each of *size* groups."""
    span = int(files.max(initial=0)) + 1
    pairs = np.sort(groups * span + files)
    return np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] // span, minlength=size)


_BELOW_FOLDER_SQL = "(f.folder_key = ? OR (f.folder_key >= ? AND f.folder_key < ?))"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCount:
    """The number of files in a folder and below it."""

    path: NotePath
    files: int


def count_folders(connection: sqlite3.Connection, condition: SqlCondition, below: str) -> list[FolderCount]:
    """Return the direct subfolders with matching files, and the number of those at any depth; by path.

    Args:
            connection: To the index.
            condition: Which files count.
            below: The parent folder; empty for the vault's own.
    """
    sql, parameters = condition
    counts: list[FolderCount] = []
    # The folded paths of the direct subfolders, skipping the contents of each.
    parent = folder_key(below)
    prefix = f"{parent}/" if parent else ""
    # "0" comes right after "/"
    stop = f"{parent}0" if parent else _LAST_CHARACTER
    folder_keys: dict[str, None] = {}
    after_key = prefix
    keys_sql = "SELECT MIN(folder_key) FROM files INDEXED BY files_folder WHERE folder_key > ? AND folder_key < ?"
    while (smallest := connection.execute(keys_sql, (after_key, stop)).fetchone()[0]) is not None:
        next_key = str(smallest)
        child = prefix + next_key[len(prefix) :].partition("/")[0]
        folder_keys[child] = None
        after_key = next_key if next_key == child else f"{child}/{_LAST_CHARACTER}"
    for key in folder_keys:
        row = connection.execute(
            f"SELECT MIN(f.path), COUNT(*) FROM files f INDEXED BY files_folder WHERE {sql} AND {_BELOW_FOLDER_SQL}",
            (*parameters, key, f"{key}/", f"{key}0"),
        ).fetchone()
        if row[1]:
            path = "/".join(str(row[0]).split("/")[: key.count("/") + 1])
            counts.append(FolderCount(path=NotePath(path), files=int(row[1])))
    return sorted(counts, key=lambda one: one.path)


_MAX_COMPARED_NAMES = 50_000
"""Names that are compared; more would make a mistyped path slow."""
_PATHS_PER_READ = 20
"""Paths that are read in one query: mostly, only the first few are shown."""


def find_similar_paths(connection: sqlite3.Connection, path: NotePath) -> Iterator[NotePath] | None:
    """Return the paths whose names resemble a path's own, the most similar first; None where no file is known.

    Args:
        connection: The index.
        path: The path that doesn't exist.
    """
    # As one text, separated by a character that no name holds; a folder's own names are always included.
    rows = (
        "SELECT id, name_key FROM files WHERE folder_key = ?"
        " UNION ALL SELECT id, name_key FROM files INDEXED BY files_name_key LIMIT ?"
    )
    names_sql = f"SELECT group_concat(id || '/' || name_key, '/') FROM ({rows})"
    parameters = (paths.name_key(paths.parent_folder(path)), _MAX_COMPARED_NAMES)
    names_parts = str(connection.execute(names_sql, parameters).fetchone()[0] or "").split("/")
    ids, stems = [int(i) for i in names_parts[::2] if i], [paths.stem(name) for name in names_parts[1::2]]
    if not ids:
        return None
    likeness = {ids[place]: score for score, place in files.score_stems(path, stems)}
    return _paths_by_likeness(connection, path, sorted(likeness.items(), key=lambda one: -one[1]))


def _paths_by_likeness(
    connection: sqlite3.Connection, path: NotePath, scored_ids: Sequence[tuple[int, float]]
) -> Generator[NotePath]:
    """Read paths by similarity in batches; equally similar ones belong together."""
    start = 0
    while start < len(scored_ids):
        least_likeness = scored_ids[min(start + _PATHS_PER_READ, len(scored_ids)) - 1][1]
        end = start + sum(1 for _, score in scored_ids[start:] if score >= least_likeness)
        scores = dict(scored_ids[start:end])
        rows = connection.execute(
            "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(scores)),)
        )
        yield from map(NotePath, files.order_by_likeness(path, [(scores[int(i)], str(path)) for i, path in rows]))
        start = end


_MAX_OFFSET = 2**62
_MAX_CACHED_ORDERS = 4
"""Property orders that are cached: after one page of a listing the next one is usually read."""
_ENTRY_COLUMNS = "id, path, target, title, kind, size, mtime_ns, hash, created, modified, properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A file in the index, without its text."""

    id: int
    path: NotePath
    target: str
    """The target of a symbolic link; empty for other files."""
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
    """The properties as JSON."""

    @property
    def properties(self) -> Mapping[str, JSONValue]:
        """Parse the properties; on demand, as most listings don't show them."""
        return object_or_empty(loads(self.raw_properties))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of the matching files."""

    entries: tuple[CatalogEntry, ...]
    total: int
    """Number of all matching files."""


class Catalog:
    """Thread-safe listings of files, folders and tags."""

    def __init__(
        self, store: IndexStore, graph: Graph, allowed: FilterMasks, by_rules: Callable[[Filter], Filter]
    ) -> None:
        """Use *store*; *by_rules* adds the vault's current ignore rules to a filter."""
        self._store = store
        self._graph = graph
        self._allowed = allowed
        self._by_rules = by_rules
        self._sorted: StateCache[Sequence[int]] = StateCache(_MAX_CACHED_ORDERS)

    def find(self, listing: ListingQuery) -> Listing:
        """Return a page of the matching files and their total number, with all filters in one query."""
        with self._store.database.snapshot() as connection:
            where = self._by_rules(listing.where)
            limit, offset = listing.limit, min(listing.offset, _MAX_OFFSET)
            if listing.order.by == "property" and not listing.is_selective:
                name = f"{listing.order!r}|{where.cache_key}"
                all_ids = self._sorted.get(connection, name, lambda: array("q", self._all(connection, listing, where)))
                ids, total = list(all_ids[offset : offset + limit]), len(all_ids)
            elif sees_all(where) and listing.order.by != "property":
                condition, parameters = listing_condition(listing)
                total = connection.execute(f"SELECT COUNT(*) FROM files f WHERE {condition}", parameters).fetchone()[0]
                ids = select_ids(connection, listing, limit=limit, offset=offset)
            else:
                all_ids = self._all(connection, listing, where)
                ids, total = all_ids[offset : offset + limit], len(all_ids)
            entries_by_id = _read_entries(connection, "id", ids)
            return Listing(entries=tuple(entries_by_id[i] for i in ids), total=total)

    def entries(self, paths: Sequence[NotePath]) -> dict[NotePath, CatalogEntry]:
        """Return files by path, without those that aren't in the index."""
        entries_by_id = _read_entries(self._store.database.reader(), "path", paths)
        return {entry.path: entry for entry in entries_by_id.values()}

    def similar_paths(self, path: NotePath) -> Iterable[NotePath] | None:
        """Return the paths whose names resemble a missing one, best first; None where the index can't be read."""
        try:
            return find_similar_paths(self._store.database.reader(), path)
        except (sqlite3.DatabaseError, StorageError):
            # Only suggestions are lost: that the path doesn't exist is known without the index.
            return None

    def files_named(self, name: str, where: Filter) -> list[NotePath]:
        """Return the files among *where* that a name may mean, as `knapper.index.catalog.find_named` does.

        A hidden file costs as much time as none: its id is looked up in a mask, and no rule is matched.
        """
        with self._store.database.snapshot() as connection:
            allowed = self._allowed.mask(connection, self._by_rules(where))
            return find_named(connection, name, lambda i: allowed is None or bool(allowed[i]))

    def is_set(self, name: str, where: Filter) -> bool:
        """Return whether a visible file of the kinds in *where* has a property."""
        shows = self._allowed.visibility.predicate(self._by_rules(where))
        rows = self._store.database.reader().execute(
            "SELECT f.path, f.target FROM properties p JOIN files f ON f.id = p.file_id"
            " WHERE p.key = ? AND f.kind IN (SELECT value FROM json_each(?))",
            (paths.name_key(name), json.dumps(where.kinds)),
        )
        return any(shows(path, target) for path, target in rows)

    def by_ids(self, ids: Sequence[int]) -> list[CatalogEntry]:
        """Return files by id in the given order, without those that were removed."""
        entries_by_id = _read_entries(self._store.database.reader(), "id", ids)
        return [entries_by_id[i] for i in ids if i in entries_by_id]

    def aliases(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Return files' aliases as written in the notes."""
        return _group_by_file(self._store.database.reader(), "SELECT file_id, alias FROM aliases", ids)

    def tags(self, ids: Sequence[int]) -> dict[int, list[str]]:
        """Return files' tags, each once, in order of position."""
        names_by_file = _group_by_file(self._store.database.reader(), "SELECT file_id, name FROM tags", ids)
        return {
            i: list({paths.name_key(name): name for name in reversed(names)}.values())[::-1]
            for i, names in names_by_file.items()
        }

    def first_texts(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the first text of files, after their properties."""
        connection = self._store.database.reader()
        sql = (
            "SELECT text FROM chunks WHERE id >= ? AND id < ? AND kind NOT IN ('frontmatter', 'log')"
            " ORDER BY position LIMIT 1"
        )
        rows = ((i, connection.execute(sql, database.chunk_range(i)).fetchone()) for i in ids)
        return {i: str(row[0]) for i, row in rows if row}

    def folders(self, where: Filter, below: str) -> list[FolderCount]:
        """Return the direct subfolders with matching files, and the number of those at any depth; by path."""
        with self._store.database.snapshot() as connection:
            wanted = self._by_rules(where)
            condition, parameters = documents.build_condition(wanted)
            shows = self._allowed.visibility.register(connection, wanted)
            return count_folders(connection, (f"{condition} AND {shows}" if shows else condition, parameters), below)

    def tag_counts(self, where: Filter, *, prefix: str = "", limit: int = 100, offset: int = 0) -> TagCounts:
        """Count the notes of each tag that begins with *prefix*, folded; the most used first."""
        with self._store.database.snapshot() as connection:
            allowed = self._allowed.mask(connection, self._by_rules(where))
            return count_tags(connection, allowed, prefix, limit, offset)

    def match_places(self, text: str, ids: Sequence[int]) -> dict[int, MatchPlace]:
        """Return for each file where the words of a query match."""
        return fulltext.find_match_places(self._store.database.reader(), text, ids)

    def broken(self, where: Filter, below: str = "") -> list[int]:
        """Return the rows of broken links by source and position; files that don't match *where* count as missing.

        Args:
            where: The files that count as existing.
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
        """Return the notes without any link to or from another matching file, by path."""
        with self._store.database.snapshot() as connection:
            return self._graph.link_ends.get().orphans(self._allowed.mask(connection, self._by_rules(where)))

    def around(
        self, path: NotePath, where: Filter, *, depth: int, limit: int
    ) -> tuple[dict[NotePath, int], list[tuple[NotePath, NotePath]], bool]:
        """Follow links both ways between matching files; see `knapper.index.graph.LinkEnds.around`."""
        with self._store.database.snapshot() as connection:
            visible = self._allowed.mask(connection, self._by_rules(where))
            row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
            if row is None:
                return {path: 0}, [], True
            start = int(row[0])
            steps, links, is_complete = self._graph.link_ends.get().around(
                start, depth=depth, limit=limit, visible=visible
            )
            sql = "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))"
            paths_of = {int(i): NotePath(found) for i, found in connection.execute(sql, (json.dumps(list(steps)),))}
        return (
            {paths_of[i]: step for i, step in steps.items() if i in paths_of},
            [(paths_of[one], paths_of[other]) for one, other in links if one in paths_of and other in paths_of],
            is_complete,
        )

    def links_between(self, paths: Sequence[NotePath], where: Filter) -> list[tuple[NotePath, NotePath]]:
        """Return the links between some files, by path; see `knapper.index.graph.LinkEnds.between`."""
        with self._store.database.snapshot() as connection:
            visible = self._allowed.mask(connection, self._by_rules(where))
            sql = "SELECT id, path FROM files WHERE path IN (SELECT value FROM json_each(?))"
            rows = connection.execute(sql, (json.dumps(list(paths), ensure_ascii=False),))
            paths_of = {int(i): NotePath(found) for i, found in rows}
            links = self._graph.link_ends.get().between(list(paths_of), visible=visible)
        return [(paths_of[one], paths_of[other]) for one, other in links]

    def _all(self, connection: sqlite3.Connection, listing: ListingQuery, where: Filter) -> list[int]:
        """Return the ids of all matching files, in order."""
        if sees_all(where):
            return select_ids(connection, listing)
        # Few files match, so checking each path by itself costs less than a query over all.
        if listing.is_selective:
            return select_ids(connection, listing, shows=self._allowed.visibility.predicate(where))
        mask = self._allowed.mask(connection, Filter(policy=where.policy, ignore=where.ignore))
        return [i for i in select_ids(connection, listing) if mask is None or mask[i]]


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
