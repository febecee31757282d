"""List what was changed."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from knapper.changes.disk.journal import Journal
from knapper.changes.disk.records import Change

LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Say which changes are wanted; what is empty or None is no condition."""

    client: str = ""
    run: str = ""
    proposal: str = ""
    path: str = ""
    """A file's path before or after, or a folder's: whatever lies below counts."""
    since: datetime | None = None
    sees: Callable[[str], bool] | None = None
    """Asked for the paths of files and folders; a change of none that is seen is left out. None sees all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Hold a stretch of the list, newest first."""

    changes: tuple[Change, ...]
    total: int
    limit: int
    offset: int


_PATH = """id IN (
    SELECT change FROM steps WHERE source = :path OR target = :path
    OR substr(source, 1, length(:path) + 1) = :path || '/' OR substr(target, 1, length(:path) + 1) = :path || '/'
    OR is_folder AND (substr(:path, 1, length(source) + 1) = source || '/'
        OR substr(:path, 1, length(target) + 1) = target || '/'))"""
_ENDS = "SELECT change, source, target FROM steps WHERE kind NOT IN ('mkdir', 'rmdir')"
_AMONG = "id IN (SELECT value FROM json_each(:seen))"
_CONDITIONS = {
    "client": "client = :client",
    "run": "run = :run",
    "proposal": "proposal = :proposal",
    "path": _PATH,
    "since": "at >= :since",
}


def list_changes(journal: Journal, wanted: Wanted | None = None, *, limit: int = LIMIT, offset: int = 0) -> Page:
    """List changes that hold, newest first; undone ones and undos count.

    Args:
        journal: Where they are.
        wanted: Which; None for all.
        limit: How many.
        offset: How many of the newest are left out.
    """
    wanted = wanted or Wanted()
    where, values = _conditions(wanted)
    if wanted.sees:
        where, values = _seen(journal, where, values, wanted.sees)
    stretch = {**values, "limit": limit, "offset": offset}
    found = journal.select(f"{where} ORDER BY seq DESC LIMIT :limit OFFSET :offset", stretch)
    return Page(changes=tuple(found), total=journal.count(where, values), limit=limit, offset=offset)


def _seen(
    journal: Journal, where: str, values: dict[str, object], sees: Callable[[str], bool]
) -> tuple[str, dict[str, object]]:
    """Narrow a condition to changes of which at least one file is seen."""
    with journal.reading() as database:
        asked = f"{_ENDS} AND change IN (SELECT id FROM changes WHERE {where})"  # noqa: S608 - constant text of ours
        rows = database.execute(asked, values).fetchall()
    ids = {change for change, *ends in rows if all(sees(end) for end in ends if end)}
    return f"{where} AND {_AMONG}", {**values, "seen": json.dumps(sorted(ids))}


def moment(at: datetime) -> str:
    """Write a time as the journal does; one without a zone is in the system's."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _conditions(wanted: Wanted) -> tuple[str, dict[str, object]]:
    values: dict[str, object] = {
        "client": wanted.client,
        "run": wanted.run,
        "proposal": wanted.proposal,
        "path": wanted.path,
        "since": moment(wanted.since) if wanted.since else "",
    }
    given = {name: value for name, value in values.items() if value}
    return " AND ".join(["phase IN ('applied', 'done')", *(_CONDITIONS[name] for name in given)]), given
