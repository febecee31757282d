"""Turn a filter into the set of files that pass it, before anything is ranked."""

import sqlite3

import numpy as np
from numpy.typing import NDArray

from knapper.index import conditions
from knapper.index.filters import Filter
from knapper.index.remembered import Remembered
from knapper.index.sight import Sight

_CACHED = 32


class Allowed:
    """Answer filters with masks over file ids, and remember the answers while the index stays the same."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self.sight = Sight()
        self._masks: Remembered[NDArray[np.bool_]] = Remembered(_CACHED)

    def mask(self, connection: sqlite3.Connection, wanted: Filter) -> NDArray[np.bool_] | None:
        """Tell by file id which files pass; None where all do."""
        if wanted.trivial:
            return None
        return self._masks.get(connection, wanted.cache_key, lambda: _compute(connection, self.sight, wanted))


def _compute(connection: sqlite3.Connection, sight: Sight, wanted: Filter) -> NDArray[np.bool_]:
    condition, parameters = conditions.select(wanted)
    size = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM files").fetchone()[0]
    mask = np.zeros(size, np.bool_)
    rows = connection.execute(f"SELECT f.id, f.path, f.target FROM files f WHERE {condition}", parameters)
    shows = sight.of(wanted)
    mask[[i for i, path, target in rows if shows(path, target)]] = True
    return mask
