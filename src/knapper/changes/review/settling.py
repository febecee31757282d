"""Follow what becomes of a proposal's parts, and so of the proposal."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace

from knapper.changes.review import choices, hunking, item_rows, proposal_records, proposal_rows
from knapper.changes.review.choices import Chosen
from knapper.changes.review.proposal_records import ItemState, Proposal, ProposedFile, Status
from knapper.errors import ConflictError


def check_shown(proposal: Proposal, digest: str) -> None:
    """Refuse what was said of another state than this.

    Raises:
        ConflictError: The digest isn't the current one, which isn't told, so that it has to be looked at.
    """
    if digest != proposal.digest:
        raise ConflictError(
            f"the proposal {proposal.id} isn't what was shown any more",
            hint="show it again, and decide on what it says now",
            code="digest_mismatch",
        )


def accept(database: sqlite3.Connection, token: str, proposal: Proposal, chosen: Chosen, change_id: str) -> Proposal:
    """Note that what was chosen was applied; once, however often it is told."""
    row = database.execute("SELECT * FROM acceptances WHERE token = ?", (token,)).fetchone()
    if row is None or row["change"] is not None:
        return proposal
    made = choices.draft(proposal, chosen)
    now, then = choices.outcomes(made), json.loads(row["plain"])
    done = {file.path: file for file in made.files if now[file.path] == then.get(file.path)}
    marked = [
        hunking.advanced(file, chosen[file.number], done.get(file.path))
        for file in proposal.files
        if file.number in chosen
    ]
    for path, blocks in json.loads(row["blocks"]).items():
        proposal_rows.put_blocks(database, proposal.id, choices.file_at(proposal, path).number, blocks)
    database.execute("UPDATE acceptances SET change = ? WHERE token = ?", (change_id, token))
    changes = (*proposal.changes, change_id) if change_id else proposal.changes
    return keep(database, replace(proposal, changes=changes), marked)


def close(database: sqlite3.Connection, proposal: Proposal, chosen: Chosen, state: ItemState, reason: str) -> Proposal:
    """Mark what was chosen."""
    marked = [
        hunking.closed(file, chosen[file.number], state, reason) for file in proposal.files if file.number in chosen
    ]
    return keep(database, proposal, marked)


def keep(database: sqlite3.Connection, proposal: Proposal, changed: Iterable[ProposedFile]) -> Proposal:
    """Keep what became of some files of a proposal, and bring its status in line with that."""
    fresh = {file.number: hunking.again(file, proposal.id) for file in changed}
    item_rows.put(database, proposal.id, tuple(fresh.values()))
    files = tuple(fresh.get(file.number, file) for file in proposal.files)
    found = proposal_records.sealed(replace(proposal, files=files))
    status = _status(found)
    if status != found.status:
        database.execute("UPDATE proposals SET status = ? WHERE id = ?", (status, found.id))
    return replace(found, status=status)


def _status(proposal: Proposal) -> Status:
    states: set[ItemState] = {state for file in proposal.files for state in _states(file)}
    if not states:
        return "accepted" if proposal.changes else proposal.status
    if "open" in states:
        ended = proposal.status in {"expired", "superseded"}
        return proposal.status if ended else "open" if proposal.acceptable() else "stale"
    return states.pop() if len(states) == 1 else "partly_accepted"


def _states(file: ProposedFile) -> set[ItemState]:
    return {one.state for one in file.hunks} if file.kind == "edit" else {file.state}
