"""Store proposals, and show them without any file that the client may not know of."""

import json
import re
import secrets
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from knapper.changes.disk import storage
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.storage import SharedDatabase
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import model, note_blocks, parts, tables
from knapper.changes.proposals.model import (
    Decision,
    Proposal,
    ProposalPage,
    ProposalStatus,
    ProposedFile,
    Rejection,
    Summary,
)
from knapper.changes.proposals.note_blocks import NoteBlockStore
from knapper.changes.proposals.parts import BlockHunks, ChosenHunks, ProposalTerms, Selection
from knapper.changes.proposals.refusals import RefusalLog
from knapper.changes.proposals.tables import SCHEMAS
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import is_list, is_object
from knapper.vault import paths
from knapper.vault.paths import NotePath

_NOTICE_PATHS: Final = re.compile(
    r"(?P<page>.+), line \d+: .+ can't be written so that it leads to (?P<end>.+); mend it by hand"
    r"|(?P<lost>.+) can't be read, so its links stay as they are",
    re.DOTALL,
)
"""Notices of a move that may name files which it doesn't change."""
_KEPT_FIELDS: Final = ("problem", "code")
"""Fields that are kept of a conflict with a hidden file: `writer` decides by ``problem`` whether to try again."""


def visible_part(proposal: Proposal, visible: Callable[[NotePath], bool]) -> Proposal:
    """Return a proposal as a client sees it that may not know of every file.

    Raises:
        NotFound: The proposal changes such a file itself; one whose links only follow a move is left out.
    """
    hidden = hidden_paths(proposal.files, visible)
    if any(file.cause == "asked" and file.path in hidden for file in proposal.files):
        raise tables.proposal_not_found(proposal.id)
    return replace(
        proposal,
        files=tuple(file for file in proposal.files if file.path not in hidden),
        rewritten=tuple(one for one in proposal.rewritten if one.path not in hidden),
        notices=_visible_notices(proposal.notices, visible),
    )


def mark_hidden(draft: Draft, visible: Callable[[NotePath], bool]) -> Draft:
    """Mark the files of a draft that its client may not know of, so that nothing names them."""
    hidden = hidden_paths(draft.files, visible)
    return replace(
        draft,
        files=tuple(replace(file, hidden=file.path in hidden) for file in draft.files),
        rewritten=tuple(one for one in draft.rewritten if one.path not in hidden),
        notices=_visible_notices(draft.notices, visible),
    )


def hidden_paths(
    files: Iterable[FileDraft] | Iterable[ProposedFile], visible: Callable[[NotePath], bool]
) -> frozenset[NotePath]:
    """Return the old and new paths of the files that may not be known of."""
    hidden_files = (file for file in files if not (visible(file.path) and visible(file.place)))
    return frozenset(path for file in hidden_files for path in (file.path, file.place))


@contextmanager
def hiding_errors(hidden: Collection[NotePath]) -> Generator[None]:
    """Replace errors about hidden files by ones that neither name them nor show their content.

    Raises:
        KnapError: As raised in the block, with the same class and code.
    """
    try:
        yield
    except KnapError as error:
        error_text = f"{error.message}\n{error.hint}\n{error.details}"
        if not any(path in error_text or repr(path)[1:-1] in error_text for path in hidden):
            raise
        message = "a file that isn't shown here stands in the way; nothing was changed"
        details = {name: redacted for name, rows in error.details.items() if (redacted := _redact_rows(rows, hidden))}
        hint = "try it again later, or ask a person, who sees that file"
        # Without the cause: a log or traceback of it would name the hidden file again.
        raise type(error)(message, hint=hint, code=error.code, details=details) from None


def _redact_rows(rows: object, hidden: Collection[NotePath]) -> list[object]:
    """Return the rows, with only the kind of problem for those about hidden files."""
    redacted: list[object] = []
    for row in rows if is_list(rows) else ():
        if is_object(row):
            is_hidden = row.get("path") in hidden
            redacted.append(
                {"path": "", **{name: row[name] for name in _KEPT_FIELDS if name in row}} if is_hidden else row
            )
    return redacted


