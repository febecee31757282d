"""Say which files are listed, and in which order, and ask SQLite for them."""

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
    asked = f"FROM files f WHERE {sql} ORDER BY {ways} LIMIT ? OFFSET ?"
    return _ask(connection, asked, (*parameters, limit, offset), shows)


def _by_property(connection: sqlite3.Connection, wanted: Stretch, shows: Shows | None) -> list[int]:
    """Sort the elements of all files, and keep each file's least: half the work of grouping them by file first."""
    sql, parameters = condition(wanted)
    way, name = wanted.order.way, paths.key(wanted.order.name)
    tables = ("files f", "properties p") if wanted.is_few else ("properties p", "files f")
    held = f"FROM {' CROSS JOIN '.join(tables)} WHERE p.file_id = f.id AND p.key = ? AND {sql}"
    ways = {"NOT NULL": f"p.number {way}, p.item {way}, f.path {way}", "NULL": f"p.item {way}, f.path {way}"}
    numbers, texts = (
        _least(
            _ask(connection, f"{held} AND p.number IS {empty} ORDER BY {order}", (name, *parameters), shows),
            descending=wanted.order.descending,
        )
        for empty, order in ways.items()
    )
    found = list(dict.fromkeys((*numbers, *texts)))
    if shows is None and len(found) == _count(connection, sql, parameters):
        return found
    others = f"FROM files f WHERE {sql} AND f.id NOT IN (SELECT file_id FROM properties WHERE key = ?)"
    ways_of_paths = f"{'+' if wanted.is_few else ''}f.path {way}"
    return [*found, *_ask(connection, f"{others} ORDER BY {ways_of_paths}", (*parameters, name), shows)]


def _least(ids: Sequence[int], *, descending: bool) -> list[int]:
    """Keep each file once, where the least of its elements stands: the first of them, or the last if it goes down."""
    return list(dict.fromkeys(reversed(ids)))[::-1] if descending else list(dict.fromkeys(ids))


def _count(connection: sqlite3.Connection, sql: str, parameters: Sequence[str]) -> int:
    return int(connection.execute(f"SELECT COUNT(*) FROM files f WHERE {sql}", parameters).fetchone()[0])


def _ask(connection: sqlite3.Connection, asked: str, parameters: Sequence[object], shows: Shows | None) -> list[int]:
    """Give the ids of an ordered question; as one text where all are shown, which is quicker than row after row."""
    if shows is not None:
        rows = connection.execute(f"SELECT f.id, f.path, f.target {asked}", parameters)
        return [int(i) for i, path, target in rows if shows(path, target)]
    told = connection.execute(f"SELECT group_concat(id, ' ') FROM (SELECT f.id AS id {asked})", parameters)
    return list(map(int, (told.fetchone()[0] or "").split()))
