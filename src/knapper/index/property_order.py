"""Put files in the order of a property, with what its index holds in order already."""

import json
import sqlite3

import numpy as np
from numpy.typing import NDArray

_LOOKED_UP = 1_000
"""Files that are looked up one by one; of more it is quicker to go through all that hold the property."""
_FILES = (
    "SELECT group_concat(id, ' ') FROM ("
    "SELECT CASE WHEN number IS NULL THEN -file_id ELSE file_id END AS id FROM properties WHERE {held} ORDER BY item)"
)  # the sign tells texts from numbers, and one text is quicker than row after row
_ITEMS = "SELECT COUNT(*), MAX(number) FROM properties WHERE {held} GROUP BY item ORDER BY item"


def sort(
    connection: sqlite3.Connection, ids: NDArray[np.int64], key: str, *, descending: bool = False
) -> NDArray[np.int64]:
    """Sort files by a property: numbers before texts, a list by its least element, files without it last either way.

    Args:
        connection: The index, in one state.
        ids: The files, in the order that those with equal values keep.
        key: The property's folded name.
        descending: Whether numbers go down, and so do texts after them.
    """
    few = len(ids) <= _LOOKED_UP  # the plus keeps SQLite from going through all of the property for them
    held = "+key = ? AND file_id IN (SELECT value FROM json_each(?))" if few else "key = ?"
    parameters = (key, json.dumps(ids.tolist())) if few else (key,)
    text = connection.execute(_FILES.format(held=held), parameters).fetchone()[0]
    items = connection.execute(_ITEMS.format(held=held), parameters).fetchall()
    if not items:
        return ids
    files = np.fromstring(text, np.int64, sep=" ")
    places = np.full(max(np.abs(files).max(), ids.max(initial=0)) + 1, 2 * len(items))
    np.minimum.at(places, np.abs(files), _places(files > 0, items))
    return ids[np.argsort(_down(places[ids], len(items)) if descending else places[ids], kind="stable")]


def _places(numeric: NDArray[np.bool_], items: list[tuple[int, float | None]]) -> NDArray[np.int64]:
    """Give each element's place among the items: numbers first, by number and then as they are written, then texts.

    Args:
        numeric: Tells of each element, in order of its item, whether it is a number; a text may be written like one.
        items: Of each: how many elements are written so, and the number that they stand for.
    """
    counts, numbers = zip(*items, strict=True)
    by_number = np.empty(len(items), np.int64)
    by_number[np.argsort(np.array(numbers, np.float64), kind="stable")] = np.arange(len(items))
    item = np.repeat(np.arange(len(items)), counts)
    return np.where(numeric, by_number[item], len(items) + item)


def _down(places: NDArray[np.int64], items: int) -> NDArray[np.int64]:
    """Turn the places of numbers round, and those of texts; files without the property stay last."""
    ends = np.array([items - 1, 3 * items - 1, 4 * items])
    return ends[places // items] - places