def _visible_notices(notices: Iterable[str], visible: Callable[[NotePath], bool]) -> tuple[str, ...]:
    shown: list[str] = []
    for notice in notices:
        match = _NOTICE_PATHS.fullmatch(notice)
        if all(visible(NotePath(path)) for path in (match.groups() if match else ()) if path):
            shown.append(notice)
    return tuple(shown)


_DUE = "status IN ('open', 'stale') AND expires <= ?"
_ANY_DUE_SQL = f"SELECT 1 FROM proposals INDEXED BY due WHERE {_DUE} LIMIT 1"  # noqa: S608


def expire_due(own: SharedDatabase, now: str) -> None:
    """Mark the proposals that have expired; nothing is written where there is none, or nothing can be."""
    with own.reading() as database:
        if own.is_read_only or not database.execute(_ANY_DUE_SQL, (now,)).fetchone():
            return
    with own.writing() as database:
        for row in database.execute(f"SELECT id, expires FROM proposals WHERE {_DUE}", (now,)).fetchall():  # noqa: S608
            ended = Decision(state="expired", at=datetime.fromisoformat(row["expires"]))
            tables.log_decision(database, row["id"], ended)
        database.execute(f"UPDATE proposals SET status = 'expired' WHERE {_DUE}", (now,))  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalFilter:
    """Criteria for a list of proposals; an empty or None field is no condition."""

    status: ProposalStatus | None = None
    client: str = ""
    run: str = ""
    path: str = ""
    """A file's path before or after a move, or a folder's, which matches all below it."""
    since: datetime | None = None
    until: datetime | None = None
    """When they were made."""
    work: str = ""
    """The id of a run or a session, all of whose proposals match, or of a proposal."""
    visible: Callable[[NotePath], bool] | None = None
    """Which files the reader may know of; proposals to change other files aren't listed."""


_VISIBLE: Final = "(visible(path) AND visible(coalesce(target, path)))"
_TOUCHES_PATH: Final = f"""EXISTS (SELECT 1 FROM files WHERE proposal = proposals.id AND (
    key(path) = :path OR key(target) = :path
    OR substr(key(path), 1, length(:path) + 1) = :path || '/'
    OR substr(key(target), 1, length(:path) + 1) = :path || '/') AND {_VISIBLE})"""  # noqa: S608 - constant text of ours
_ALL_VISIBLE: Final = f"""NOT EXISTS (SELECT 1 FROM files WHERE proposal = proposals.id AND cause = 'asked'
    AND NOT {_VISIBLE})"""  # noqa: S608 - as above
_CONDITIONS: Final = {
    "status": "status = :status",
    "client": "client = :client",
    "run": "run = :run",
    "path": _TOUCHES_PATH,
    "since": "created >= :since",
    "until": "created <= :until",
    "work": "(run = :work OR id = :work)",
}
_COUNT_ITEMS: Final = f"""SELECT CASE WHEN state = 'open' AND stale IS NOT NULL THEN 'stale' ELSE state END, count(*)
    FROM items WHERE proposal = :id AND file IN (SELECT number FROM files WHERE proposal = :id AND {_VISIBLE})
    GROUP BY 1"""  # noqa: S608 - as above
_FIRST_FILE: Final = f"""SELECT path, count(*) OVER () AS files FROM files WHERE proposal = ? AND {_VISIBLE}
    ORDER BY number LIMIT 1"""  # noqa: S608 - as above
_UNDATED_REJECTION: Final = f"""SELECT 1 FROM (
        SELECT file, file || '.' || number AS item FROM hunks WHERE proposal = :id AND state = 'rejected'
        UNION ALL SELECT number, CAST(number AS TEXT) FROM files
            WHERE proposal = :id AND state = 'rejected' AND kind <> 'edit')
    WHERE item NOT IN (SELECT value FROM decisions, json_each(items) WHERE proposal = :id)
        AND file IN (SELECT number FROM files WHERE proposal = :id AND {_VISIBLE}) LIMIT 1"""  # noqa: S608 - as above
