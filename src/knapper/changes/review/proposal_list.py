"""List proposals by what they are about."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from knapper.changes.review import proposal_rows
from knapper.changes.review.proposal_records import Page, Status, Summary
from knapper.vault import paths
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Say which proposals are wanted; what is empty or None is no condition."""

    status: Status | None = None
    client: str = ""
    run: str = ""
    path: str = ""
    """A file's path before or after a move, or a folder's: whatever lies below counts."""
    visible: Callable[[NotePath], bool] | None = None
    """Which files the reader may know of; what was asked for others isn't listed."""


_SEEN: Final = "(visible(path) AND visible(coalesce(target, path)))"
_HOLDS: Final = f"""EXISTS (SELECT 1 FROM files WHERE proposal = proposals.id AND (
    key(path) = :path OR key(target) = :path
    OR substr(key(path), 1, length(:path) + 1) = :path || '/'
    OR substr(key(target), 1, length(:path) + 1) = :path || '/') AND {_SEEN})"""  # noqa: S608 - constant text of ours
_HIDDEN: Final = f"""NOT EXISTS (SELECT 1 FROM files WHERE proposal = proposals.id AND cause = 'asked'
    AND NOT {_SEEN})"""  # noqa: S608 - as above
_CONDITIONS: Final = {
    "status": "status = :status",
    "client": "client = :client",
    "run": "run = :run",
    "path": _HOLDS,
}
_COUNTS: Final = f"""SELECT CASE WHEN state = 'open' AND stale IS NOT NULL THEN 'stale' ELSE state END, count(*)
    FROM items WHERE proposal = :id AND file IN (SELECT number FROM files WHERE proposal = :id AND {_SEEN})
    GROUP BY 1"""  # noqa: S608 - as above
_FIRST: Final = f"""SELECT path, count(*) OVER () AS files FROM files WHERE proposal = ? AND {_SEEN}
    ORDER BY number LIMIT 1"""  # noqa: S608 - as above


def page(database: sqlite3.Connection, wanted: Wanted, limit: int, offset: int) -> Page:
    """Give a stretch of the list, newest first."""
    _prepare(database, wanted)
    values = {
        "status": wanted.status or "",
        "client": wanted.client,
        "run": wanted.run,
        "path": paths.name_key(wanted.path.strip("/")),
    }
    tests = [_CONDITIONS[name] for name, value in values.items() if value]
    where = " AND ".join([*tests, *([_HIDDEN] if wanted.visible else []), "1"])
    stretch = {**values, "limit": limit, "offset": offset}
    total = database.execute(f"SELECT count(*) FROM proposals WHERE {where}", values).fetchone()[0]  # noqa: S608
    rows = database.execute(
        f"SELECT * FROM proposals WHERE {where} ORDER BY seq DESC LIMIT :limit OFFSET :offset",  # noqa: S608
        stretch,
    ).fetchall()
    found = tuple(_summary(database, row) for row in rows)
    return Page(proposals=found, total=int(total), limit=limit, offset=offset)


def _prepare(database: sqlite3.Connection, wanted: Wanted) -> None:
    """Teach the database what it can't know."""

    def key(path: str | None) -> str | None:
        return None if path is None else paths.name_key(path)

    def visible(path: str) -> bool:
        return wanted.visible is None or wanted.visible(NotePath(path))

    database.create_function("key", 1, key, deterministic=True)
    database.create_function("visible", 1, visible)


def _summary(database: sqlite3.Connection, row: sqlite3.Row) -> Summary:
    first = database.execute(_FIRST, (row["id"],)).fetchone()
    counts = {state: int(count) for state, count in database.execute(_COUNTS, {"id": row["id"]})}
    return Summary(
        id=row["id"],
        client=row["client"],
        run=row["run"],
        created=datetime.fromisoformat(row["created"]),
        expires=datetime.fromisoformat(row["expires"]),
        status=row["status"],
        reason=row["reason"],
        why=row["why"],
        tainted=bool(row["tainted"]),
        files=first["files"] if first else 0,
        path=NotePath(first["path"] if first else ""),
        items={
            "open": counts.get("open", 0),
            "stale": counts.get("stale", 0),
            "accepted": counts.get("accepted", 0),
            "rejected": counts.get("rejected", 0),
        },
        changes=proposal_rows.changes(database, row["id"]),
    )
