"""Progress of a proposal: the acceptance log, the states of its parts, and whether they still fit their files."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from knapper.changes.disk.journal import Change, Journal
from knapper.changes.disk.plan import FileResult
from knapper.changes.disk.storage import SharedDatabase
from knapper.changes.drafts import Draft
from knapper.changes.proposals import model, parts, tables
from knapper.changes.proposals.model import ItemState, Proposal, ProposalStatus, ProposedFile, ProposedHunk, Stale
from knapper.changes.proposals.parts import ChosenHunks, Selection
from knapper.changes.proposals.tables import ProposalReader
from knapper.changes.text import diff, splices
from knapper.errors import BadInput, ConflictError
from knapper.vault import parser, source
from knapper.vault.paths import NotePath


def check_digest(proposal: Proposal, digest: str) -> None:
    """Check that a decision was made on the current state of a proposal.

    Raises:
        ConflictError: The digest isn't the current one. The error doesn't have that one, so that the proposal has to be
            looked at first.
    """
    if digest != proposal.digest:
        raise ConflictError(
            f"the proposal {proposal.id} isn't what was shown any more",
            hint="show it again, and decide on what it says now",
            code="digest_mismatch",
        )


def mark_accepted(
    database: sqlite3.Connection, token: str, proposal: Proposal, chosen: ChosenHunks, change_id: str
) -> Proposal:
    """Record that the chosen parts were applied; a repeated call does nothing."""
    row = database.execute("SELECT * FROM acceptances WHERE token = ?", (token,)).fetchone()
    if row is None or row["change"] is not None:
        return proposal
    draft = parts.draft_chosen(proposal, chosen)
    now, then = parts.expected_outcomes(draft), json.loads(row["plain"])
    unchanged_files = {file.path: file for file in draft.files if now[file.path] == then.get(file.path)}
    updated_files = [
        parts.mark_file_accepted(file, chosen[file.number], unchanged_files.get(file.path))
        for file in proposal.files
        if file.number in chosen
    ]
    for path, blocks in json.loads(row["blocks"]).items():
        tables.put_blocks(database, proposal.id, parts.file_at(proposal, path).number, blocks)
    database.execute("UPDATE acceptances SET change = ? WHERE token = ?", (change_id, token))
    changes = (*proposal.changes, change_id) if change_id else proposal.changes
    return save_progress(database, replace(proposal, changes=changes), updated_files)


def close_chosen(
    database: sqlite3.Connection, proposal: Proposal, chosen: ChosenHunks, state: ItemState, reason: str
) -> Proposal:
    """Mark the chosen parts as accepted or rejected."""
    updated_files = [
        parts.close_hunks(file, chosen[file.number], state, reason) for file in proposal.files if file.number in chosen
    ]
    return save_progress(database, proposal, updated_files)


def save_progress(database: sqlite3.Connection, proposal: Proposal, changed: Iterable[ProposedFile]) -> Proposal:
    """Store the changed files of a proposal, and update its status."""
    fresh = {file.number: parts.refresh_hunks(file, proposal.id) for file in changed}
    tables.put_files(database, proposal.id, tuple(fresh.values()))
    files = tuple(fresh.get(file.number, file) for file in proposal.files)
    updated = model.seal(replace(proposal, files=files))
    status = _proposal_status(updated)
    if status != updated.status:
        database.execute("UPDATE proposals SET status = ? WHERE id = ?", (status, updated.id))
    return replace(updated, status=status)


def _proposal_status(proposal: Proposal) -> ProposalStatus:
    states: set[ItemState] = {state for file in proposal.files for state in _item_states(file)}
    if not states:
        return "accepted" if proposal.changes else proposal.status
    if "open" in states:
        ended = proposal.status in {"expired", "superseded"}
        return proposal.status if ended else "open" if proposal.acceptable() else "stale"
    return states.pop() if len(states) == 1 else "partly_accepted"


def _item_states(file: ProposedFile) -> set[ItemState]:
    return {one.state for one in file.hunks} if file.kind == "edit" else {file.state}


def log_attempt(database: sqlite3.Connection, selection: Selection, plain: Draft, at: str) -> None:
    """Record an attempt to accept before anything is applied.

    Args:
        database: Of the proposals.
        selection: What was chosen.
        plain: Its draft before blocks were put into notes again.
        at: The time of the attempt.
    """
    chosen = {number: sorted(numbers) for number, numbers in selection.chosen.items()}
    columns = (chosen, parts.expected_outcomes(plain), parts.expected_outcomes(selection.draft), dict(selection.blocks))
    database.execute(
        "INSERT INTO acceptances (token, proposal, at, chosen, plain, expected, blocks) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (selection.token, selection.proposal, at, *map(json.dumps, columns)),
    )


def is_being_applied(database: sqlite3.Connection, proposal_id: str, since: str) -> bool:
    """Return whether a part of a proposal is being applied since a time later than *since*."""
    sql = "SELECT 1 FROM acceptances WHERE proposal = ? AND change IS NULL AND at > ?"
    return database.execute(sql, (proposal_id, since)).fetchone() is not None


def log_change(database: sqlite3.Connection, proposal_id: str, change_id: str) -> None:
    """Record a change that accepted blocks in a note, for which there was no attempt."""
    database.execute(
        "INSERT OR IGNORE INTO acceptances (token, proposal, at, chosen, plain, expected, blocks, change)"
        " VALUES (:change || ':' || :proposal, :proposal, strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now'),"
        " '{}', '{}', '{}', '{}', :change)",
        {"proposal": proposal_id, "change": change_id},
    )


def forget_attempt(database: sqlite3.Connection, token: str) -> None:
    """Delete an attempt that changed nothing."""
    database.execute("DELETE FROM acceptances WHERE token = ? AND change IS NULL", (token,))


def reconcile_attempts(own: SharedDatabase, reader: ProposalReader, journal: Journal, lost: str) -> list[str]:
    """Mark attempts that were applied but not marked, and delete those from before *lost* that changed nothing.

    Returns:
        Ids of the proposals of which a part was marked.
    """
    with own.reading() as database:
        open_attempts = database.execute("SELECT * FROM acceptances WHERE change IS NULL ORDER BY at").fetchall()
    proposal_ids = [row["proposal"] for row in open_attempts if _reconcile_attempt(own, reader, journal, row)]
    with own.writing() as database:
        database.execute("DELETE FROM acceptances WHERE change IS NULL AND at < ?", (lost,))
    return proposal_ids


def _reconcile_attempt(own: SharedDatabase, reader: ProposalReader, journal: Journal, attempt: sqlite3.Row) -> bool:
    values = {"id": attempt["proposal"]}
    candidates = journal.select("proposal = :id AND phase IN ('applied', 'done') ORDER BY seq", values)
    with own.writing() as database:
        change = _matching_change(database, attempt, candidates)
        if change is not None:
            chosen = {int(number): frozenset(part) for number, part in json.loads(attempt["chosen"]).items()}
            mark_accepted(database, attempt["token"], reader.get(database, attempt["proposal"]), chosen, change.id)
    return change is not None


def _matching_change(database: sqlite3.Connection, attempt: sqlite3.Row, candidates: Iterable[Change]) -> Change | None:
    """Return the change that an attempt made; None if there is none that isn't recorded already."""
    rows = database.execute("SELECT change FROM acceptances WHERE proposal = ?", (attempt["proposal"],))
    known_changes = {row["change"] for row in rows}
    expected: dict[str, str] = json.loads(attempt["expected"])
    return next(
        (change for change in candidates if change.id not in known_changes and _matches_expected(change, expected)),
        None,
    )