_DECIDED_FILES: Final = f"""SELECT path FROM files WHERE proposal = decisions.proposal AND {_VISIBLE}
    AND number IN (SELECT CAST(value AS INTEGER) FROM json_each(decisions.items)) ORDER BY number"""  # noqa: S608 - as above
_REJECTIONS: Final = f"""SELECT *, (SELECT json_group_array(path) FROM ({_DECIDED_FILES})) AS paths FROM decisions
    WHERE state = 'rejected' AND (:by = '' OR client = :by)
    AND at >= :from AND (:to = '' OR at <= :to) AND (items = '[]' OR EXISTS ({_DECIDED_FILES}))
    AND EXISTS (SELECT 1 FROM proposals WHERE id = decisions.proposal AND %s)
    ORDER BY at DESC, proposal DESC, number DESC LIMIT :limit OFFSET :offset"""  # noqa: S608 - as above


def list_page(database: sqlite3.Connection, criteria: ProposalFilter, limit: int, offset: int) -> ProposalPage:
    """Return one page of the list, newest first."""
    where, values = _where(database, criteria)
    page_values = {**values, "limit": limit, "offset": offset}
    total = database.execute(f"SELECT count(*) FROM proposals WHERE {where}", values).fetchone()[0]  # noqa: S608
    rows = database.execute(
        f"SELECT * FROM proposals WHERE {where} ORDER BY seq DESC LIMIT :limit OFFSET :offset",  # noqa: S608
        page_values,
    ).fetchall()
    summaries = tuple(_read_summary(database, row) for row in rows)
    return ProposalPage(proposals=summaries, total=int(total), limit=limit, offset=offset)


def list_latest(database: sqlite3.Connection, criteria: ProposalFilter, limit: int, offset: int) -> list[Summary]:
    """Return proposals by the time at which they were made, the latest first, without counting the others."""
    where, values = _where(database, criteria)
    rows = database.execute(
        f"SELECT * FROM proposals WHERE {where} ORDER BY created DESC, id DESC LIMIT :limit OFFSET :offset",  # noqa: S608 - as above
        {**values, "limit": limit, "offset": offset},
    ).fetchall()
    return [_read_summary(database, row) for row in rows]


def list_rejections(database: sqlite3.Connection, criteria: ProposalFilter, limit: int, offset: int) -> list[Rejection]:
    """Return rejections whose time is known, the latest first; times and client of the criteria are theirs."""
    where, values = _where(database, replace(criteria, since=None, until=None, client=""))
    own_values = {"from": _format(criteria.since), "to": _format(criteria.until), "by": criteria.client}
    rows = database.execute(_REJECTIONS % where, {**values, **own_values, "limit": limit, "offset": offset}).fetchall()
    rejections: list[Rejection] = []
    for row in rows:
        proposal = database.execute("SELECT * FROM proposals WHERE id = ?", (row["proposal"],)).fetchone()
        rejections.append(
            Rejection(
                proposal=_read_summary(database, proposal),
                number=row["number"],
                at=datetime.fromisoformat(row["at"]),
                client=row["client"],
                reason=row["reason"],
                paths=tuple(map(NotePath, json.loads(row["paths"]))),
            )
        )
    return rejections


def _format(at: datetime | None) -> str:
    return tables.format_time(at.astimezone(UTC)) if at else ""


def _where(database: sqlite3.Connection, criteria: ProposalFilter) -> tuple[str, dict[str, str]]:
    """Return the condition of a list, its values, and register the SQL functions that it calls."""

    # Visibility is checked in SQL, so that totals and pages don't count what the reader may not know of.
    def key(path: str | None) -> str | None:
        return None if path is None else paths.name_key(path)

    def visible(path: str) -> bool:
        return criteria.visible is None or criteria.visible(NotePath(path))

    database.create_function("key", 1, key, deterministic=True)
    database.create_function("visible", 1, visible)
    values = {
        "status": criteria.status or "",
        "client": criteria.client,
        "run": criteria.run,
        "path": paths.name_key(criteria.path.strip("/")),
        "since": _format(criteria.since),
        "until": _format(criteria.until),
        "work": criteria.work,
    }
    conditions = [_CONDITIONS[name] for name, value in values.items() if value]
    return " AND ".join([*conditions, *([_ALL_VISIBLE] if criteria.visible else []), "1"]), values


