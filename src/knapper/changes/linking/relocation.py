"""Hold where files lie before and after a move, and what links mean in either state."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from knapper.index import store
from knapper.vault import links, paths
from knapper.vault.links import Resolution
from knapper.vault.paths import NotePath


class Names:
    """Hold the files of one state by name, and remember what targets mean."""

    def __init__(self, lookup: Callable[[str], Sequence[NotePath]]) -> None:
        """Ask *lookup* once for each name key."""
        self._lookup: Callable[[str], Sequence[NotePath]] = lookup
        self._files: dict[str, Sequence[NotePath]] = {}
        self._found: dict[tuple[str, NotePath], Resolution] = {}

    def files(self, key: str) -> Sequence[NotePath]:
        """List the files of a name key, by path."""
        if key not in self._files:
            self._files[key] = self._lookup(key)
        return self._files[key]

    def resolve(self, target: str, source: NotePath) -> Resolution:
        """Find the file that a link's target means, as seen from the file that holds it."""
        if not target.strip():
            return Resolution(path=source)
        slot = (target, paths.parent_folder(source))  # nothing but the folder of the source counts
        if slot not in self._found:
            self._found[slot] = links.resolve(target, source, self.files)
        return self._found[slot]

    def leads(self, target: str, source: NotePath, wanted: NotePath, *, alone: bool = False) -> bool:
        """Tell whether a target means a file.

        Args:
            target: What a link says, without fragment.
            source: The file that holds the link.
            wanted: The file.
            alone: No other file may fit as well.
        """
        found = self.resolve(target, source)
        return found.path == wanted and not (alone and found.ambiguous)


def _all(_: NotePath) -> bool:
    return True


class Relocation:
    """Hold which files get which paths."""

    def __init__(
        self,
        files: Mapping[NotePath, NotePath],
        folders: Mapping[NotePath, NotePath],
        lookup: Callable[[str], Sequence[NotePath]],
        root: Path,
        sees: Callable[[NotePath], bool] = _all,
    ) -> None:
        """Prepare the names before and after.

        Args:
            files: New paths of moved files, those in moved folders included.
            folders: New paths of folders that move as a whole.
            lookup: The index's files by name key.
            root: The vault's folder; what the index names and isn't there counts for nothing.
            sees: Tells which files the asker sees.
        """
        self.files: Mapping[NotePath, NotePath] = files
        self.folders: Mapping[NotePath, NotePath] = folders
        self.before: Names = Names(self._files_before)
        self.after: Names = Names(self._files_after)
        self.gone: set[NotePath] = set()
        """Files that the index knows and that aren't there any more."""
        self._lookup: Callable[[str], Sequence[NotePath]] = lookup
        self._root: str = os.fspath(root)
        self._sees: Callable[[NotePath], bool] = sees
        self._old: dict[str, list[NotePath]] = _by_key(files)
        self._new: dict[str, list[NotePath]] = _by_key(files.values())
        self._said: frozenset[str] = frozenset((*self.keys, *(key.removesuffix(".md") for key in self.keys)))

    @property
    def keys(self) -> frozenset[str]:
        """Give the name keys of all moved files, old and new: links that say others mean what they meant."""
        return frozenset((*self._old, *self._new))

    def concerns(self, target: str) -> bool:
        """Tell whether what a target means can change by the names that come and go."""
        return store.link_key(target) in self._said

    def led(self, target: str, source: NotePath) -> Resolution:
        """Find the file that a link's target meant before the move.

        A link to a hidden file is one to nothing in a file that the asker sees: a path written there would tell of it.
        """
        return self._told(self.before.resolve(target, source), source)

    def leads(self, target: str, source: NotePath) -> bool:
        """Tell whether a link's target means a file after the move, as far as the asker may know."""
        return self._told(self.after.resolve(target, source), source).path is not None

    def _told(self, found: Resolution, source: NotePath) -> Resolution:
        if found.path is None or self._sees(found.path) or not self._sees(source):
            return found
        return Resolution(path=None)

    def place(self, path: NotePath) -> NotePath:
        """Tell where a file lies afterwards; the path needn't be that of a file that there is."""
        if path in self.files:
            return self.files[path]
        for above in reversed(paths.parent_folders(path)):
            if above in self.folders:
                return NotePath(self.folders[above] + path[len(above) :])
        return path

    def _files_before(self, key: str) -> list[NotePath]:
        known = set(self._lookup(key))
        there = {path for path in known if os.path.lexists(f"{self._root}/{path}")}
        self.gone |= known - there
        return sorted(there.union(self._old.get(key, ())))

    def _files_after(self, key: str) -> list[NotePath]:
        stay = {path for path in self.before.files(key) if path not in self.files}
        return sorted(stay.union(self._new.get(key, ())))


def _by_key(files: Iterable[NotePath]) -> dict[str, list[NotePath]]:
    found: dict[str, list[NotePath]] = {}
    for path in files:
        found.setdefault(store.link_key(path), []).append(path)
    return found