def _matches_expected(change: Change, expected: dict[str, str]) -> bool:
    answers = [_matches_outcome(one, path, outcome) for path, outcome in expected.items() for one in change.files]
    return True in answers and False not in answers


def _matches_outcome(result: FileResult, path: str, outcome: str) -> bool | None:
    """Return whether a file's result is the outcome expected of *path*; None for another file."""
    if result.is_folder:
        return True if path.startswith(f"{result.before_path}/") else None
    place, _, name = outcome.rpartition(" sha256:")
    if name and result.after_path == place:
        return result.after_hash == f"sha256:{name}"
    return True if not name and result.before_path == path else None


_SHOWN: Final = 600


def refit_files(proposal: Proposal, current: Mapping[NotePath, bytes | None]) -> list[ProposedFile]:
    """Fit the files of a proposal to their current content, and return those that changed by it.

    Args:
        proposal: As it was.
        current: Contents by path, None for missing files; nothing is known of paths that aren't listed.
    """
    leaving = {file.path for file in proposal.files if file.target is not None or file.trash is not None}
    changed_files: list[ProposedFile] = []
    for file in proposal.files:
        if file.path not in current:
            continue
        is_target_occupied = file.target not in {None, *leaving} and current.get(file.place) is not None
        fitted = refit_file(file, current[file.path], target_taken=is_target_occupied)
        if fitted != file:
            changed_files.append(fitted)
    return changed_files


