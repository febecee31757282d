"""Restrict a query to some notes: filters as data, as SQL conditions, and as masks over file ids."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal

from knapper.index import documents
from knapper.index.arrays import np
from knapper.index.database import StateCache
from knapper.vault import paths
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.walk import IgnoreRules

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NOT_RESTRICTIONS: Final = frozenset({"include_log", "policy", "ignore"})
PropertyOp = Literal["contains", "equals", "exists", "is", "missing", "not_contains", "not_equals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyTest:
    """A test of one property; names and values are compared without case."""

    name: str
    op: PropertyOp = "exists"
    value: str = ""
    """For ``equals``, a whole value or a list's element; for ``is``, the whole property or a list's only element; for
    ``contains``, a list's element or a part of a text, with or without a link's brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A restriction to some notes; empty fields restrict nothing, all others must match.

    ``Filter(folders=("Projects",), tags=("idea",))`` keeps notes below it with the tag ``#idea`` or ``#idea/x``.
    """

    folders: tuple[str, ...] = ()
    """Any of these folders, with all below them."""
    exclude_folders: tuple[str, ...] = ()
    directly_in: tuple[str, ...] = ()
    """Any of these folders, without those below."""
    paths: tuple[str, ...] = ()
    """Any of these files."""
    exclude_paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """All of these, or tags nested below them."""
    exclude_tags: tuple[str, ...] = ()
    properties: tuple[PropertyTest, ...] = ()
    modified_from: str = ""
    """ISO date, inclusive, like the other three."""
    modified_to: str = ""
    created_from: str = ""
    created_to: str = ""
    kinds: tuple[str, ...] = ()
    """Kinds of file: note, canvas, base, attachment."""
    include_log: bool = False
    """Whether passages of the program's own log are found, too."""
    policy: Policy | None = None
    """The client's policy; what it hides doesn't exist for the query."""
    ignore: IgnoreRules | None = None
    """The vault's ignore rules, where the index was built with other ones."""

    @property
    def trivial(self) -> bool:
        """Return whether every file matches."""
        open_policy = self.policy is None or self.policy.sees_all
        return open_policy and self.ignore is None and not any(self._restrictions())

    @property
    def cache_key(self) -> str:
        """Return a key for caches, equal for equal filters."""
        policy = self.policy.fingerprint if self.policy else ""
        restrictions = map(repr, self._restrictions())
        return "|".join([*restrictions, policy, self.ignore.fingerprint if self.ignore else ""])

    def _restrictions(self) -> list[object]:
        return [getattr(self, f.name) for f in fields(self) if f.name not in _NOT_RESTRICTIONS]


SqlCondition = tuple[str, list[str]]
"""SQL about ``files f``, and its parameters."""

_DATE_CONDITIONS = (
    ("modified_from", "f.modified >= ?"),
    ("modified_to", "f.modified <= ?"),
    ("created_from", "f.created >= ?"),
    ("created_to", "f.created <= ?"),
)
# Uncorrelated, so that SQLite runs the subquery once and not for each file.
_FILES_WITH_PROPERTY = "SELECT p.file_id FROM properties p WHERE p.key = ?"
_OTHER_ELEMENTS = "SELECT 1 FROM properties q WHERE q.file_id = p.file_id AND q.key = p.key AND q.id != p.id"
_NEGATIVE_OPS = frozenset({"missing", "not_equals", "not_contains"})
_GRAM_CHARS = 3
"""Characters that a part needs for a look-up in the trigram index."""


def build_condition(where: Filter) -> SqlCondition:
    """Return the SQL condition on ``files f`` and its parameters; policy and ignore rules aren't part of it."""
    tests: list[SqlCondition] = []
    if where.folders:
        tests.append(_any_of([_below_folder(folder) for folder in where.folders]))
    tests.extend(_negate(_below_folder(folder)) for folder in where.exclude_folders)
    if where.directly_in:
        tests.append(_in_values("f.folder_key", [folder_key(folder) for folder in where.directly_in]))
    if where.paths:
        tests.append(_in_values("f.path_key", [paths.name_key(path) for path in where.paths]))
    if where.exclude_paths:
        tests.append(_negate(_in_values("f.path_key", [paths.name_key(path) for path in where.exclude_paths])))
    if where.kinds:
        # The unary plus keeps SQLite from using the index of kinds, which would scan all files of a kind.
        column = "+f.kind" if is_selective(where) else "f.kind"
        tests.append((f"{column} IN ({', '.join('?' * len(where.kinds))})", list(where.kinds)))
    tests.extend(_has_tag(tag) for tag in where.tags)
    tests.extend(_negate(_has_tag(tag)) for tag in where.exclude_tags)
    tests.extend(_matches_property(test) for test in where.properties)
    tests.extend((sql, [str(getattr(where, name))]) for name, sql in _DATE_CONDITIONS if getattr(where, name))
    condition = " AND ".join(sql for sql, _ in tests) or "1"
    return condition, [parameter for _, parameters in tests for parameter in parameters]


def is_selective(where: Filter) -> bool:
    """Return whether a test with a database index of its own leaves few files, so that it should run first."""
    positive = any(test.op not in _NEGATIVE_OPS for test in where.properties)
    return positive or bool(where.folders or where.directly_in or where.tags or where.paths)


def folder_key(folder: str) -> str:
    """Fold a folder for comparisons."""
    return paths.name_key(folder).strip("/")


def tag_key(tag: str) -> str:
    """Fold a tag for comparisons."""
    return paths.name_key(tag).strip().removeprefix("#").rstrip("/")


