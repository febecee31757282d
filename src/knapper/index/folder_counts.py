"""Count the files of each folder."""

import sqlite3
from dataclasses import dataclass

from knapper.index.conditions import Condition, folder_key
from knapper.vault.paths import NotePath

_BELOW = "(f.folder_key = ? OR (f.folder_key >= ? AND f.folder_key < ?))"
_LAST = "\U0010ffff"
"""Comes after every other character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCount:
    """Say how many files lie in a folder and below it."""

    path: NotePath
    files: int


def count(connection: sqlite3.Connection, condition: Condition, below: str) -> list[FolderCount]:
    """Give the folders right below one that hold files that pass, with how many at any depth; by path.

    Args:
        connection: To the index.
        condition: Which files count.
        below: The folder; empty for the vault's own.
    """
    sql, parameters = condition
    found: list[FolderCount] = []
    for key in _children(connection, folder_key(below)):
        row = connection.execute(
            f"SELECT MIN(f.path), COUNT(*) FROM files f INDEXED BY files_folder WHERE {sql} AND {_BELOW}",
            (*parameters, key, f"{key}/", f"{key}0"),
        ).fetchone()
        if row[1]:
            path = "/".join(str(row[0]).split("/")[: key.count("/") + 1])
            found.append(FolderCount(path=NotePath(path), files=int(row[1])))
    return sorted(found, key=lambda one: one.path)


def _children(connection: sqlite3.Connection, below: str) -> list[str]:
    """Find the folded paths of the folders right below one, leaping over what lies in each."""
    prefix = f"{below}/" if below else ""
    stop = f"{below}0" if below else _LAST  # "0" comes right after "/"
    found: dict[str, None] = {}
    at = prefix
    sql = "SELECT MIN(folder_key) FROM files INDEXED BY files_folder WHERE folder_key > ? AND folder_key < ?"
    while (row := connection.execute(sql, (at, stop)).fetchone()[0]) is not None:
        key = str(row)
        child = prefix + key[len(prefix) :].partition("/")[0]
        found[child] = None
        at = key if key == child else f"{child}/{_LAST}"
    return list(found)
