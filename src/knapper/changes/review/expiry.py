"""End proposals that waited too long, and delete those that ended long ago."""

from knapper.changes.disk.ledger import Ledger
from knapper.changes.review import proposal_rows

_DUE = "status IN ('open', 'stale') AND expires <= ?"


def expire(own: Ledger, now: str) -> None:
    """Mark the proposals whose time is over; nothing is written where there is none."""
    with own.reading() as database:
        if not database.execute(f"SELECT 1 FROM proposals WHERE {_DUE} LIMIT 1", (now,)).fetchone():  # noqa: S608
            return
    with own.writing() as database:
        database.execute(f"UPDATE proposals SET status = 'expired' WHERE {_DUE}", (now,))  # noqa: S608


def prune(own: Ledger, oldest: str) -> int:
    """Delete proposals that were closed, and made before a time; tell how many."""
    with own.reading() as database:
        found = database.execute(
            "SELECT id FROM proposals WHERE status NOT IN ('open', 'stale') AND created < ?", (oldest,)
        ).fetchall()
    if not found:
        return 0
    with own.writing() as database:
        for row in found:
            proposal_rows.drop(database, row["id"])
    return len(found)
