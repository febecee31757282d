"""Follow what becomes of a proposal's parts, and so of the proposal."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from knapper.changes.disk.records import Change
from knapper.changes.disk.steps import FileResult
from knapper.changes.drafts import Draft
from knapper.changes.review import choices, hunking, proposal_rows
from knapper.changes.review.choices import Chosen, Selection
from knapper.changes.review.proposal_records import ItemState, Proposal, Status
from knapper.errors import ConflictError


def check_open(proposal: Proposal) -> None:
    """Refuse a proposal that was decided or has ended.

    Raises:
        ConflictError: It is closed.
    """
    if proposal.status not in {"open", "stale"}:
        by = f" by {proposal.superseded_by}" if proposal.superseded_by else ""
        status = proposal.status.replace("_", " ")
        hint = "propose the change anew" if proposal.status == "expired" else "list the open proposals"
        raise ConflictError(f"the proposal {proposal.id} is {status}{by}", hint=hint, code="not_open")


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


def attempt(database: sqlite3.Connection, selection: Selection, plain: Draft, at: str) -> None:
    """Note what is about to be applied, so that it can be told after a kill whether it was.

    Args:
        database: Where.
        selection: What was chosen.
        plain: Its draft before blocks were put into notes again.
        at: When.
    """
    chosen = {number: sorted(numbers) for number, numbers in selection.chosen.items()}
    parts = (chosen, choices.outcomes(plain), choices.outcomes(selection.draft), dict(selection.blocks))
    database.execute(
        "INSERT INTO acceptances (token, proposal, at, chosen, plain, expected, blocks) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (selection.token, selection.proposal, at, *map(json.dumps, parts)),
    )


def accept(database: sqlite3.Connection, token: str, proposal_id: str, chosen: Chosen, change_id: str) -> Proposal:
    """Note that what was chosen was applied; once, however often it is told."""
    row = database.execute("SELECT * FROM acceptances WHERE token = ?", (token,)).fetchone()
    if row is None or row["change"] is not None:
        return proposal_rows.get(database, proposal_id)
    found = proposal_rows.get(database, proposal_id)
    made = choices.draft(found, chosen)
    now, then = choices.outcomes(made), json.loads(row["plain"])
    done = {file.path: file for file in made.files if now[file.path] == then.get(file.path)}
    for file in found.files:
        if file.number in chosen:
            marked = hunking.advanced(file, chosen[file.number], done.get(file.path))
            proposal_rows.put_file(database, found.id, marked)
    for path, blocks in json.loads(row["blocks"]).items():
        proposal_rows.put_blocks(database, found.id, choices.file_at(found, path).number, blocks)
    database.execute("UPDATE acceptances SET change = ? WHERE token = ?", (change_id, token))
    return settle(database, found.id)


def close(database: sqlite3.Connection, proposal: Proposal, chosen: Chosen, state: ItemState, reason: str) -> None:
    """Mark what was chosen."""
    for file in proposal.files:
        if file.number in chosen:
            marked = hunking.closed(file, chosen[file.number], state, reason)
            proposal_rows.put_file(database, proposal.id, marked)


def settle(database: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Bring a proposal's status in line with its parts."""
    found = proposal_rows.get(database, proposal_id)
    status = _status(database, found)
    if status != found.status:
        database.execute("UPDATE proposals SET status = ? WHERE id = ?", (status, proposal_id))
    return replace(found, status=status)


def _status(database: sqlite3.Connection, proposal: Proposal) -> Status:
    rows = database.execute("SELECT DISTINCT state FROM items WHERE proposal = ?", (proposal.id,))
    states = {row["state"] for row in rows}
    if not states:
        return "accepted" if proposal.changes else proposal.status
    if "open" in states:
        ended = proposal.status in {"expired", "superseded"}
        return proposal.status if ended else "open" if proposal.acceptable() else "stale"
    return cast("Status", states.pop()) if len(states) == 1 else "partly_accepted"


def match(database: sqlite3.Connection, attempt: sqlite3.Row, made: Iterable[Change]) -> Change | None:
    """Find the change that an attempt to accept came to; None where there is none that isn't known already."""
    rows = database.execute("SELECT change FROM acceptances WHERE proposal = ?", (attempt["proposal"],))
    known = {row["change"] for row in rows}
    expected: dict[str, str] = json.loads(attempt["expected"])
    return next((change for change in made if change.id not in known and _did(change, expected)), None)


def _did(change: Change, expected: dict[str, str]) -> bool:
    answers = [_fits(one, path, outcome) for path, outcome in expected.items() for one in change.files]
    return True in answers and False not in answers


def _fits(one: FileResult, path: str, outcome: str) -> bool | None:
    """Tell whether what became of a file is what was to become of *path*; None where it is another file."""
    if one.is_folder:
        return True if path.startswith(f"{one.before_path}/") else None
    place, _, name = outcome.rpartition(" sha256:")
    if name and one.after_path == place:
        return one.after_hash == f"sha256:{name}"
    return True if not name and one.before_path == path else None
