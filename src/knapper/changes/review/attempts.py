"""Tell after a kill which attempts to accept something came to a change."""

import json
import sqlite3
from collections.abc import Iterable

from knapper.changes.disk.journal import Journal
from knapper.changes.disk.ledger import Ledger
from knapper.changes.disk.records import Change
from knapper.changes.disk.steps import FileResult
from knapper.changes.drafts import Draft
from knapper.changes.review import choices, settling
from knapper.changes.review.choices import Selection
from knapper.changes.review.proposal_rows import Reader


def note(database: sqlite3.Connection, selection: Selection, plain: Draft, at: str) -> None:
    """Note what is about to be applied.

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


def is_going_on(database: sqlite3.Connection, proposal_id: str, since: str) -> bool:
    """Tell whether something of a proposal is being applied, and was begun after *since*."""
    sql = "SELECT 1 FROM acceptances WHERE proposal = ? AND change IS NULL AND at > ?"
    return database.execute(sql, (proposal_id, since)).fetchone() is not None


def made(database: sqlite3.Connection, proposal_id: str, change_id: str) -> None:
    """Note a change that took something over by accepting blocks in a note, where there was nothing to attempt."""
    database.execute(
        "INSERT OR IGNORE INTO acceptances (token, proposal, at, chosen, plain, expected, blocks, change)"
        " VALUES (:change || ':' || :proposal, :proposal, strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now'),"
        " '{}', '{}', '{}', '{}', :change)",
        {"proposal": proposal_id, "change": change_id},
    )


def forget(database: sqlite3.Connection, token: str) -> None:
    """Drop an attempt that came to nothing."""
    database.execute("DELETE FROM acceptances WHERE token = ? AND change IS NULL", (token,))


def reconcile(own: Ledger, reader: Reader, journal: Journal, lost: str) -> list[str]:
    """Mark what was applied and not marked, and drop attempts that were made before *lost* and came to nothing.

    Returns:
        Ids of the proposals of which something is marked now.
    """
    with own.reading() as database:
        left = database.execute("SELECT * FROM acceptances WHERE change IS NULL ORDER BY at").fetchall()
    found = [row["proposal"] for row in left if _reconcile(own, reader, journal, row)]
    with own.writing() as database:
        database.execute("DELETE FROM acceptances WHERE change IS NULL AND at < ?", (lost,))
    return found


def _reconcile(own: Ledger, reader: Reader, journal: Journal, attempt: sqlite3.Row) -> bool:
    values = {"id": attempt["proposal"]}
    made = journal.select("proposal = :id AND phase IN ('applied', 'done') ORDER BY seq", values)
    with own.writing() as database:
        change = _match(database, attempt, made)
        if change is not None:
            chosen = {int(number): frozenset(part) for number, part in json.loads(attempt["chosen"]).items()}
            settling.accept(database, attempt["token"], reader.get(database, attempt["proposal"]), chosen, change.id)
    return change is not None


def _match(database: sqlite3.Connection, attempt: sqlite3.Row, made: Iterable[Change]) -> Change | None:
    """Find the change that an attempt came to; None where there is none that isn't known already."""
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
