"""The status of the index: its counts, what it lacks and why, and whether it holds what was stored in it."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.errors import KnapError, StorageError
from knapper.index import database, store
from knapper.index.documents import check_digests, damage_error, digest_rows, vector_checksum
from knapper.index.store import IndexStore
from knapper.index.words import fts5
from knapper.system import private
from knapper.system.arrays import np
from knapper.vault import walk
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from knapper.index.database import Database


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
    """0 for who may not see every file: it would tell how much more there is."""
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
    if allowed is None:
        kinds = {str(kind): int(n) for kind, n in connection.execute("SELECT kind, COUNT(*) FROM files GROUP BY kind")}
    else:
        rows = connection.execute("SELECT kind, group_concat(id, ' ') FROM files GROUP BY kind")
        kinds = {str(kind): _count_allowed(ids, allowed) for kind, ids in rows}
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
        size_bytes=store.database.size_bytes() if allowed is None else 0,
        complete=store.meta("complete") == "1",
        built=store.meta("built"),
        generation=store.generation(),
    )


def _read_skipped(store: IndexStore) -> list[list[str]]:
    """Return path, code and message of the files that the last full scan couldn't list."""
    rows: list[list[str]] = json.loads(store.meta(_SKIPPED_META) or "[]")
    return rows


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


_WATCH_FAILURE_FILE: Final = "watch.failed"
_WATCH_FAILURE_KEPT_S: Final = 600.0
"""A failure that is older counts for nothing: a watch that still fails has recorded it again, or was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFailure:
    """A watch that has failed, in whichever process, and hasn't begun again."""

    since: dt.datetime
    reason: str
    """The error's code, or its type's name; nothing of a note."""


def record_watch_failure(folder: Path, error: Exception | None) -> None:
    """Record beside an index that its watch has failed, until that is cleared; the first time of several counts.

    Args:
        folder: The index's own.
        error: What has ended the watch; None where the system's reports of changes have failed.
    """
    known = _read_watch_failure(folder)
    since = known.since if known else dt.datetime.now().astimezone()
    reason = error.code if isinstance(error, KnapError) else type(error).__name__ if error else "no_reports"
    record = json.dumps({"since": since.isoformat(timespec="seconds"), "reason": reason})
    with suppress(OSError):  # such as a full disk, which may be why the watch has failed: that error goes on
        private.write_text(folder / _WATCH_FAILURE_FILE, record)


def clear_watch_failure(folder: Path) -> None:
    """Record that a vault is watched again, or isn't to be."""
    with suppress(OSError):  # a folder that can't be written has no record, or one that soon counts for nothing
        (folder / _WATCH_FAILURE_FILE).unlink(missing_ok=True)


def find_watch_failure(folder: Path) -> WatchFailure | None:
    """Return why a vault isn't watched that should be; None where it is, or where nobody tries."""
    try:
        age_s = time.time() - (folder / _WATCH_FAILURE_FILE).stat().st_mtime
    except OSError:
        return None
    return _read_watch_failure(folder) if abs(age_s) < _WATCH_FAILURE_KEPT_S else None


def _read_watch_failure(folder: Path) -> WatchFailure | None:
    try:
        record = json.loads((folder / _WATCH_FAILURE_FILE).read_text(encoding="utf-8"))
        return WatchFailure(since=dt.datetime.fromisoformat(record["since"]), reason=str(record["reason"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


_FULL_TEXT_TABLES: Final = ("chunk_words", "title_words", "name_grams", "property_grams")


def find_damage(index: Database, *, words_too: bool = True) -> str:
    """Check the whole file and its texts, and compare its words with them.

    Args:
        index: The index.
        words_too: Whether the full-text tables must hold the words of the texts and no others, which takes as long
            again; else only whether they can be read.

    Returns:
        What is wrong; empty where nothing is, or where the disk doesn't let the file be checked.
    """
    try:
        with index.snapshot() as connection:
            verdict = " ".join(str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0]).split())
            if verdict != "ok":
                return verdict
            if not database.has_own_schema(connection):
                return "the schema isn't the one that was stored"
            _check_rows(connection)
            if words_too:
                _check_recorded(connection, index.path.parent)
                if any(index.path.parent.glob(f"{database.VECTORS_PREFIX}*")):
                    from knapper.index import vectors  # noqa: PLC0415 - only a large index has such a file

                    vectors.remove_wrong(connection, index.path.parent)
        # Source: SQLite FTS5 documentation, "The 'integrity-check' Command", which writes nothing; with a rank of 1 it
        # reads the texts, too.
        with index.transaction(counts=False) as connection:
            for table in _FULL_TEXT_TABLES:
                connection.execute(
                    f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', ?)", (int(words_too),)
                )
    except (sqlite3.Error, StorageError) as error:
        if not database.is_damage(error):
            return ""
        return database.describe_damage(error)
    except (ValueError, LookupError, OverflowError) as error:
        # Values of another type or out of their range than those that were stored.
        return database.describe_damage(error)
    return ""


def _check_recorded(connection: sqlite3.Connection, folder: Path) -> None:
    """Check what was recorded beside a derived file of postings, which has checksums of its own."""
    if not fts5.is_recording(connection):
        return
    from knapper.index.words import postings  # noqa: PLC0415 - only a large index has such a file

    damage = fts5.find_wrong_record(connection) or postings.find_wrong_rows(connection, folder)
    if damage:
        raise damage_error(damage)


def _check_rows(connection: sqlite3.Connection) -> None:
    """Compare files, vectors and chunks with their digests, which fails where a text can't be decoded."""
    for file_id, digest in connection.execute("SELECT id, rows_digest FROM files"):
        if digest_rows(connection, file_id) != digest:
            raise damage_error("a row isn't the one that was stored")
    for chunk_id, model, vector, checksum in connection.execute(
        "SELECT chunk_id, model, vector, checksum FROM vectors"
    ):
        if vector_checksum(chunk_id, model, vector) != checksum:
            raise damage_error("a vector isn't one that was stored")
    rows = connection.execute(
        "SELECT f.path, c.kind, c.path, c.text, c.digest FROM chunks c"
        f" JOIN files f ON f.id = c.id >> {database.CHUNK_BITS}"
    )
    check_digests(rows)
