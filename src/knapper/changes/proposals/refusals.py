"""Log what the rules refused programs, in the file of the proposals, and list it."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from knapper.changes.disk.storage import SharedDatabase
from knapper.changes.proposals import tables

_MAX_ROWS: Final = 1_000
_MAX_CLIENT_ROWS: Final = 200
"""Of one client, so that it can't push out those of others."""
_ROWS_A_MINUTE: Final = 30
"""Of one client and process; more are only counted, so that asking often costs the disk nothing."""
_MAX_CHARS: Final = 500
UNRECORDED: Final = "further requests, which aren't recorded one by one"
_PRUNE: Final = """DELETE FROM refusals WHERE (:client = '' OR client = :client) AND id NOT IN
    (SELECT id FROM refusals WHERE :client = '' OR client = :client ORDER BY at DESC, id DESC LIMIT :limit)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """What a client's rules refused it, without any content of it."""

    path: str
    """Empty where the client may not know of the file, or it wanted to change several."""
    action: str
    """What it wanted: ``edited``, ``created``, ``moved``, ``trashed`` or ``linked``; empty if that isn't one thing."""
    reason: str
    times: int = 1
    """How often it wanted that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRefusal:
    """One row of the log of refused requests."""

    id: int
    client: str
    run: str
    at: datetime
    """The last time."""
    request: RefusedRequest


class RefusalLog:
    """Log of what clients were refused; equal requests are one row with a count, and only the latest rows stay."""

    def __init__(self, own: SharedDatabase, clock: Callable[[], datetime]) -> None:
        """Wrap the file of the proposals."""
        self._ledger = own
        self._clock = clock
        self._guard = threading.Lock()
        self._minutes: dict[str, tuple[datetime, int, int]] = {}
        """By client: when its minute began, how many it was refused in it, and how many of them aren't in the file."""

    def log(self, client: str, run: str, requests: Sequence[RefusedRequest]) -> None:
        """Record what a client was refused; on a disk that can't be written, nothing.

        Raises:
            StorageError: The disk refuses.
        """
        now = self._clock()
        with self._guard:
            # What is too much for its minute is one row, or counted for the next minute.
            began, used, left_out = self._minutes.get(client, (now, 0, 0))
            if not began <= now < began + timedelta(minutes=1):
                began, used = now, 0
            admitted = list(requests[: max(_ROWS_A_MINUTE - used, 0)])
            left_out += len(requests) - len(admitted)
            if left_out and used <= _ROWS_A_MINUTE:
                admitted.append(RefusedRequest(path="", action="", reason=UNRECORDED, times=left_out))
                left_out = 0
            self._minutes[client] = (began, used + len(requests), left_out)
        if not admitted or self._ledger.is_read_only:
            return
        at = tables.format_time(now)
        rows = [
            (client, run, path, one.action, one.reason[:_MAX_CHARS], at, one.times)
            for one in admitted
            for path in ["" if len(one.path) > _MAX_CHARS else one.path]
        ]
        with self._ledger.writing() as database:
            database.executemany(
                "INSERT INTO refusals (client, run, path, action, reason, at, times) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET at = excluded.at, times = times + excluded.times",
                rows,
            )
            database.execute(_PRUNE, {"client": client, "limit": _MAX_CLIENT_ROWS})
            database.execute(_PRUNE, {"client": "", "limit": _MAX_ROWS})

    def latest(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        client: str = "",
        limit: int,
        offset: int = 0,
    ) -> list[LoggedRefusal]:
        """List what was refused, the latest first.

        Args:
            since: The earliest time, or None.
            until: The latest time, or None.
            client: Only what this client was refused; empty for all.
            limit: How many at most.
            offset: How many to leave out before.
        """
        values = {
            "from": tables.format_time(since) if since else "",
            "to": tables.format_time(until) if until else "",
            "client": client,
        }
        with self._ledger.reading() as database:
            rows = database.execute(
                "SELECT * FROM refusals WHERE at >= :from AND (:to = '' OR at <= :to)"
                " AND (:client = '' OR client = :client)"
                " ORDER BY at DESC, id DESC LIMIT :limit OFFSET :offset",
                {**values, "limit": limit, "offset": offset},
            ).fetchall()
        refusals: list[LoggedRefusal] = []
        for row in rows:
            request = RefusedRequest(path=row["path"], action=row["action"], reason=row["reason"], times=row["times"])
            at = datetime.fromisoformat(row["at"])
            refusals.append(LoggedRefusal(id=row["id"], client=row["client"], run=row["run"], at=at, request=request))
        return refusals
