"""Say what the index holds, what it lacks, and why."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knapper.index import schema, waiting
from knapper.index.store import Store
from knapper.vault import walk
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath

_SHOWN = 50
_META = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Name a file or folder that the index holds only in part, or not at all, and the reason."""

    path: NotePath
    code: str
    message: str
    line: int
    """0 where it isn't about a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Count what the index holds of the files that the asker may see."""

    notes: int
    files: int
    """Notes, canvases, bases and attachments."""
    chunks: int
    embedded: int
    pending: int
    """Chunks that have no vector of the model yet; 0 where no model is set."""
    problems: int
    """Files that could be read only in part, or not at all."""
    skipped: tuple[Skipped, ...]
    """The first problems, by path."""
    model: str
    """Empty where search goes by words only."""
    size_bytes: int
    complete: bool
    """The vault has been read once from end to end."""
    built: str
    """When the index last took something in, ISO in UTC; empty before the first time."""
    generation: int


def remember_skipped(store: Store, skipped: Iterable[walk.Skipped]) -> list[str]:
    """Keep what a look through the whole vault left out though no rule says so; give the messages that are new."""
    found = [[each.path, each.code, each.message] for each in skipped]
    known = _remembered(store)
    if found != known:
        store.set_meta(_META, json.dumps(found, ensure_ascii=False))
    return [each[2] for each in found if each not in known]


def of(
    store: Store,
    connection: sqlite3.Connection,
    *,
    model: str,
    allowed: NDArray[np.bool_] | None,
    policy: Policy | None = None,
) -> Status:
    """Count what the index holds.

    Args:
        store: The index.
        connection: Its snapshot.
        model: The embedder's id; empty where there is none.
        allowed: By file id: whether it counts; None counts all.
        policy: Says the same of what has no id, since it couldn't even be listed.
    """
    kinds = _kinds(connection, allowed)
    broken = [
        (path, problems)
        for i, path, problems in connection.execute(
            "SELECT id, path, problems FROM files WHERE problems != '[]' ORDER BY path"
        )
        if allowed is None or allowed[i]
    ]
    skipped = [
        Skipped(path=NotePath(path), **problem)
        for path, problems in broken[:_SHOWN]
        for problem in json.loads(problems)
    ]
    unlisted = [
        Skipped(path=NotePath(path), code=code, message=message, line=0)
        for path, code, message in _remembered(store)
        if policy is None or policy.visible(NotePath(path))
    ]
    chunks = _count(connection, "SELECT id FROM chunks", (), allowed)
    embedded = _embedded(connection, model, chunks, allowed) if model else 0
    return Status(
        notes=kinds.get("note", 0),
        files=sum(kinds.values()),
        chunks=chunks,
        embedded=embedded,
        pending=chunks - embedded if model else 0,
        problems=len(broken) + len(unlisted),
        skipped=(*skipped, *unlisted[:_SHOWN]),
        model=model,
        size_bytes=store.database.size_bytes(),
        complete=store.meta("complete") == "1",
        built=store.meta("built"),
        generation=store.generation(),
    )


def _remembered(store: Store) -> list[list[str]]:
    """Give path, code and message of what the last look through the whole vault left out."""
    found: list[list[str]] = json.loads(store.meta(_META) or "[]")
    return found


def _kinds(connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None) -> dict[str, int]:
    """Count files by kind."""
    if allowed is None:
        return {str(kind): int(n) for kind, n in connection.execute("SELECT kind, COUNT(*) FROM files GROUP BY kind")}
    rows = connection.execute("SELECT kind, group_concat(id, ' ') FROM files GROUP BY kind")
    return {str(kind): _passing(ids, allowed) for kind, ids in rows}


def _embedded(connection: sqlite3.Connection, model: str, chunks: int, allowed: NDArray[np.bool_] | None) -> int:
    """Count chunks that have a vector of *model*."""
    if allowed is None:
        return chunks - waiting.count(connection, model)
    if waiting.is_about(connection, model):
        return chunks - _count(connection, "SELECT chunk_id AS id FROM waiting", (), allowed)
    return _count(connection, "SELECT chunk_id AS id FROM vectors WHERE model = ?", (model,), allowed)


def _count(
    connection: sqlite3.Connection, sql: str, parameters: tuple[str, ...], allowed: NDArray[np.bool_] | None
) -> int:
    """Count chunk ids whose file counts."""
    if allowed is None:
        return int(connection.execute(f"SELECT COUNT(*) FROM ({sql})", parameters).fetchone()[0])
    files = connection.execute(f"SELECT group_concat(id >> {schema.CHUNK_BITS}, ' ') FROM ({sql})", parameters)
    return _passing(files.fetchone()[0], allowed)


def _passing(files: str | None, allowed: NDArray[np.bool_]) -> int:
    """Count the ids in a text that pass; as one text they are read quicker than row after row."""
    return int(np.count_nonzero(allowed[np.fromstring(files or "", np.int64, sep=" ")]))
