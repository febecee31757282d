"""Count the files of each folder."""

import sqlite3
from dataclasses import dataclass

from knapper.index.conditions import Condition, folder_key
from knapper.vault import paths
from knapper.vault.paths import NotePath


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
    rows = connection.execute(
        f"SELECT MIN(f.path), COUNT(*) FROM files f INDEXED BY files_folder WHERE {sql} GROUP BY f.folder_key",
        parameters,
    )
    depth = len(key.split("/")) if (key := folder_key(below)) else 0
    names: dict[str, str] = {}
    files: dict[str, int] = {}
    for path, number in rows:
        parts = paths.folder(path).split("/") if "/" in path else []
        if len(parts) > depth:
            name = "/".join(parts[: depth + 1])
            folded = paths.key(name)
            names[folded] = min(names.get(folded, name), name)
            files[folded] = files.get(folded, 0) + int(number)
    found = [FolderCount(path=NotePath(name), files=files[folded]) for folded, name in names.items()]
    return sorted(found, key=lambda one: one.path)
