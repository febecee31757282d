"""Keep proposals in the tables of an SQLite file."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import cast

from knapper.changes.disk.ledger import Ledger, Stamp
from knapper.changes.drafts import Rewritten
from knapper.changes.review import item_rows, proposal_records
from knapper.changes.review.proposal_records import Proposal, Status
from knapper.errors import NotFound
from knapper.vault.access import Scope
from knapper.vault.paths import NotePath


class Reader:
    """Read proposals, and the one that was read last only once for as long as nothing is written."""

    def __init__(self, own: Ledger) -> None:
        """Read from a file."""
        self._ledger = own
        self._last: tuple[Stamp, Proposal] | None = None

    def get(self, database: sqlite3.Connection, proposal_id: str) -> Proposal:
        """Give a proposal.

        Args:
            database: Lent by the file.
            proposal_id: Which.

        Raises:
            NotFound: There is none of this id.
            StorageError: Its texts are damaged.
        """
        stamp = self._ledger.stamp(database)
        if stamp is not None and self._last is not None:
            then, last = self._last
            if (then, last.id) == (stamp, proposal_id):
                return last
        found = get(database, proposal_id)
        if stamp is not None:
            self._last = (stamp, found)
        return found


def add(database: sqlite3.Connection, proposal: Proposal) -> None:
    """Keep a new proposal."""
    database.execute(
        "INSERT INTO proposals (id, client, run, created, expires, status, reason, why, tainted, by_query, folders,"
        " notices, rewritten, scope) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            proposal.id,
            proposal.client,
            proposal.run,
            moment(proposal.created),
            moment(proposal.expires),
            proposal.status,
            proposal.reason,
            proposal.why,
            proposal.tainted,
            proposal.by_query,
            json.dumps(proposal.folders),
            json.dumps(proposal.notices),
            json.dumps([asdict(one) for one in proposal.rewritten]),
            None if proposal.scope.paths is None else json.dumps(sorted(proposal.scope.paths)),
        ),
    )
    if proposal.behalf:
        database.execute("INSERT INTO behalves VALUES (?, ?)", (proposal.id, proposal.behalf))
    item_rows.put(database, proposal.id, proposal.files)


def get(database: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Give a proposal.

    Raises:
        NotFound: There is none of this id.
        StorageError: Its texts are damaged.
    """
    row = database.execute(
        "SELECT proposals.*, behalves.client AS behalf FROM proposals LEFT JOIN behalves ON proposal = id WHERE id = ?",
        (proposal_id,),
    ).fetchone()
    if row is None:
        raise missing(proposal_id)
    found = Proposal(
        id=row["id"],
        client=row["client"],
        run=row["run"],
        created=datetime.fromisoformat(row["created"]),
        expires=datetime.fromisoformat(row["expires"]),
        status=cast("Status", row["status"]),
        reason=row["reason"],
        why=row["why"],
        tainted=bool(row["tainted"]),
        by_query=bool(row["by_query"]),
        files=item_rows.read(database, proposal_id),
        folders=tuple((NotePath(source), NotePath(target)) for source, target in json.loads(row["folders"])),
        notices=tuple(json.loads(row["notices"])),
        rewritten=tuple(Rewritten(**one) for one in json.loads(row["rewritten"])),
        scope=Scope(paths=None if row["scope"] is None else frozenset(json.loads(row["scope"]))),
        behalf=row["behalf"] or "",
        rejection=row["rejection"],
        superseded_by=row["superseded_by"],
        changes=changes(database, proposal_id),
    )
    return proposal_records.sealed(found)


def changes(database: sqlite3.Connection, proposal_id: str) -> tuple[str, ...]:
    """List the changes that accepting something of a proposal made, in order."""
    found = database.execute(
        "SELECT change FROM acceptances WHERE proposal = ? AND change > '' ORDER BY at", (proposal_id,)
    )
    return tuple(row["change"] for row in found.fetchall())


def blocks(database: sqlite3.Connection, proposal_id: str) -> dict[NotePath, dict[str, tuple[str, ...]]]:
    """Tell which blocks in notes show hunks: paths, each with block ids and these with the hunks' ids."""
    rows = database.execute(
        "SELECT path, block, hunks FROM shown JOIN files ON files.proposal = shown.proposal AND number = file"
        " WHERE shown.proposal = ? ORDER BY file, block",
        (proposal_id,),
    )
    found: dict[NotePath, dict[str, tuple[str, ...]]] = {}
    for row in rows.fetchall():
        found.setdefault(NotePath(row["path"]), {})[row["block"]] = tuple(json.loads(row["hunks"]))
    return found


def put_blocks(database: sqlite3.Connection, proposal_id: str, number: int, shown: Mapping[str, Iterable[str]]) -> None:
    """Keep which blocks in a note show hunks of a file, in the place of those that did."""
    database.execute("DELETE FROM shown WHERE proposal = ? AND file = ?", (proposal_id, number))
    rows = [(proposal_id, number, block, json.dumps(list(hunks))) for block, hunks in shown.items()]
    database.executemany("INSERT INTO shown VALUES (?, ?, ?, ?)", rows)


def missing(proposal_id: str) -> NotFound:
    """Make the error for a proposal that isn't there, or that a client may not see."""
    hint = "list the proposals for their ids"
    return NotFound(f"no proposal '{proposal_id}'", hint=hint, code="proposal_not_found")


def moment(at: datetime) -> str:
    """Write a time so that texts sort as times do."""
    return at.isoformat(timespec="milliseconds")


def drop(database: sqlite3.Connection, proposal_id: str) -> None:
    """Delete a proposal, and contents that nothing else names."""
    names = item_rows.names(database, proposal_id)
    database.execute("DELETE FROM proposals WHERE id = ?", (proposal_id,))
    item_rows.drop_unused(database, names)