def _read_summary(database: sqlite3.Connection, row: sqlite3.Row) -> Summary:
    first = database.execute(_FIRST_FILE, (row["id"],)).fetchone()
    counts = {state: int(count) for state, count in database.execute(_COUNT_ITEMS, {"id": row["id"]})}
    decided_at, decided_by = tables.read_outcome(database, row["id"], row["status"])
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
        changes=tables.change_ids(database, row["id"]),
        rejection=row["rejection"],
        decided_at=decided_at,
        decided_by=decided_by,
        has_undated_rejection=bool(counts.get("rejected"))
        and database.execute(_UNDATED_REJECTION, {"id": row["id"]}).fetchone() is not None,
    )


FILE = "proposals.db"
LIMIT = 20
_MAX_APPLYING_S = 60
"""How long accepting may take; after that, its process was most likely killed."""
_LOST_AFTER_H = 24
"""Hours after which an attempt to accept that isn't in the journal is taken for never made."""


class Proposals:
    """Open store of a vault's proposals; use `open_proposals`. Threads may share it, processes have one each."""

    def __init__(self, own: SharedDatabase, clock: Callable[[], datetime]) -> None:
        """Wrap an open file."""
        self._ledger = own
        self._clock = clock
        self._reader = tables.ProposalReader(own)
        self.note_blocks = NoteBlockStore(own, self._reader, clock)
        """The blocks in notes that show hunks."""
        self.refusals = RefusalLog(own, clock)
        """What was refused, and became no proposal."""

    @property
    def is_read_only(self) -> bool:
        """Return whether the disk can't be written, so that proposals can only be read."""
        return self._ledger.is_read_only

    def save(self, draft: Draft, meta: ChangeMeta, note: ProposalTerms | None = None) -> Proposal:
        """Store a draft until somebody accepts or rejects it.

        Args:
            draft: What would happen.
            meta: Who wants it, and why.
            note: Why and how long it waits.

        Raises:
            BadInput: Nothing would change.
            NotFound: The proposal that it is to replace isn't there.
        """
        note = note or ProposalTerms()
        proposal = parts.make_proposal(draft, meta, note, self._clock())
        if not proposal.files and not proposal.folders:
            raise BadInput("nothing would change", hint="nothing has to be done", code="no_change")
        with self._ledger.writing() as database:
            tables.add_proposal(database, proposal)
            if note.supersedes:
                old = self._reader.get(database, note.supersedes)
                parts.check_open(old)
                database.execute(
                    "UPDATE proposals SET status = 'superseded', superseded_by = ? WHERE id = ?", (proposal.id, old.id)
                )
                end = Decision(state="superseded", at=proposal.created, client=proposal.client)
                tables.log_decision(database, old.id, end)
        return proposal

    def find(self, criteria: ProposalFilter | None = None, *, limit: int = LIMIT, offset: int = 0) -> ProposalPage:
        """List proposals, newest first.

        Args:
            criteria: Which; None for all.
            limit: How many.
            offset: How many of the newest are left out.
        """
        self._expire()
        with self._ledger.reading() as database:
            return list_page(database, criteria or ProposalFilter(), limit, offset)

    def latest(self, criteria: ProposalFilter, *, limit: int, offset: int = 0) -> list[Summary]:
        """List proposals as `find` does, without counting the others."""
        self._expire()
        with self._ledger.reading() as database:
            return list_latest(database, criteria, limit, offset)

    def rejections(self, criteria: ProposalFilter, *, limit: int, offset: int = 0) -> list[Rejection]:
        """List rejections as `list_rejections` does."""
        with self._ledger.reading() as database:
            return list_rejections(database, criteria, limit, offset)

    def show(self, proposal_id: str, *, visible: Callable[[NotePath], bool] | None = None) -> Proposal:
        """Return a proposal with its hunks; accepting it needs its `digest`.

        Args:
            proposal_id: Which.
            visible: Which files the reader may know of; None for all. Hidden files whose links follow are left out.

        Raises:
            NotFound: There is none, or it is about a file that the reader may not know of.
        """
        self._expire()
        with self._ledger.reading() as database:
            proposal = self._reader.get(database, proposal_id)
        return proposal if visible is None else visible_part(proposal, visible)

    def has_note_blocks(self, proposal_id: str) -> bool:
        """Return whether notes have blocks of a proposal, or may have: of most, none has."""
        with self._ledger.reading() as database:
            return tables.has_blocks(database, proposal_id)

    def rebase(self, proposal_id: str, current: Mapping[NotePath, bytes | None]) -> Proposal:
        """Fit the open parts to the files as they are now, and record what is stale.

        While a part is being applied nothing is fitted: files may be in a state between the old and the new one.

        Args:
            proposal_id: Which.
            current: Contents by path, None for missing files; nothing is known of paths that aren't listed. A moved
                file's new path may be among them.

        Raises:
            NotFound: There is none.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            return proposal if self._is_applied(database, proposal.id) else _refit(database, proposal, current)

    def read_back(self, proposal_id: str, path: NotePath, raw: bytes, change_id: str) -> None:
        """Record which blocks were accepted in the note itself: they are gone, and their new text is there.

        The outcome of other missing blocks isn't guessed. While a part is being applied nothing is recorded.

        Args:
            proposal_id: Which.
            path: The note.
            raw: Its content.
            change_id: The change that accepted them; empty where another program did.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            block_hunks = tables.read_blocks(database, proposal.id).get(path, {})
            if not block_hunks or self._is_applied(database, proposal.id):
                return
            file = parts.file_at(proposal, path)
            states = note_blocks.read_decisions(file, raw, block_hunks).states
            accepted_hunks = [name for name, state in states.items() if state == "accepted"]
            if not accepted_hunks:
                return
            if change_id:
                tables.log_change(database, proposal.id, change_id)
            tables.close_chosen(database, proposal, parts.choose_hunks(proposal, accepted_hunks), "accepted", "")
            remaining = {
                name: hunks for name, hunks in block_hunks.items() if not set(accepted_hunks).issuperset(hunks)
            }
            tables.put_blocks(database, proposal.id, file.number, remaining)

    def _is_applied(self, database: sqlite3.Connection, proposal_id: str) -> bool:
        since = tables.format_time(self._clock() - timedelta(seconds=_MAX_APPLYING_S))
        return tables.is_being_applied(database, proposal_id, since)

    def select(
        self,
        proposal_id: str,
        digest: str,
        *,
        files: Collection[str] = (),
        hunks: Collection[str] = (),
        note_contents: Mapping[NotePath, bytes] | None = None,
        current: Mapping[NotePath, bytes | None] | None = None,
    ) -> Selection:
        """Select what is to be accepted: the named files and hunks, or all that fits if none is named.

        Args:
            proposal_id: Which.
            digest: Of the state that was shown.
            files: Paths.
            hunks: Ids such as ``2.1``.
            note_contents: Contents of the notes that have blocks of this proposal.
            current: As for `rebase`; the proposal is fitted to it first, in the same transaction, since another
                process may have fitted it to older contents meanwhile.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It isn't what was shown any more, it is closed, or something chosen is stale.
            BadInput: What was chosen can't be taken by itself.
        """
        self._expire()
        with self._ledger.writing() as database:
            proposal = _refit(database, self._reader.get(database, proposal_id), current or {})
            parts.check_open(proposal)
            parts.check_digest(proposal, digest)
            is_partial = bool(files or hunks)
            chosen = (
                parts.choose_named(proposal, files=files, hunks=hunks, accepting=True)
                if is_partial
                else parts.choose_acceptable(proposal)
            )
            plain = parts.draft_chosen(proposal, chosen)
            draft, blocks = plain, dict[NotePath, BlockHunks]()
            if note_contents:
                draft, blocks = note_blocks.render_remaining(proposal, chosen, plain, note_contents)
            selection = Selection(
                token=secrets.token_hex(16),
                proposal=proposal.id,
                chosen=chosen,
                draft=draft,
                blocks=blocks,
                source=proposal,
            )
            # Logged before anything is applied, so that `reconcile` can tell after a kill whether it was made.
            tables.log_attempt(database, selection, plain, tables.format_time(self._clock()))
        return selection

    def mark_accepted(self, selection: Selection, change_id: str) -> Proposal:
        """Record that a selection was applied, and move what remains to where its text is now.

        Args:
            selection: From `select`.
            change_id: The change that applied it; empty where the files had the text already.

        Raises:
            NotFound: The proposal isn't there any more.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, selection.proposal)
            return tables.mark_accepted(database, selection.token, proposal, selection.chosen, change_id)

    def abandon(self, selection: Selection) -> None:
        """Record that a selection was refused or failed, so that nothing of it was applied."""
        with self._ledger.writing() as database:
            tables.forget_attempt(database, selection.token)

    def reconcile(self, journal: Journal) -> list[str]:
        """Record what was applied but not marked, because the process was killed in between.

        Returns:
            Ids of the proposals that were updated.
        """
        lost = tables.format_time(self._clock() - timedelta(hours=_LOST_AFTER_H))
        return tables.reconcile_attempts(self._ledger, self._reader, journal, lost)

    def reject(
        self,
        proposal_id: str,
        reason: str,
        *,
        files: Collection[str] = (),
        hunks: Collection[str] = (),
        client: str = "",
    ) -> Proposal:
        """Reject the named files and hunks, or all that is open; they stay visible.

        Args:
            proposal_id: Which.
            reason: Why; may be empty.
            files: Paths.
            hunks: Ids such as ``2.1``.
            client: Who rejects.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: The proposal is closed.
            BadInput: What was chosen can't be taken by itself.
        """
        self._expire()
        decision = Decision(state="rejected", at=self._clock(), client=client, reason=reason)
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            chosen = parts.choose_rejectable(proposal, files=files, hunks=hunks)
            updated = tables.reject_chosen(database, proposal, chosen, decision)
            if updated.status in {"rejected", "partly_accepted"}:
                updated = replace(updated, rejection=reason)
                database.execute("UPDATE proposals SET rejection = ? WHERE id = ?", (reason, proposal.id))
            return updated

    def rejectable(self, proposal_id: str, *, files: Collection[str] = (), hunks: Collection[str] = ()) -> ChosenHunks:
        """Return what `reject` would reject; errors are the same."""
        self._expire()
        with self._ledger.reading() as database:
            return parts.choose_rejectable(self._reader.get(database, proposal_id), files=files, hunks=hunks)

    def prune(self, *, max_age_days: float) -> int:
        """Delete closed proposals that are older than *max_age_days*; return how many."""
        oldest = tables.format_time(self._clock() - timedelta(days=max_age_days))
        with self._ledger.reading() as database:
            sql = "SELECT id FROM proposals WHERE status NOT IN ('open', 'stale') AND created < ?"
            rows = database.execute(sql, (oldest,)).fetchall()
        if rows:
            with self._ledger.writing() as database:
                for row in rows:
                    tables.delete_proposal(database, row["id"])
        return len(rows)

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _expire(self) -> None:
        expire_due(self._ledger, tables.format_time(self._clock()))


def open_proposals(folder: Path, *, clock: Callable[[], datetime] | None = None) -> Proposals:
    """Open a vault's proposals, and create the store where there is none; call `Proposals.reconcile` next.

    Args:
        folder: The vault's state folder; it exists.
        clock: Returns the current time; None for the system's.

    Raises:
        StorageError: The file can't be used.
    """
    own = storage.open_shared_database(folder / FILE, SCHEMAS, len(SCHEMAS))
    return Proposals(own, clock or (lambda: datetime.now(UTC)))


def _refit(database: sqlite3.Connection, proposal: Proposal, current: Mapping[NotePath, bytes | None]) -> Proposal:
    moved = model.refit_files(proposal, current)
    return tables.save_progress(database, proposal, moved) if moved else proposal
