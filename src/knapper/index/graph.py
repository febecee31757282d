"""Resolve links between files: where each leads, kept up to date name by name; outgoing, incoming and broken ones."""

from __future__ import annotations

import sqlite3
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from knapper.index import database, documents
from knapper.index.documents import FileState
from knapper.index.store import ONLY_TOUCHED, IndexStore
from knapper.system.arrays import np
from knapper.vault import links, paths
from knapper.vault.links import PreparedTarget
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray


FileIds: TypeAlias = "NDArray[np.int64]"
FileMask: TypeAlias = "NDArray[np.bool_]"

_LINKS_SQL: Final = "SELECT rowid, file_id, target FROM links WHERE kind != 'external' AND target != ''"
_MAX_CHANGES: Final = 2_000
"""Changed files and names up to which the links are brought up to date, instead of being read again."""
_FOLDER_KEYS: Final = ("", ".", "..")
"""Keys of targets that end in a folder, such as ``../``: which name they look for depends on the note's folder."""
_KEPT_STATES: Final = 2
"""A thread may still read the state before the latest one."""


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
        return steps, _pairs_within(sources, targets, list(steps)), is_complete

    def between(self, ids: Sequence[int], *, visible: FileMask | None = None) -> list[tuple[int, int]]:
        """Return the links between some files, each pair once for each direction; only *visible* files count."""
        is_link = (self.targets != 0) & (self.targets != self.sources)
        if visible is not None:
            is_link &= visible[self.sources] & visible[self.targets]
        return _pairs_within(self.sources[is_link], self.targets[is_link], ids)


def _pairs_within(sources: FileIds, targets: FileIds, ids: Sequence[int]) -> list[tuple[int, int]]:
    within = np.isin(sources, ids) & np.isin(targets, ids)
    return sorted({*zip(sources[within].tolist(), targets[within].tolist(), strict=True)})


