"""Work out where all links of a vault lead, once for each state of the index."""

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knapper.index import states
from knapper.index.store import Store
from knapper.vault import links, paths
from knapper.vault.paths import NotePath

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Hold the two ends of every link that isn't to an address nor within its own note, by source and place."""

    rows: Ids
    """The links' own."""
    sources: Ids
    targets: Ids
    """0 where nothing is there."""
    notes: tuple[tuple[int, NotePath], ...]
    """Id and path of every note, by path."""

    def broken(self, shown: Mask | None = None, within: Mask | None = None) -> list[int]:
        """Give the rows of the links that lead nowhere.

        Args:
            shown: By file id; what isn't shown isn't there. None shows all.
            within: By file id; only links in these. None takes all.
        """
        lost = self.targets == 0
        if shown is not None:
            lost = shown[self.sources] & (lost | ~shown[self.targets])
        if within is not None:
            lost &= within[self.sources]
        return self.rows[lost].tolist()

    def alone(self, shown: Mask | None = None) -> list[NotePath]:
        """Give the notes that link to no other file and that none links to, by path; what isn't *shown* isn't there."""
        joined = (self.targets != 0) & (self.targets != self.sources)
        if shown is not None:
            joined &= shown[self.sources] & shown[self.targets]
        linked = {*self.sources[joined].tolist(), *self.targets[joined].tolist()}
        return [path for i, path in self.notes if i not in linked and (shown is None or shown[i])]


class Connections:
    """Remember the ends of all links while the index stays the same; any thread may ask."""

    def __init__(self, store: Store) -> None:
        """Ask *store*."""
        self._store = store
        self._lock = threading.Lock()
        self._known: tuple[tuple[str, int], Ends] | None = None

    def get(self) -> Ends:
        """Give the ends as the index has them now."""
        with self._store.database.snapshot() as connection:
            key = states.state_of(connection)
            with self._lock:  # so that several who ask at once wait for one answer
                if self._known is None or self._known[0] != key:
                    self._known = key, _work_out(connection)
                return self._known[1]


class _Resolver:
    """Resolve links from memory; most targets mean the same file wherever they stand."""

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
        """Give the id of the file that a link leads to; 0 where nothing is there."""
        found = self._anywhere.get(target)
        if found is not None:
            return found
        path = self._paths[source]
        here = (target, paths.parent_folder(path))
        if here not in self._here:
            meant = links.resolve(target, path, self.lookup)
            end = self._ids[meant.path] if meant.path is not None else 0
            self._here[here] = end
            if not meant.ambiguous and not target.strip().startswith("."):
                self._anywhere[target] = end
        return self._here[here]


def _work_out(connection: sqlite3.Connection) -> Ends:
    files = [
        (int(i), NotePath(path), str(key), str(kind))
        for i, path, key, kind in connection.execute("SELECT id, path, name_key, kind FROM files ORDER BY path")
    ]
    resolver = _Resolver([file[:3] for file in files])
    place = {i: number for number, (i, *_) in enumerate(files)}
    found = np.array(
        [
            (place[source], row, source, resolver.end(source, target))
            for row, source, target in connection.execute(
                "SELECT rowid, file_id, target FROM links WHERE kind != 'external' AND target != ''"
            )
        ],
        np.int64,
    ).reshape(-1, 4)
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    return Ends(
        rows=found[:, 1].copy(),
        sources=found[:, 2].copy(),
        targets=found[:, 3].copy(),
        notes=tuple((i, path) for i, path, _, kind in files if kind == "note"),
    )
