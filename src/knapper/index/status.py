"""Say what the index holds, what it lacks, and why."""

import json
from dataclasses import dataclass

from knapper.index.store import Store

_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Name a file that the index holds only in part, and the reason."""

    path: str
    code: str
    message: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Count what the index holds."""

    notes: int
    files: int
    """Notes, canvases, bases and attachments."""
    chunks: int
    embedded: int
    pending: int
    """Chunks that have no vector of the model yet; 0 where no model is set."""
    problems: int
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


def of(store: Store, *, model: str) -> Status:
    """Count what *store* holds, as seen by an embedder with the id *model*."""
    with store.database.snapshot() as connection:

        def one(sql: str, *parameters: object) -> int:
            return int(connection.execute(sql, parameters).fetchone()[0])

        chunks = one("SELECT COUNT(*) FROM chunks")
        embedded = one("SELECT COUNT(*) FROM vectors WHERE model = ?", model) if model else 0
        rows = connection.execute(
            "SELECT path, problems FROM files WHERE problems != '[]' ORDER BY path LIMIT ?", (_SHOWN,)
        ).fetchall()
        skipped = [Skipped(path=path, **problem) for path, problems in rows for problem in json.loads(problems)]
        return Status(
            notes=one("SELECT COUNT(*) FROM files WHERE kind = 'note'"),
            files=one("SELECT COUNT(*) FROM files"),
            chunks=chunks,
            embedded=embedded,
            pending=chunks - embedded if model else 0,
            problems=one("SELECT COUNT(*) FROM files WHERE problems != '[]'"),
            skipped=tuple(skipped),
            model=model,
            size_bytes=store.database.size_bytes(),
            complete=store.meta("complete") == "1",
            built=store.meta("built"),
            generation=store.generation(),
        )
