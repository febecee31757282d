"""Turn a filter into the set of files that pass it, before anything is ranked."""

import json
import sqlite3
import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from knapper.index.filters import Filter, PropertyTest
from knapper.vault import paths
from knapper.vault.paths import NotePath

_CACHED = 32
_DATES = (
    ("modified_from", "modified >= ?"),
    ("modified_to", "modified <= ?"),
    ("created_from", "created >= ?"),
    ("created_to", "created <= ?"),
)
_HOLDERS = "(SELECT p.file_id FROM properties p WHERE p.key = ?"  # uncorrelated: read once, not once a file
_PART = "(p.item = ? OR (p.shape != 'list' AND instr(p.item, ?)))"
_TESTS = {
    "exists": f"f.id IN {_HOLDERS})",
    "missing": f"f.id NOT IN {_HOLDERS})",
    "equals": f"f.id IN {_HOLDERS} AND p.item = ?)",
    "not_equals": f"f.id NOT IN {_HOLDERS} AND p.item = ?)",
    "contains": f"f.id IN {_HOLDERS} AND {_PART})",
    "not_contains": f"f.id NOT IN {_HOLDERS} AND {_PART})",
}


class Allowed:
    """Answer filters with masks over file ids, and remember the answers while the index stays the same."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
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
        mask = _compute(connection, wanted)
        with self._lock:
            self._masks[key] = mask
            while len(self._masks) > _CACHED:
                self._masks.popitem(last=False)
        return mask


def select(wanted: Filter) -> tuple[str, list[str]]:
    """Give the SQL condition on ``files f`` and its parameters; the policy isn't part of it."""
    tests: list[tuple[str, list[str]]] = []
    if wanted.folders:
        tests.append(_any([_below(folder) for folder in wanted.folders]))
    tests.extend(_negate(_below(folder)) for folder in wanted.exclude_folders)
    if wanted.paths:
        tests.append(_one_of("f.path_key", [paths.key(path) for path in wanted.paths]))
    if wanted.exclude_paths:
        tests.append(_negate(_one_of("f.path_key", [paths.key(path) for path in wanted.exclude_paths])))
    if wanted.kinds:
        tests.append(_one_of("f.kind", list(wanted.kinds)))
    tests.extend(_tagged(tag) for tag in wanted.tags)
    tests.extend(_negate(_tagged(tag)) for tag in wanted.exclude_tags)
    tests.extend(_property(test) for test in wanted.properties)
    tests.extend((f"f.{sql}", [str(getattr(wanted, name))]) for name, sql in _DATES if getattr(wanted, name))
    condition = " AND ".join(sql for sql, _ in tests) or "1"
    return condition, [parameter for _, parameters in tests for parameter in parameters]


def _compute(connection: sqlite3.Connection, wanted: Filter) -> NDArray[np.bool_]:
    condition, parameters = select(wanted)
    size = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM files").fetchone()[0]
    mask = np.zeros(size, np.bool_)
    rows = connection.execute(f"SELECT f.id, f.path, f.target FROM files f WHERE {condition}", parameters)
    mask[[i for i, *ends in rows if all(_shows(wanted, NotePath(end)) for end in ends if end)]] = True
    return mask


def _shows(wanted: Filter, path: NotePath) -> bool:
    if wanted.ignore is not None and wanted.ignore.hides(path):
        return False
    return wanted.policy is None or wanted.policy.visible(path)


def _below(folder: str) -> tuple[str, list[str]]:
    key = paths.key(folder).strip("/")
    if not key:
        return "1", []
    return "(f.folder_key = ? OR substr(f.folder_key, 1, ?) = ?)", [key, str(len(key) + 1), f"{key}/"]


def _tagged(tag: str) -> tuple[str, list[str]]:
    key = paths.key(tag).lstrip("#").rstrip("/")
    sql = "EXISTS (SELECT 1 FROM tags t WHERE t.file_id = f.id AND (t.key = ? OR substr(t.key, 1, ?) = ?))"
    return sql, [key, str(len(key) + 1), f"{key}/"]


def _property(test: PropertyTest) -> tuple[str, list[str]]:
    sql = _TESTS[test.op]
    values = [paths.key(test.value)] * (sql.count("?") - 1)
    return sql, [paths.key(test.name), *values]


def _one_of(column: str, values: list[str]) -> tuple[str, list[str]]:
    return f"{column} IN (SELECT value FROM json_each(?))", [json.dumps(values, ensure_ascii=False)]


def _any(tests: list[tuple[str, list[str]]]) -> tuple[str, list[str]]:
    return f"({' OR '.join(sql for sql, _ in tests)})", [p for _, parameters in tests for p in parameters]


def _negate(test: tuple[str, list[str]]) -> tuple[str, list[str]]:
    return f"NOT ({test[0]})", test[1]
