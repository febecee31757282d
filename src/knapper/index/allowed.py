"""Turn a filter into the set of files that pass it, before anything is ranked."""

import sqlite3
import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from knapper.index import conditions
from knapper.index.filters import Filter
from knapper.index.sight import Sight

_CACHED = 32


class Allowed:
    """Answer filters with masks over file ids, and remember the answers while the index stays the same."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self.sight = Sight()
        self._lock = threading.Lock()
        self._masks: OrderedDict[tuple[str, str, str], NDArray[np.bool_]] = OrderedDict()

    def mask(self, connection: sqlite3.Connection, wanted: Filter) -> NDArray[np.bool_] | None:
        """Tell by file id which files pass; None where all do."""
        if wanted.trivial:
            return None
        state = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('uid', 'generation')"))
        key = (str(state["uid"]), str(state["generation"]), wanted.cache_key)
        with self._lock:
            if key in self._masks:
                self._masks.move_to_end(key)
                return self._masks[key]
        mask = _compute(connection, self.sight, wanted)
        with self._lock:
            self._masks[key] = mask
            while len(self._masks) > _CACHED:
                self._masks.popitem(last=False)
        return mask


def _compute(connection: sqlite3.Connection, sight: Sight, wanted: Filter) -> NDArray[np.bool_]:
    condition, parameters = conditions.select(wanted)
    size = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM files").fetchone()[0]
    mask = np.zeros(size, np.bool_)
    rows = connection.execute(f"SELECT f.id, f.path, f.target FROM files f WHERE {condition}", parameters)
    shows = sight.of(wanted)
    mask[[i for i, path, target in rows if shows(path, target)]] = True
    return mask