def _below_folder(folder: str) -> SqlCondition:
    key = folder_key(folder)
    if not key:
        return "1", []
    sql = "(f.folder_key = ? OR (f.folder_key >= ? AND f.folder_key < ?))"
    # "0" comes right after "/"
    return sql, [key, f"{key}/", f"{key}0"]


def _has_tag(tag: str) -> SqlCondition:
    key = tag_key(tag)
    sql = "f.id IN (SELECT t.file_id FROM tags t WHERE t.key = ? OR (t.key >= ? AND t.key < ?))"
    return sql, [key, f"{key}/", f"{key}0"]


def _matches_property(test: PropertyTest) -> SqlCondition:
    name, value = paths.name_key(test.name), documents.fold_value(test.value)
    not_in = "NOT IN" if test.op in _NEGATIVE_OPS else "IN"
    match test.op:
        case "exists" | "missing":
            sql, parameters = _FILES_WITH_PROPERTY, [name]
        case "equals" | "not_equals":
            sql, parameters = f"{_FILES_WITH_PROPERTY} AND p.item = ?", [name, value]
        case "is":
            sql, parameters = f"{_FILES_WITH_PROPERTY} AND p.item = ? AND NOT EXISTS ({_OTHER_ELEMENTS})", [name, value]
        case "contains" | "not_contains":
            sql, parameters = _files_containing(name, value)
    return f"f.id {not_in} ({sql})", parameters


def _files_containing(name: str, value: str) -> SqlCondition:
    """Select the files whose property has *value* as an element, or as a part of its text."""
    by_element = f"{_FILES_WITH_PROPERTY} AND p.item IN (?, ?)"
    parameters = [name, value, f"[[{value}]]"]
    if len(value) < _GRAM_CHARS or "\0" in value:
        by_part = f"{_FILES_WITH_PROPERTY} AND p.shape != 'list' AND instr(p.item, ?)"
        return f"{by_element} UNION ALL {by_part}", [*parameters, name, value]
    quoted = value.replace('"', '""')
    grams = "SELECT rowid FROM property_grams WHERE property_grams MATCH ?"
    by_part = f"SELECT p.file_id FROM properties p WHERE p.id IN ({grams}) AND +p.key = ? AND instr(p.item, ?)"
    return f"{by_element} UNION ALL {by_part}", [*parameters, f'"{quoted}"', name, value]


def _in_values(column: str, values: Sequence[str]) -> SqlCondition:
    return f"{column} IN (SELECT value FROM json_each(?))", [json.dumps(values, ensure_ascii=False)]


def _any_of(tests: Sequence[SqlCondition]) -> SqlCondition:
    return f"({' OR '.join(sql for sql, _ in tests)})", [p for _, parameters in tests for p in parameters]


def _negate(test: SqlCondition) -> SqlCondition:
    return f"NOT ({test[0]})", test[1]


VISIBLE_SQL: Final = "knap_shows(f.path, f.target)"
"""The condition on ``files f``; `VisibilityCache.register` defines its function."""
_MAX_CACHED_PATHS: Final = 300_000
"""Cached answers; the visibility of a path depends only on the rules."""


class VisibilityCache:
    """A thread-safe cache of which paths each policy shows."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._known: dict[str, dict[str, bool]] = {}

    def register(self, connection: sqlite3.Connection, where: Filter) -> str:
        """Register the client's visibility as an SQL function; return the condition, empty where all is visible."""
        if sees_all(where):
            return ""
        connection.create_function("knap_shows", 2, self.predicate(where))
        return VISIBLE_SQL

    def predicate(self, where: Filter) -> Callable[[str, str], bool]:
        """Return a function that tells from a file's path and link target whether the client may see it."""
        if sees_all(where):
            return lambda _path, _target: True
        rules = [rule.fingerprint for rule in (where.policy, where.ignore) if rule is not None]
        visible_paths = self._known.setdefault("|".join(rules), {})
        if len(visible_paths) > _MAX_CACHED_PATHS:
            visible_paths.clear()

        def shows(path: str, target: str) -> bool:
            return _is_visible(visible_paths, where, path) and (not target or _is_visible(visible_paths, where, target))

        return shows


def sees_all(where: Filter) -> bool:
    """Return whether the client may see every file of the index."""
    return (where.policy is None or where.policy.sees_all) and where.ignore is None


def _is_visible(visible_paths: dict[str, bool], where: Filter, path: str) -> bool:
    is_shown = visible_paths.get(path)
    if is_shown is None:
        hidden = where.ignore is not None and where.ignore.hides(path)
        is_shown = not hidden and (where.policy is None or where.policy.visible(NotePath(path)))
        visible_paths[path] = is_shown
    return is_shown


_MAX_CACHED_MASKS = 32


class FilterMasks:
    """Masks over file ids by filter, cached while the index stays the same."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self.visibility = VisibilityCache()
        self._masks: StateCache[NDArray[np.bool_]] = StateCache(_MAX_CACHED_MASKS)

    def mask(self, connection: sqlite3.Connection, where: Filter) -> "NDArray[np.bool_] | None":
        """Return a mask by file id of the matching files; None where all match."""
        if where.trivial:
            return None
        return self._masks.get(connection, where.cache_key, lambda: _compute_mask(connection, self.visibility, where))


def _compute_mask(connection: sqlite3.Connection, sight: VisibilityCache, where: Filter) -> "NDArray[np.bool_]":
    condition, parameters = build_condition(where)
    size = connection.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM files").fetchone()[0]
    mask = np.zeros(size, np.bool_)
    rows = connection.execute(f"SELECT f.id, f.path, f.target FROM files f WHERE {condition}", parameters)
    shows = sight.predicate(where)
    mask[[i for i, path, target in rows if shows(path, target)]] = True
    return mask