class LinkEndsCache:
    """A thread-safe cache of the ends of all links.

    After a change of the index, only links of the changed files are read again, and links to a name that a file got
    or lost.
    """

    def __init__(self, store: IndexStore) -> None:
        """Read from *store*."""
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], _Resolved] = {}

    def get(self) -> LinkEnds:
        """Return the ends for the index's current state."""
        with self._store.database.snapshot() as connection:
            key = database.state_of(connection)
            # Threads that need the ends at the same time wait for one computation.
            with self._lock:
                if key not in self._known:
                    states = sorted((state for state in self._known if state[0] == key[0]), key=lambda state: state[1])
                    self._known = {state: self._known[state] for state in states[1 - _KEPT_STATES :]} | {
                        key: (self._bring_up_to_date(connection, *key) or _resolve_all(connection))
                    }
                return self._known[key].ends

    def _bring_up_to_date(self, connection: sqlite3.Connection, uid: str, generation: int) -> _Resolved | None:
        """Return the latest known ends with what has changed since; None where all links have to be read."""
        before = max((known for known_uid, known in self._known if known_uid == uid and known < generation), default=-1)
        if before < 0 or before < database.removed_since(connection):
            return None
        changes = connection.execute(
            "SELECT file_id, name_key FROM changed_files WHERE generation > ? AND name_key IS NOT ? LIMIT ?",
            (before, ONLY_TOUCHED, _MAX_CHANGES + 1),
        ).fetchall()
        if len(changes) > _MAX_CHANGES:
            return None
        changed_ids = {int(i) for i, _ in changes}
        return _replace_changed(
            connection, self._known[uid, before], changed_ids, {str(k) for _, k in changes if k is not None}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolved:
    """The ends of all links, and all files in the order in which their links stand there."""

    ends: LinkEnds
    paths: Sequence[NotePath]
    """All files by path, notes or not."""
    ids: FileIds
    places: FileIds
    """Each file's place in the order of paths, by file id."""

    def place_of(self, file_id: int) -> int | None:
        """Return a file's place in the order of paths; None for an unknown file."""
        place = int(self.places[file_id]) if file_id < len(self.places) else -1
        return None if place < 0 else place

    def rows_of(self, path: NotePath) -> slice:
        """Return where the links of a file stand, or would stand."""
        sources = self.ends.sources

        def source_path(row: int) -> NotePath:
            return self.paths[int(self.places[int(sources[row])])]

        every_row = range(len(sources))
        return slice(bisect_left(every_row, path, key=source_path), bisect_right(every_row, path, key=source_path))


class _LinkResolver:
    """Resolves links; what doesn't depend on the note that holds a link is worked out once for each target."""

    def __init__(self, lookup: Callable[[str], Sequence[tuple[int, NotePath]]], path_of: Callable[[int], str]) -> None:
        self._lookup = lookup
        self._path_of = path_of
        self._ids: dict[NotePath, int] = {}
        self._named: dict[str, Sequence[NotePath]] = {}
        self._everywhere: dict[str, int] = {}
        self._prepared: dict[str, PreparedTarget] = {}
        self._from_folders: dict[tuple[str, str], int] = {}

    def end(self, source: int, target: str) -> int:
        """Return the id of a link's target; 0 where it is broken."""
        end = self._everywhere.get(target)
        if end is not None:
            return end
        prepared = self._prepared.get(target)
        if prepared is None:
            prepared = PreparedTarget(target, self._find)
            if prepared.everywhere is not None:
                end = self._everywhere[target] = self._id_of(prepared.everywhere)
                return end
            self._prepared[target] = prepared
        if prepared.is_own_note:
            return source
        folder = paths.parent_folder(NotePath(self._path_of(source)))
        if (target, folder) not in self._from_folders:
            self._from_folders[target, folder] = self._id_of(prepared.resolve_from(paths.fold_target(folder)))
        return self._from_folders[target, folder]

    def _id_of(self, resolution: links.Resolution) -> int:
        return 0 if resolution.path is None else self._ids[resolution.path]

    def _find(self, key: str) -> Sequence[NotePath]:
        if key not in self._named:
            files = self._lookup(key)
            self._ids.update((path, i) for i, path in files)
            self._named[key] = [path for _, path in files]
        return self._named[key]


def _resolve_all(connection: sqlite3.Connection) -> _Resolved:
    """Read all files and links, and resolve these in memory."""
    rows = connection.execute("SELECT id, path, name_key, kind FROM files ORDER BY path").fetchall()
    path_by_id = {int(i): NotePath(path) for i, path, _, _ in rows}
    files_by_name: dict[str, list[tuple[int, NotePath]]] = {}
    for i, path, key, _ in rows:
        files_by_name.setdefault(key, []).append((int(i), NotePath(path)))
    resolver = _LinkResolver(lambda key: files_by_name.get(key, ()), path_by_id.__getitem__)
    ids = np.array(list(path_by_id), np.int64)
    places = _places_of(ids)
    ends = _resolve_rows(connection.execute(_LINKS_SQL), resolver)
    ends = ends[np.lexsort((ends[:, 0], places[ends[:, 1]]))]
    notes = tuple((int(i), NotePath(path)) for i, path, _, kind in rows if kind == "note")
    link_rows, sources, targets = (ends[:, column].copy() for column in range(3))
    return _Resolved(
        ends=LinkEnds(rows=link_rows, sources=sources, targets=targets, notes=notes),
        paths=list(path_by_id.values()),
        ids=ids,
        places=places,
    )


def _replace_changed(
    connection: sqlite3.Connection, known: _Resolved, changed_ids: set[int], names: set[str]
) -> _Resolved:
    """Return known ends with those of changed files, and of links to names that files got or lost, resolved again."""
    if not changed_ids:
        return known

    def look_up(key: str) -> list[tuple[int, NotePath]]:
        rows = connection.execute("SELECT id, path FROM files WHERE name_key = ? ORDER BY path", (key,))
        return [(int(i), NotePath(path)) for i, path in rows]

    def path_of(i: int) -> str:
        return str(connection.execute("SELECT path FROM files WHERE id = ?", (i,)).fetchone()[0])

    resolver = _LinkResolver(look_up, path_of)
    old = known.ends
    targets = _resolve_named(connection, old, names, resolver) if names else old.targets
    # None for files that are gone.
    links_by_path: dict[NotePath, FileIds] = {}
    # In order of ids: a file that was removed and came back has two, and the later one counts.
    for file_id in sorted(changed_ids):
        row = connection.execute("SELECT path FROM files WHERE id = ?", (file_id,)).fetchone()
        if row is not None:
            own_rows = connection.execute(f"{_LINKS_SQL} AND file_id = ? ORDER BY rowid", (file_id,))
            links_by_path[NotePath(row[0])] = _resolve_rows(own_rows, resolver)
        elif (gone_place := known.place_of(file_id)) is not None:
            links_by_path.setdefault(known.paths[gone_place], np.zeros((0, 3), np.int64))
    pieces: list[list[FileIds]] = [[], [], []]
    done = 0
    for path, own_links in sorted(links_by_path.items()):
        place = known.rows_of(path)
        for column, old_column, own_column in zip(pieces, (old.rows, old.sources, targets), own_links.T, strict=True):
            column += [old_column[done : place.start], own_column]
        done = place.stop
    for column, old_column in zip(pieces, (old.rows, old.sources, targets), strict=True):
        column.append(old_column[done:])
    rows, sources, targets = map(np.concatenate, pieces)
    resolved = replace(known, ends=replace(old, rows=rows, sources=sources, targets=targets))
    return _replace_files(connection, resolved, changed_ids) if names else resolved


def _resolve_named(
    connection: sqlite3.Connection, ends: LinkEnds, names: Iterable[str], resolver: _LinkResolver
) -> FileIds:
    """Return the targets of all links, with those to some names resolved again."""
    keys = {*_FOLDER_KEYS, *(spelling for name in names for spelling in documents.link_keys(name))}
    named = (row for key in keys for row in connection.execute(f"{_LINKS_SQL} AND target_key = ?", (key,)))
    changed = _resolve_rows(named, resolver)
    if not len(changed):
        return ends.targets
    last_row = max(int(changed[:, 0].max()), int(ends.rows.max(initial=0)))
    new_targets = np.full(last_row + 1, -1, np.int64)
    new_targets[changed[:, 0]] = changed[:, 2]
    targets = new_targets[ends.rows]
    return np.where(targets < 0, ends.targets, targets)


def _replace_files(connection: sqlite3.Connection, known: _Resolved, changed_ids: Iterable[int]) -> _Resolved:
    """Return known ends with the files of some ids as the index has them now."""
    all_paths, ids, notes = list(known.paths), known.ids, list(known.ends.notes)
    for i in sorted(changed_ids):
        if (old_place := known.place_of(i)) is not None:
            # Found anew: files before it may have come and gone.
            place = bisect_left(all_paths, known.paths[old_place])
            del all_paths[place]
            ids = np.delete(ids, place)
            removed_place = bisect_left(notes, known.paths[old_place], key=_path_of_note)
            if removed_place < len(notes) and notes[removed_place][0] == i:
                del notes[removed_place]
        for path, kind in connection.execute("SELECT path, kind FROM files WHERE id = ?", (i,)):
            place = bisect_left(all_paths, path)
            all_paths.insert(place, NotePath(path))
            ids = np.insert(ids, place, i)
            if kind == "note":
                notes.insert(bisect_left(notes, path, key=_path_of_note), (i, NotePath(path)))
    ends = replace(known.ends, notes=tuple(notes))
    return _Resolved(ends=ends, paths=all_paths, ids=ids, places=_places_of(ids))


def _path_of_note(note: tuple[int, NotePath]) -> NotePath:
    return note[1]


def _places_of(ids: FileIds) -> FileIds:
    """Return each file's place in a list of ids, by id; -1 for other ids."""
    places = np.full(int(ids.max(initial=0)) + 1, -1, np.int64)
    places[ids] = np.arange(len(ids))
    return places


def _resolve_rows(rows: Iterable[tuple[int, int, str]], resolver: _LinkResolver) -> FileIds:
    """Return row, source and target of links as three columns."""
    ends = [(row, source, resolver.end(source, target)) for row, source, target in rows]
    return np.array(ends, np.int64).reshape(-1, 3)


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
        file_state = self._store.states_of([source]).get(source)
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
        edges: list[Edge] = []
        for row in rows:
            source, kind, target, headings, block, alias, line, key = row
            path = NotePath(source)
            if kind == "external":
                resolution = links.Resolution(path=None, ambiguous=())
            elif target:
                resolution = links.resolve(target, path, lookup_name)
            else:
                resolution = links.Resolution(path=path, ambiguous=())
            edges.append(
                Edge(
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
            )
        return edges


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
