"""The status of the index: its counts, what it lacks and why, and whether results may be incomplete."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knapper.index import database, store
from knapper.index.arrays import np
from knapper.index.store import IndexStore
from knapper.vault import walk
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Whether results may be incomplete, and why."""

    stale: int = 0
    """Files that are known to differ from the index."""
    unchecked: bool = False
    """The time of a search was too short to check every file for changes, and no watcher is running."""
    incomplete: bool = False
    """The whole vault hasn't been read yet, or the index is damaged."""
    damaged: bool = False
    """The index has to be rebuilt, and answers may be wrong until then."""
    filling: bool = False
    """A process is indexing the missing files right now."""
    pending: int = 0
    """Chunks without a vector, which search by meaning can't find yet."""
    as_of: str = ""
    """ISO time with zone until when all saved changes are in the index; empty where nothing is."""
    notices: tuple[str, ...] = ()
    """What the client should know of the vault itself."""

    @property
    def is_current(self) -> bool:
        """Return whether all that was saved before the check is in the index."""
        return not (self.stale or self.unchecked or self.incomplete)


_MAX_LISTED = 50
_SKIPPED_META = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file or folder that is missing in the index, wholly or in part, with the reason."""

    path: NotePath
    code: str
    message: str
    line: int
    """0 where no line applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """The index's counts of the files that the client may see."""

    notes: int
    files: int
    """Notes, canvases, bases and attachments."""
    chunks: int
    embedded: int
    pending: int
    """Chunks without a vector of the model; 0 where no model is set."""
    problems: int
    """Files that couldn't be read, wholly or in part."""
    skipped: tuple[SkippedFile, ...]
    """The first problems, by path."""
    model: str
    """Empty for search by words only."""
    replaced_model: str
    """Whose vectors are being replaced by those of the model, chunk by chunk; empty for none."""
    size_bytes: int
    complete: bool
    """Whether the whole vault has been read once."""
    built: str
    """Time of the last indexing, ISO in UTC; empty before the first one."""
    generation: int


def store_skipped(store: IndexStore, skipped: Iterable[walk.Skipped]) -> list[str]:
    """Store the files that a full scan couldn't list; return the new messages."""
    rows = [[entry.path, entry.code, entry.message] for entry in skipped]
    stored_rows = _read_skipped(store)
    if rows != stored_rows:
        store.set_meta(_SKIPPED_META, json.dumps(rows, ensure_ascii=False))
    return [entry[2] for entry in rows if entry not in stored_rows]


def read_status(
    store: IndexStore,
    connection: sqlite3.Connection,
    *,
    model: str,
    allowed: NDArray[np.bool_] | None,
    policy: Policy | None = None,
) -> IndexStatus:
    """Count the index's contents.

    Args:
        store: The index.
        connection: Its snapshot.
        model: The embedder's id; empty where there is none.
        allowed: Mask by file id of the files to count; None counts all.
        policy: Applied to files that couldn't be listed and have no id.
    """
    kinds = _count_kinds(connection, allowed)
    problem_files = [
        (path, problems)
        for i, path, problems in connection.execute(
            "SELECT id, path, problems FROM files WHERE problems != '[]' ORDER BY path"
        )
        if allowed is None or allowed[i]
    ]
    skipped_files = [
        SkippedFile(path=NotePath(path), **problem)
        for path, problems in problem_files[:_MAX_LISTED]
        for problem in json.loads(problems)
    ]
    unlisted = [
        SkippedFile(path=NotePath(path), code=code, message=message, line=0)
        for path, code, message in _read_skipped(store)
        if policy is None or policy.visible(NotePath(path))
    ]
    chunks = _count_chunks(connection, "SELECT id FROM chunks", (), allowed)
    embedded = _count_embedded(connection, model, chunks, allowed) if model else 0
    return IndexStatus(
        notes=kinds.get("note", 0),
        files=sum(kinds.values()),
        chunks=chunks,
        embedded=embedded,
        pending=chunks - embedded if model else 0,
        problems=len(problem_files) + len(unlisted),
        skipped=(*skipped_files, *unlisted[:_MAX_LISTED]),
        model=model,
        replaced_model=_find_replaced_model(connection, model) if chunks > embedded and model else "",
        size_bytes=store.database.size_bytes(),
        complete=store.meta("complete") == "1",
        built=store.meta("built"),
        generation=store.generation(),
    )


def _read_skipped(store: IndexStore) -> list[list[str]]:
    """Return path, code and message of the files that the last full scan couldn't list."""
    rows: list[list[str]] = json.loads(store.meta(_SKIPPED_META) or "[]")
    return rows


def _count_kinds(connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None) -> dict[str, int]:
    """Count files by kind."""
    if allowed is None:
        return {str(kind): int(n) for kind, n in connection.execute("SELECT kind, COUNT(*) FROM files GROUP BY kind")}
    rows = connection.execute("SELECT kind, group_concat(id, ' ') FROM files GROUP BY kind")
    return {str(kind): _count_allowed(ids, allowed) for kind, ids in rows}


def _count_embedded(connection: sqlite3.Connection, model: str, chunks: int, allowed: NDArray[np.bool_] | None) -> int:
    """Count the chunks with a vector of *model*."""
    if allowed is None:
        return chunks - store.count_unembedded(connection, model)
    if store.is_queue_for(connection, model):
        return chunks - _count_chunks(connection, "SELECT chunk_id AS id FROM waiting", (), allowed)
    return _count_chunks(connection, "SELECT chunk_id AS id FROM vectors WHERE model = ?", (model,), allowed)


def _find_replaced_model(connection: sqlite3.Connection, model: str) -> str:
    """Return the model of which chunks that wait still have a vector; empty where they never had one."""
    waiting = "(SELECT chunk_id FROM waiting LIMIT 100) NATURAL JOIN vectors"
    source = waiting if store.is_queue_for(connection, model) else "vectors"
    row = connection.execute(f"SELECT model FROM {source} WHERE model != ? LIMIT 1", (model,)).fetchone()
    return str(row[0]) if row else ""


def _count_chunks(
    connection: sqlite3.Connection, sql: str, parameters: tuple[str, ...], allowed: NDArray[np.bool_] | None
) -> int:
    """Count the chunk ids of allowed files."""
    if allowed is None:
        return int(connection.execute(f"SELECT COUNT(*) FROM ({sql})", parameters).fetchone()[0])
    files = connection.execute(f"SELECT group_concat(id >> {database.CHUNK_BITS}, ' ') FROM ({sql})", parameters)
    return _count_allowed(files.fetchone()[0], allowed)


def _count_allowed(files: str | None, allowed: NDArray[np.bool_]) -> int:
    """Count the allowed ids in a text; one text is read faster than many rows."""
    return int(np.count_nonzero(allowed[np.fromstring(files or "", np.int64, sep=" ")]))
