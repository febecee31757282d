"""Keep drafts that wait for a person's word, and follow what becomes of each part of them.

One SQLite file a vault, outside of it; what is accepted goes through `select`, the journal, then `mark_accepted`.
"""

import secrets
import sqlite3
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from knapper.changes.disk import ledger
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.ledger import Ledger
from knapper.changes.drafts import Draft
from knapper.changes.review import (
    attempts,
    choices,
    expiry,
    making,
    proposal_list,
    proposal_rows,
    rendering,
    settling,
    sight,
    staleness,
)
from knapper.changes.review.choices import Chosen, Selection
from knapper.changes.review.drawings import Drawings
from knapper.changes.review.making import Note
from knapper.changes.review.proposal_list import Wanted
from knapper.changes.review.proposal_records import Page, Proposal
from knapper.changes.review.proposal_schema import SCHEMA, VERSION
from knapper.errors import BadInput
from knapper.vault.paths import NotePath

FILE = "proposals.db"
LIMIT = 20
_APPLYING_S = 60
"""How long an acceptance may take; after that its process was killed, most likely."""
_LOST_H = 24
"""Hours after which an attempt to accept, of which the journal knows nothing, was surely never made."""


class Proposals:
    """Hold the open store of a vault; `open_proposals` makes one. Threads may share it, and processes have one each."""

    def __init__(self, own: Ledger, clock: Callable[[], datetime]) -> None:
        """Wrap an open file."""
        self._ledger = own
        self._clock = clock
        self._reader = proposal_rows.Reader(own)
        self.drawings = Drawings(own, self._reader)
        """The blocks in notes that show hunks."""

    def save(self, draft: Draft, meta: Meta, note: Note | None = None) -> Proposal:
        """Keep a draft until somebody says yes or no to it.

        Args:
            draft: What would happen.
            meta: Who wants it, and why.
            note: Why and how long it waits.

        Raises:
            BadInput: Nothing would change.
            NotFound: The proposal that it is to take the place of isn't there.
        """
        note = note or Note()
        proposal = making.make(draft, meta, note, self._clock())
        if not proposal.files and not proposal.folders:
            raise BadInput("nothing would change", hint="nothing has to be done", code="no_change")
        with self._ledger.writing() as database:
            proposal_rows.add(database, proposal)
            if note.supersedes:
                old = self._reader.get(database, note.supersedes)
                choices.check_open(old)
                database.execute(
                    "UPDATE proposals SET status = 'superseded', superseded_by = ? WHERE id = ?", (proposal.id, old.id)
                )
        return proposal

    def find(self, wanted: Wanted | None = None, *, limit: int = LIMIT, offset: int = 0) -> Page:
        """List proposals, newest first.

        Args:
            wanted: Which; None for all.
            limit: How many.
            offset: How many of the newest are left out.
        """
        self._expire()
        with self._ledger.reading() as database:
            return proposal_list.page(database, wanted or Wanted(), limit, offset)

    def show(self, proposal_id: str, *, visible: Callable[[NotePath], bool] | None = None) -> Proposal:
        """Give a proposal with its hunks; its `digest` is asked for on accepting.

        Args:
            proposal_id: Which.
            visible: Which files the reader may know of; None for all. Links that follow in others are left out.

        Raises:
            NotFound: There is none, or it is about a file that the reader may not know of.
        """
        self._expire()
        with self._ledger.reading() as database:
            found = self._reader.get(database, proposal_id)
        return found if visible is None else sight.seen(found, visible)

    def rebase(self, proposal_id: str, current: Mapping[NotePath, bytes | None]) -> Proposal:
        """Fit what is open to the files as they are now, and note what is stale.

        While a part is being applied nothing is: what files hold then is neither what they held nor what they will.

        Args:
            proposal_id: Which.
            current: What files hold, None for those that aren't there; of others nothing is known. A moved file's
                new path may be among them.

        Raises:
            NotFound: There is none.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            return found if self._is_applied(database, found.id) else _fitted(database, found, current)

    def read_back(self, proposal_id: str, path: NotePath, raw: bytes, change_id: str) -> None:
        """Note which blocks were accepted in a note without a word: they are gone, and their new text stands there.

        What became of others that are gone isn't guessed. While a part is being applied nothing is noted.

        Args:
            proposal_id: Which.
            path: The note.
            raw: What it holds.
            change_id: The change that did it; empty for none of ours.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            shown = proposal_rows.blocks(database, found.id).get(path, {})
            if not shown or self._is_applied(database, found.id):
                return
            file = choices.file_at(found, path)
            states = rendering.read_back(file, raw, shown).states
            taken = [name for name, state in states.items() if state == "accepted"]
            if not taken:
                return
            if change_id:
                attempts.made(database, found.id, change_id)
            settling.close(database, found, choices.hunks_of(found, taken), "accepted", "")
            left = {name: hunks for name, hunks in shown.items() if not set(taken).issuperset(hunks)}
            proposal_rows.put_blocks(database, found.id, file.number, left)

    def _is_applied(self, database: sqlite3.Connection, proposal_id: str) -> bool:
        since = proposal_rows.moment(self._clock() - timedelta(seconds=_APPLYING_S))
        return attempts.is_going_on(database, proposal_id, since)

    def select(
        self,
        proposal_id: str,
        digest: str,
        *,
        files: Collection[str] = (),
        hunks: Collection[str] = (),
        noted: Mapping[NotePath, bytes] | None = None,
        current: Mapping[NotePath, bytes | None] | None = None,
    ) -> Selection:
        """Take what is to be accepted: the files and hunks that are named, or all that fits where none is.

        Args:
            proposal_id: Which.
            digest: Of the state that was shown.
            files: Paths.
            hunks: Ids such as ``2.1``.
            noted: What notes hold that have blocks of this proposal.
            current: As for `rebase`, to which it is fitted first, whatever others said of the files meanwhile.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It isn't what was shown any more, it is closed, or something chosen is stale.
            BadInput: What was chosen can't be taken by itself.
        """
        self._expire()
        with self._ledger.writing() as database:
            found = _fitted(database, self._reader.get(database, proposal_id), current or {})
            choices.check_open(found)
            settling.check_shown(found, digest)
            part = bool(files or hunks)
            chosen = (
                choices.named(found, files=files, hunks=hunks, accepting=True) if part else choices.acceptable(found)
            )
            plain = choices.draft(found, chosen)
            draft, blocks = rendering.redrawn(found, chosen, plain, noted or {})
            selection = Selection(
                token=secrets.token_hex(16), proposal=found.id, chosen=chosen, draft=draft, blocks=blocks, source=found
            )
            attempts.note(database, selection, plain, proposal_rows.moment(self._clock()))
        return selection

    def mark_accepted(self, selection: Selection, change_id: str) -> Proposal:
        """Note that a selection was applied, and move what stays to where its text stands now.

        Args:
            selection: From `select`.
            change_id: The change that did it; empty where the files were so already.

        Raises:
            NotFound: The proposal isn't there any more.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, selection.proposal)
            return settling.accept(database, selection.token, found, selection.chosen, change_id)

    def abandon(self, selection: Selection) -> None:
        """Note that a selection was refused or failed, so that nothing of it was applied."""
        with self._ledger.writing() as database:
            attempts.forget(database, selection.token)

    def reconcile(self, journal: Journal) -> list[str]:
        """Note what was applied and not marked, because the process was killed between the two.

        Returns:
            Ids of the proposals that this was found of.
        """
        lost = proposal_rows.moment(self._clock() - timedelta(hours=_LOST_H))
        return attempts.reconcile(self._ledger, self._reader, journal, lost)

    def reject(
        self, proposal_id: str, reason: str, *, files: Collection[str] = (), hunks: Collection[str] = ()
    ) -> Proposal:
        """Say no to the files and hunks that are named, or to all that is open; they stay visible.

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
            found = self._reader.get(database, proposal_id)
            chosen = choices.rejectable(found, files=files, hunks=hunks)
            settled = settling.close(database, found, chosen, "rejected", reason)
            if settled.status in {"rejected", "partly_accepted"} or not found.files:
                status = settled.status if found.files else "rejected"
                settled = replace(settled, status=status, rejection=reason)
                said = (status, reason, found.id)
                database.execute("UPDATE proposals SET status = ?, rejection = ? WHERE id = ?", said)
            return settled

    def rejectable(self, proposal_id: str, *, files: Collection[str] = (), hunks: Collection[str] = ()) -> Chosen:
        """Tell what `reject` would say no to; errors are the same."""
        self._expire()
        with self._ledger.reading() as database:
            return choices.rejectable(self._reader.get(database, proposal_id), files=files, hunks=hunks)

    def prune(self, *, max_age_days: float) -> int:
        """Delete proposals that were closed, and made so long ago; tell how many."""
        oldest = proposal_rows.moment(self._clock() - timedelta(days=max_age_days))
        return expiry.prune(self._ledger, oldest)

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _expire(self) -> None:
        expiry.expire(self._ledger, proposal_rows.moment(self._clock()))


def open_proposals(folder: Path, *, clock: Callable[[], datetime] | None = None) -> Proposals:
    """Open a vault's proposals, and make the store where there is none; `Proposals.reconcile` is called next.

    Args:
        folder: The vault's state folder; it exists.
        clock: Tells the time; None for the system's.

    Raises:
        StorageError: The file can't be used.
    """
    return Proposals(ledger.open_ledger(folder / FILE, SCHEMA, VERSION), clock or _now)


def _now() -> datetime:
    return datetime.now(UTC)


def _fitted(database: sqlite3.Connection, proposal: Proposal, current: Mapping[NotePath, bytes | None]) -> Proposal:
    moved = staleness.moved(proposal, current)
    return settling.keep(database, proposal, moved) if moved else proposal