def refit_file(file: ProposedFile, current: bytes | None, *, target_taken: bool = False) -> ProposedFile:
    """Fit the open parts of a file to its current content.

    A hunk fits where its lines and two on each side are unchanged, at one place only. What was stale may fit again.

    Args:
        file: What is proposed for it.
        current: Its content; None where it is gone, or isn't created yet.
        target_taken: Whether another file has the path that it would be moved to.

    Returns:
        The file with new places, and with the cause for each stale part.
    """
    if file.state != "open":
        return file
    match file.kind:
        case "edit":
            return _refit_edit(file, current)
        case "create":
            return replace(file, stale=None if current is None else _stale_exists(file.path))
        case "trash":
            return replace(file, stale=_stale_gone(file) if current is None else _compare_content(file, current))
        case "move":
            if current is None:
                return replace(file, stale=_stale_gone(file))
            return replace(file, stale=_stale_exists(file.target or "")) if target_taken else _refit_move(file, current)


def _refit_edit(file: ProposedFile, current: bytes | None) -> ProposedFile:
    if current is None:
        stale = _stale_gone(file)
        return replace(
            file, hunks=tuple(replace(one, stale=stale) if one.state == "open" else one for one in file.hunks)
        )
    fitted: dict[int, ProposedHunk] = {}
    fitting: list[splices.Splice] = []
    # Hunks that fitted before come first: one that fits again must not push them out.
    for one in sorted(file.hunks, key=lambda one: one.stale is not None):
        fits = _refit_hunk(one, current) if one.state == "open" else one
        if fits.state == "open" and fits.stale is None:
            if not _are_compatible(current, [*fitting, fits.hunk.splice]):
                fits = replace(one, stale=_stale_changed(current, one.hunk.start))
            else:
                fitting.append(fits.hunk.splice)
        fitted[one.number] = fits
    hunks = tuple(fitted[one.number] for one in file.hunks)
    return replace(file, hunks=hunks, before=current, base=parser.content_hash(current))


def _refit_hunk(one: ProposedHunk, current: bytes) -> ProposedHunk:
    try:
        moved = splices.rebase(one.hunk.splice, one.origin, current)
    except ConflictError as error:
        line, text = error.details.get("line"), error.details.get("current_text")
        cause = Stale(
            code="changed",
            message=error.message,
            line=line if isinstance(line, int) else None,
            current_text=text if isinstance(text, str) else "",
        )
        return replace(one, stale=cause)
    hunk = replace(one.hunk, start=moved.start, old_start_line=source.line_number_at(current, moved.start))
    return replace(one, origin=current, hunk=hunk, stale=None)


def _are_compatible(current: bytes, made: Sequence[splices.Splice]) -> bool:
    try:
        splices.check_order(current, made)
    except BadInput:
        return False
    return True


def _refit_move(file: ProposedFile, current: bytes) -> ProposedFile:
    """Fit a moved note to its current content, and rewrite the links in it that follow."""
    if file.before is None or file.content is None:
        return replace(file, stale=_compare_content(file, current))
    try:
        rebased = [
            splices.rebase(one.splice, file.before, current) for one in diff.diff_hunks(file.before, file.content)
        ]
    except ConflictError as error:
        line = error.details.get("line")
        return replace(file, stale=replace(_stale_changed(current, 0), line=line if isinstance(line, int) else None))
    content = splices.merge(current, rebased)
    return replace(file, before=current, content=content, base=parser.content_hash(current), stale=None)


def _compare_content(file: ProposedFile, current: bytes) -> Stale | None:
    """Return whether a note is stale; any other file is compared only when it is moved or trashed."""
    if file.before is None or parser.content_hash(current) == file.base:
        return None
    return _stale_changed(current, 0)


def _stale_changed(current: bytes, at: int) -> Stale:
    excerpt = current[at : at + _SHOWN].decode(errors="replace")
    return Stale(code="changed", message="the file changed since this was proposed", current_text=excerpt)


def _stale_gone(file: ProposedFile) -> Stale:
    return Stale(code="gone", message=f"'{file.path}' is gone")


def _stale_exists(path: str) -> Stale:
    return Stale(code="exists", message=f"there is a file at '{path}' by now")
