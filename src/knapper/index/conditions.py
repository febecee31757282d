"""Write a filter as a condition that SQLite answers from its indexes."""

import json
from collections.abc import Sequence

from knapper.index import records
from knapper.index.filters import Filter, PropertyTest
from knapper.vault import paths

Condition = tuple[str, list[str]]
"""SQL about ``files f``, and its parameters."""

_DATES = (
    ("modified_from", "f.modified >= ?"),
    ("modified_to", "f.modified <= ?"),
    ("created_from", "f.created >= ?"),
    ("created_to", "f.created <= ?"),
)
_HOLDERS = "SELECT p.file_id FROM properties p WHERE p.key = ?"  # uncorrelated: read once, not once a file
_OTHERS = "SELECT 1 FROM properties q WHERE q.file_id = p.file_id AND q.key = p.key AND q.id != p.id"
_NEGATIVE = frozenset({"missing", "not_equals", "not_contains"})
_GRAM = 3
"""Characters that a part needs to be looked up, as the trigram index has it."""


def select(wanted: Filter) -> Condition:
    """Give the SQL condition on ``files f`` and its parameters; policy and ignore rules aren't part of it."""
    tests: list[Condition] = []
    if wanted.folders:
        tests.append(_any([_below(folder) for folder in wanted.folders]))
    tests.extend(_negate(_below(folder)) for folder in wanted.exclude_folders)
    if wanted.directly_in:
        tests.append(_one_of("f.folder_key", [folder_key(folder) for folder in wanted.directly_in]))
    if wanted.paths:
        tests.append(_one_of("f.path_key", [paths.name_key(path) for path in wanted.paths]))
    if wanted.exclude_paths:
        tests.append(_negate(_one_of("f.path_key", [paths.name_key(path) for path in wanted.exclude_paths])))
    if wanted.kinds:
        column = "+f.kind" if is_narrow(wanted) else "f.kind"  # a plus keeps SQLite from going through all of a kind
        tests.append((f"{column} IN ({', '.join('?' * len(wanted.kinds))})", list(wanted.kinds)))
    tests.extend(_tagged(tag) for tag in wanted.tags)
    tests.extend(_negate(_tagged(tag)) for tag in wanted.exclude_tags)
    tests.extend(_property(test) for test in wanted.properties)
    tests.extend((sql, [str(getattr(wanted, name))]) for name, sql in _DATES if getattr(wanted, name))
    condition = " AND ".join(sql for sql, _ in tests) or "1"
    return condition, [parameter for _, parameters in tests for parameter in parameters]


def is_narrow(wanted: Filter) -> bool:
    """Tell whether a test that has an index of its own leaves few files, so that it is asked first."""
    positive = any(test.op not in _NEGATIVE for test in wanted.properties)
    return positive or bool(wanted.folders or wanted.directly_in or wanted.tags or wanted.paths)


def folder_key(folder: str) -> str:
    """Give the form that folders are compared by."""
    return paths.name_key(folder).strip("/")


def tag_key(tag: str) -> str:
    """Give the form that tags are compared by."""
    return paths.name_key(tag).strip().removeprefix("#").rstrip("/")


def _below(folder: str) -> Condition:
    key = folder_key(folder)
    if not key:
        return "1", []
    sql = "(f.folder_key = ? OR (f.folder_key >= ? AND f.folder_key < ?))"
    return sql, [key, f"{key}/", f"{key}0"]  # "0" comes right after "/"


def _tagged(tag: str) -> Condition:
    key = tag_key(tag)
    sql = "f.id IN (SELECT t.file_id FROM tags t WHERE t.key = ? OR (t.key >= ? AND t.key < ?))"
    return sql, [key, f"{key}/", f"{key}0"]


def _property(test: PropertyTest) -> Condition:
    name, value = paths.name_key(test.name), records.fold(test.value)
    not_in = "NOT IN" if test.op in _NEGATIVE else "IN"
    match test.op:
        case "exists" | "missing":
            sql, parameters = _HOLDERS, [name]
        case "equals" | "not_equals":
            sql, parameters = f"{_HOLDERS} AND p.item = ?", [name, value]
        case "is":
            sql, parameters = f"{_HOLDERS} AND p.item = ? AND NOT EXISTS ({_OTHERS})", [name, value]
        case "contains" | "not_contains":
            sql, parameters = _containing(name, value)
    return f"f.id {not_in} ({sql})", parameters


def _containing(name: str, value: str) -> Condition:
    """Select the files whose property has *value* as an element, or as a part of its text."""
    element = f"{_HOLDERS} AND p.item IN (?, ?)"
    parameters = [name, value, f"[[{value}]]"]
    if len(value) < _GRAM or "\0" in value:
        part = f"{_HOLDERS} AND p.shape != 'list' AND instr(p.item, ?)"
        return f"{element} UNION ALL {part}", [*parameters, name, value]
    quoted = value.replace('"', '""')
    grams = "SELECT rowid FROM property_grams WHERE property_grams MATCH ?"
    part = f"SELECT p.file_id FROM properties p WHERE p.id IN ({grams}) AND +p.key = ? AND instr(p.item, ?)"
    return f"{element} UNION ALL {part}", [*parameters, f'"{quoted}"', name, value]


def _one_of(column: str, values: Sequence[str]) -> Condition:
    return f"{column} IN (SELECT value FROM json_each(?))", [json.dumps(values, ensure_ascii=False)]


def _any(tests: Sequence[Condition]) -> Condition:
    return f"({' OR '.join(sql for sql, _ in tests)})", [p for _, parameters in tests for p in parameters]


def _negate(test: Condition) -> Condition:
    return f"NOT ({test[0]})", test[1]
