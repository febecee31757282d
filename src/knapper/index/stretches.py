"""Say which files are listed, and in which order, and ask SQLite for them."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from knapper.index import conditions
from knapper.index.conditions import Condition
from knapper.index.filters import Filter
from knapper.vault import paths

Shows = Callable[[str, str], bool]
By = Literal["path", "title", "created", "modified", "size", "property"]
_SORTED: Mapping[By, str] = {
    "path": "f.path {way}",
    "title": "f.name_key {way}, f.path {way}",
    "created": "f.created {way}, f.path {way}",
    "modified": "f.mtime_ns {way}, f.path {way}",
    "size": "f.size {way}, f.path {way}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Say how files are sorted."""

    by: By = "path"
    descending: bool = False
    name: str = ""
    """The property's, where it is sorted by one: numbers before texts, a list by its least element; files without it
    come last either way."""

    @property
    def way(self) -> str:
        """Give SQL's word."""
        return "DESC" if self.descending else "ASC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Say which files, in which order, and which stretch of them."""

    where: Filter = field(default_factory=Filter)
    order: Order = field(default_factory=Order)
    among: Collection[int] | None = None
    """Only files with these ids; None for all."""
    limit: int = 100
    offset: int = 0

    @property
    def is_few(self) -> bool:
        """Tell whether an index finds the files, so that only these are sorted."""
        return self.among is not None or conditions.is_narrow(self.where)


def condition(wanted: Stretch) -> Condition:
    """Give the SQL condition on ``files f`` and its parameters; policy and ignore rules aren't part of it."""
    sql, parameters = conditions.select(wanted.where)
    if wanted.among is None:
        return sql, parameters
    return f"{sql} AND f.id IN (SELECT value FROM json_each(?))", [*parameters, json.dumps(list(wanted.among))]


def ids(
    connection: sqlite3.Connection, wanted: Stretch, *, shows: Shows | None = None, limit: int = -1, offset: int = 0
) -> list[int]:
    """Give the ids of the files that meet the condition, in order.

    Args:
        connection: The index.
        wanted: What is asked for; its own limit and offset aren't looked at.
        shows: Tells of a path, and what it leads to, whether it is shown; None shows all.
        limit: How many at most; a property's order always gives all.
        offset: How many are left out at the beginning.
    """
    if wanted.order.by == "property":
        return _by_property(connection, wanted, shows)
    sql, parameters = condition(wanted)
    ways = _SORTED[wanted.order.by].format(way=wanted.order.way)
    if wanted.is_few:
        ways = f"+{ways}"  # so that SQLite sorts the few, and doesn't go through all in this order
    asked = f"{_columns(shows)} FROM files f WHERE {sql} ORDER BY {ways} LIMIT ? OFFSET ?"
    return [int(row[0]) for row in _shown(connection.execute(asked, (*parameters, limit, offset)), shows)]


def _by_property(connection: sqlite3.Connection, wanted: Stretch, shows: Shows | None) -> list[int]:
    """Sort the elements of all files, and keep each file's least: half the work of grouping them by file first."""
    sql, parameters = condition(wanted)
    way, name = wanted.order.way, paths.key(wanted.order.name)
    tables = ("files f", "properties p") if wanted.is_few else ("properties p", "files f")
    held = (
        f"{_columns(shows)}, p.number IS NULL FROM {' CROSS JOIN '.join(tables)}"
        f" WHERE p.file_id = f.id AND p.key = ? AND {sql}"
        f" ORDER BY p.number IS NULL, p.number {way}, p.item {way}, f.path {way}"
    )
    rest = (
        f"{_columns(shows)} FROM files f"
        f" WHERE {sql} AND f.id NOT IN (SELECT file_id FROM properties WHERE key = ?) ORDER BY +f.path {way}"
    )
    holders = [(int(row[0]), bool(row[-1])) for row in _shown(connection.execute(held, (name, *parameters)), shows)]
    others = _shown(connection.execute(rest, (*parameters, name)), shows)
    return [*_least(holders, descending=wanted.order.descending), *(int(row[0]) for row in others)]


def _columns(shows: Shows | None) -> str:
    return "SELECT f.id" if shows is None else "SELECT f.id, f.path, f.target"


def _shown(rows: Iterable[Any], shows: Shows | None) -> Iterable[Any]:
    return rows if shows is None else (row for row in rows if shows(row[1], row[2]))


def _least(rows: Sequence[tuple[int, bool]], *, descending: bool) -> list[int]:
    """Keep each file once, where the least of its numbers stands, or of its texts if it has no number.

    Args:
        rows: Ids and whether it is a text; all numbers come before.
        descending: The least of a file's elements stands last among them.
    """
    numbers = {i for i, is_text in rows if not is_text}
    kept = [i for i, is_text in rows if not (is_text and i in numbers)]
    return list(dict.fromkeys(reversed(kept)))[::-1] if descending else list(dict.fromkeys(kept))
