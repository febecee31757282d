"""Find the files whose names are like a mistyped one's, from the index alone."""

import json
import sqlite3
from collections.abc import Generator, Iterator, Sequence

from knapper.vault import files, paths
from knapper.vault.paths import NotePath

_LOOKED_AT = 50_000
"""Names beyond which a mistyped path would be slow."""
_READ = 20
"""Paths that are read at once: most often the first few are those that are shown."""


def names(connection: sqlite3.Connection, path: NotePath) -> Iterator[NotePath] | None:
    """Give the paths whose names are like a path's own, the most like first; None where no file is known.

    Args:
        connection: The index.
        path: What was asked for, and isn't there.
    """
    ids, stems = _stems(connection, paths.name_key(paths.parent_folder(path)))
    if not ids:
        return None
    likeness = {ids[place]: score for score, place in files.score_stems(path, stems)}
    return _ordered(connection, path, sorted(likeness.items(), key=lambda one: -one[1]))


def _ordered(connection: sqlite3.Connection, path: NotePath, found: Sequence[tuple[int, float]]) -> Generator[NotePath]:
    """Read paths by likeness, some at once; those that are equally like belong together."""
    at = 0
    while at < len(found):
        last = found[min(at + _READ, len(found)) - 1][1]
        end = at + sum(1 for _, score in found[at:] if score >= last)
        yield from map(NotePath, files.order_by_likeness(path, _paths(connection, dict(found[at:end]))))
        at = end


def _stems(connection: sqlite3.Connection, here: str) -> tuple[Sequence[int], Sequence[str]]:
    """Read names as one text, with what no name holds between them; a folder's own are always among them."""
    rows = (
        "SELECT id, name_key FROM files WHERE folder_key = ?"
        " UNION ALL SELECT id, name_key FROM files INDEXED BY files_name_key LIMIT ?"
    )
    told = f"SELECT group_concat(id || '/' || name_key, '/') FROM ({rows})"
    said = str(connection.execute(told, (here, _LOOKED_AT)).fetchone()[0] or "").split("/")
    return [int(i) for i in said[::2] if i], [paths.stem(name) for name in said[1::2]]


def _paths(connection: sqlite3.Connection, scores: dict[int, float]) -> list[tuple[float, str]]:
    rows = connection.execute(
        "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(scores)),)
    )
    return [(scores[int(i)], str(path)) for i, path in rows]
