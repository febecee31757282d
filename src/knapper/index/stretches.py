"""Say which files are listed, and in which order, and ask SQLite for them."""

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from knapper.index import conditions, property_order
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
    by_path = replace(wanted, order=Order(descending=wanted.order.descending))
    found = np.array(ids(connection, by_path, shows=shows), np.int64)
    name = paths.name_key(wanted.order.name)
    return property_order.sort(connection, found, name, descending=wanted.order.descending).tolist()


def _ask(connection: sqlite3.Connection, asked: str, parameters: Sequence[object], shows: Shows | None) -> list[int]:
    """Give the ids of an ordered question; as one text where all are shown, which is quicker than row after row."""
    if shows is not None:
        rows = connection.execute(f"SELECT f.id, f.path, f.target {asked}", parameters)
        return [int(i) for i, path, target in rows if shows(path, target)]
    told = connection.execute(f"SELECT group_concat(id, ' ') FROM (SELECT f.id AS id {asked})", parameters)
    return np.fromstring(told.fetchone()[0] or "", np.int64, sep=" ").tolist()
