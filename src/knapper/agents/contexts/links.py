"""Follow links breadth first, out and back, with folders that are walls."""

from collections.abc import Iterable, Sequence

import numpy as np

from knapper.index.graph import FileIds, LinkEnds
from knapper.tools.context import Context
from knapper.vault import paths
from knapper.vault.paths import NotePath


def spread(context: Context, start: NotePath, depth: int, walls: Sequence[str] = ()) -> dict[NotePath, int]:
    """Give the notes that links lead to from one, each with how many links away it is; the nearest first, then by path.

    Only notes count. What the client doesn't see, or what lies below a wall, is neither given nor passed through; the
    note to start from is passed through wherever it lies.

    Args:
        context: The vault, as the client sees it.
        start: Where to begin; it isn't among the results.
        depth: How many links at most.
        walls: Folders.
    """
    ends = context.index.graph.connections.get()
    named = dict(ends.notes)
    begin = next((i for i, path in ends.notes if path == start), None)
    if begin is None or depth < 1:
        return {}
    passes = _Walls(walls)
    reached: dict[int, int] = {begin: 0}
    shut: set[int] = set()
    ring = [begin]
    for steps in range(1, depth + 1):
        fresh = [i for i in _beside(ends, ring) if i not in reached and i not in shut and i in named]
        ring = [i for i in fresh if passes(named[i]) and context.sees(named[i])]
        shut.update(set(fresh) - set(ring))
        reached.update((i, steps) for i in ring)
    found = sorted((steps, named[i]) for i, steps in reached.items() if steps)
    return {path: steps for steps, path in found}


def is_walled(path: NotePath, walls: Iterable[str]) -> bool:
    """Tell whether a note lies below one of the folders, in any spelling."""
    return not _Walls(walls)(path)


def _beside(ends: LinkEnds, ring: Sequence[int]) -> list[int]:
    here = np.array(ring, np.int64)
    out: FileIds = ends.targets[np.isin(ends.sources, here)]
    back: FileIds = ends.sources[np.isin(ends.targets, here)]
    return np.unique(np.concatenate([out, back])).tolist()


class _Walls:
    """Tell what lies outside of some folders."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._below = tuple(f"{key}/" for folder in folders if (key := paths.name_key(folder).strip().strip("/")))

    def __call__(self, path: NotePath) -> bool:
        return not self._below or not paths.name_key(path).startswith(self._below)
