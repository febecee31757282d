"""Store of proposals that wait for a person's decision."""

import secrets
import sqlite3
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from knapper.changes.disk import storage
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.storage import SharedDatabase
from knapper.changes.drafts import Draft
from knapper.changes.proposals import note_blocks, parts, presentation, progress, tables
from knapper.changes.proposals.model import Proposal, ProposalPage
from knapper.changes.proposals.note_blocks import NoteBlockStore
from knapper.changes.proposals.parts import ChosenHunks, ProposalTerms, Selection
from knapper.changes.proposals.tables import SCHEMA, SCHEMA_VERSION, ProposalFilter
from knapper.errors import BadInput
from knapper.vault.paths import NotePath

_DUE = "status IN ('open', 'stale') AND expires <= ?"


def expire_due(own: SharedDatabase, now: str) -> None:
    """Mark the proposals that have expired; nothing is written where there is none."""
    with own.reading() as database:
        if not database.execute(f"SELECT 1 FROM proposals WHERE {_DUE} LIMIT 1", (now,)).fetchone():  # noqa: S608
            return
    with own.writing() as database:
        database.execute(f"UPDATE proposals SET status = 'expired' WHERE {_DUE}", (now,))  # noqa: S608


def prune_closed(own: SharedDatabase, oldest: str) -> int:
    """Delete closed proposals that were created before a time; return how many."""
    with own.reading() as database:
        rows = database.execute(
            "SELECT id FROM proposals WHERE status NOT IN ('open', 'stale') AND created < ?", (oldest,)
        ).fetchall()
    if not rows:
        return 0
    with own.writing() as database:
        for row in rows:
            tables.delete_proposal(database, row["id"])
    return len(rows)


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
        self.note_blocks = NoteBlockStore(own, self._reader)
        """The blocks in notes that show hunks."""

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
            return tables.list_page(database, criteria or ProposalFilter(), limit, offset)

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
        return proposal if visible is None else presentation.visible_part(proposal, visible)

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
                progress.log_change(database, proposal.id, change_id)
            progress.close_chosen(database, proposal, parts.choose_hunks(proposal, accepted_hunks), "accepted", "")
            remaining = {
                name: hunks for name, hunks in block_hunks.items() if not set(accepted_hunks).issuperset(hunks)
            }
            tables.put_blocks(database, proposal.id, file.number, remaining)

    def _is_applied(self, database: sqlite3.Connection, proposal_id: str) -> bool:
        since = tables.format_time(self._clock() - timedelta(seconds=_MAX_APPLYING_S))
        return progress.is_being_applied(database, proposal_id, since)

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
            progress.check_digest(proposal, digest)
            is_partial = bool(files or hunks)
            chosen = (
                parts.choose_named(proposal, files=files, hunks=hunks, accepting=True)
                if is_partial
                else parts.choose_acceptable(proposal)
            )
            plain = parts.draft_chosen(proposal, chosen)
            draft, blocks = note_blocks.render_remaining(proposal, chosen, plain, note_contents or {})
            selection = Selection(
                token=secrets.token_hex(16),
                proposal=proposal.id,
                chosen=chosen,
                draft=draft,
                blocks=blocks,
                source=proposal,
            )
            # Logged before anything is applied, so that `reconcile` can tell after a kill whether it was made.
            progress.log_attempt(database, selection, plain, tables.format_time(self._clock()))
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
            return progress.mark_accepted(database, selection.token, proposal, selection.chosen, change_id)

    def abandon(self, selection: Selection) -> None:
        """Record that a selection was refused or failed, so that nothing of it was applied."""
        with self._ledger.writing() as database:
            progress.forget_attempt(database, selection.token)

    def reconcile(self, journal: Journal) -> list[str]:
        """Record what was applied but not marked, because the process was killed in between.

        Returns:
            Ids of the proposals that were updated.
        """
        lost = tables.format_time(self._clock() - timedelta(hours=_LOST_AFTER_H))
        return progress.reconcile_attempts(self._ledger, self._reader, journal, lost)

    def reject(
        self, proposal_id: str, reason: str, *, files: Collection[str] = (), hunks: Collection[str] = ()
    ) -> Proposal:
        """Reject the named files and hunks, or all that is open; they stay visible.

        Args:
            proposal_id: Which.
            reason: Why; may be empty.
            files: Paths.
            hunks: Ids such as ``2.1``.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: The proposal is closed.
            BadInput: What was chosen can't be taken by itself.
        """
        self._expire()
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            chosen = parts.choose_rejectable(proposal, files=files, hunks=hunks)
            updated = progress.close_chosen(database, proposal, chosen, "rejected", reason)
            if updated.status in {"rejected", "partly_accepted"} or not proposal.files:
                status = updated.status if proposal.files else "rejected"
                updated = replace(updated, status=status, rejection=reason)
                values = (status, reason, proposal.id)
                database.execute("UPDATE proposals SET status = ?, rejection = ? WHERE id = ?", values)
            return updated

    def rejectable(self, proposal_id: str, *, files: Collection[str] = (), hunks: Collection[str] = ()) -> ChosenHunks:
        """Return what `reject` would reject; errors are the same."""
        self._expire()
        with self._ledger.reading() as database:
            return parts.choose_rejectable(self._reader.get(database, proposal_id), files=files, hunks=hunks)

    def prune(self, *, max_age_days: float) -> int:
        """Delete closed proposals that are older than *max_age_days*; return how many."""
        oldest = tables.format_time(self._clock() - timedelta(days=max_age_days))
        return prune_closed(self._ledger, oldest)

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
    return Proposals(storage.open_shared_database(folder / FILE, SCHEMA, SCHEMA_VERSION), clock or _utc_now)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _refit(database: sqlite3.Connection, proposal: Proposal, current: Mapping[NotePath, bytes | None]) -> Proposal:
    moved = progress.refit_files(proposal, current)
    return progress.save_progress(database, proposal, moved) if moved else proposal
