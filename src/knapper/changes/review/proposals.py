"""Keep drafts that wait for a person's word, and follow what becomes of each part of them.

One SQLite file a vault, outside of it; what is accepted goes through `select`, the journal, then `mark_accepted`.
"""

import json
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from knapper.changes.disk import ids, ledger
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.ledger import Ledger
from knapper.changes.drafts import Draft
from knapper.changes.review import choices, hunking, proposal_list, proposal_rows, rendering, settling, staleness
from knapper.changes.review.choices import Blocks, Selection
from knapper.changes.review.proposal_list import Wanted
from knapper.changes.review.proposal_records import ItemState, Page, Proposal
from knapper.changes.review.proposal_schema import SCHEMA, VERSION
from knapper.errors import BadInput
from knapper.vault.grants import NOTHING_OPEN, Scope
from knapper.vault.paths import NotePath

FILE = "proposals.db"
DAYS = 30
LIMIT = 20
_LOST_H = 24
"""Hours after which an attempt to accept, of which the journal knows nothing, was surely never made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Say why and how long a draft waits."""

    why: str = ""
    """What the rules said."""
    tainted: bool = False
    """Whether the client has read text that others wrote."""
    days: float = DAYS
    scope: Scope = NOTHING_OPEN
    """The notes that the client's editable scope comes to."""
    supersedes: str = ""
    """The proposal that this one takes the place of."""


class Proposals:
    """Hold the open store of a vault; `open_proposals` makes one. Threads may share it, and processes have one each."""

    def __init__(self, own: Ledger, clock: Callable[[], datetime]) -> None:
        """Wrap an open file."""
        self._ledger = own
        self._clock = clock

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
        proposal = self._made(draft, meta, note)
        if not proposal.files and not proposal.folders:
            raise BadInput("nothing would change", hint="nothing has to be done", code="no_change")
        with self._ledger.writing() as database:
            proposal_rows.add(database, proposal)
            if note.supersedes:
                old = proposal_rows.get(database, note.supersedes)
                settling.check_open(old)
                database.execute(
                    "UPDATE proposals SET status = 'superseded', superseded_by = ? WHERE id = ?", (proposal.id, old.id)
                )
            return proposal_rows.get(database, proposal.id)

    def _made(self, draft: Draft, meta: Meta, note: Note) -> Proposal:
        name, now = ids.make(), self._clock()
        changed = [
            one for one in draft.files if one.trash or one.target or one.before is None or one.before != one.after
        ]
        return Proposal(
            id=name,
            client=meta.client,
            run=meta.run,
            created=now,
            expires=now + timedelta(days=note.days),
            status="open",
            reason=meta.reason,
            why=note.why,
            tainted=note.tainted,
            by_query=draft.by_query,
            files=tuple(hunking.cut(one, number, name) for number, one in enumerate(changed, start=1)),
            folders=draft.folders,
            notices=draft.notices,
            rewritten=draft.rewritten,
            scope=note.scope,
        )

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
            found = proposal_rows.get(database, proposal_id)
        return found if visible is None else seen(found, visible)

    def rebase(self, proposal_id: str, current: Mapping[NotePath, bytes | None]) -> Proposal:
        """Fit what is open to the files as they are now, and note what is stale.

        Args:
            proposal_id: Which.
            current: What files hold, None for those that aren't there; of others nothing is known. A moved file's
                new path may be among them.

        Raises:
            NotFound: There is none.
        """
        with self._ledger.writing() as database:
            found = proposal_rows.get(database, proposal_id)
            leaving = {file.path for file in found.files if file.target is not None or file.trash is not None}
            moved = False
            for file in found.files:
                if file.path not in current:
                    continue
                taken = file.target not in {None, *leaving} and current.get(file.place) is not None
                fitted = staleness.refit(file, current[file.path], target_taken=taken)
                if fitted != file:
                    proposal_rows.put_file(database, found.id, fitted)
                    moved = True
            return settling.settle(database, found.id) if moved else found

    def select(
        self,
        proposal_id: str,
        digest: str,
        *,
        files: Collection[str] = (),
        hunks: Collection[str] = (),
        noted: Mapping[NotePath, bytes] | None = None,
    ) -> Selection:
        """Take what is to be accepted: the files and hunks that are named, or all that fits where none is.

        Args:
            proposal_id: Which.
            digest: Of the state that was shown.
            files: Paths.
            hunks: Ids such as ``2.1``.
            noted: What notes hold that have blocks of this proposal.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It isn't what was shown any more, it is closed, or something chosen is stale.
            BadInput: What was chosen can't be taken by itself.
        """
        self._expire()
        with self._ledger.writing() as database:
            found = proposal_rows.get(database, proposal_id)
            settling.check_open(found)
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
            settling.attempt(database, selection, plain, proposal_rows.moment(self._clock()))
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
            return settling.accept(database, selection.token, selection.proposal, selection.chosen, change_id)

    def abandon(self, selection: Selection) -> None:
        """Note that a selection was refused or failed, so that nothing of it was applied."""
        with self._ledger.writing() as database:
            database.execute("DELETE FROM acceptances WHERE token = ? AND change IS NULL", (selection.token,))

    def reconcile(self, journal: Journal) -> list[str]:
        """Note what was applied and not marked, because the process was killed between the two.

        Returns:
            Ids of the proposals that this was found of.
        """
        with self._ledger.reading() as database:
            left = database.execute("SELECT * FROM acceptances WHERE change IS NULL ORDER BY at").fetchall()
        found: list[str] = []
        for row in left:
            made = journal.select(
                "proposal = :id AND phase IN ('applied', 'done') ORDER BY seq", {"id": row["proposal"]}
            )
            with self._ledger.writing() as database:
                if change := settling.match(database, row, made):
                    chosen = {int(number): frozenset(part) for number, part in json.loads(row["chosen"]).items()}
                    settling.accept(database, row["token"], row["proposal"], chosen, change.id)
                    found.append(row["proposal"])
        lost = proposal_rows.moment(self._clock() - timedelta(hours=_LOST_H))
        with self._ledger.writing() as database:
            database.execute("DELETE FROM acceptances WHERE change IS NULL AND at < ?", (lost,))
        return found

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
            found = proposal_rows.get(database, proposal_id)
            settling.check_open(found)
            part = bool(files or hunks)
            chosen = choices.named(found, files=files, hunks=hunks, accepting=False) if part else choices.opened(found)
            settling.close(database, found, chosen, "rejected", reason)
            settled = settling.settle(database, found.id)
            if settled.status in {"rejected", "partly_accepted"} or not found.files:
                status = settled.status if found.files else "rejected"
                said = (status, reason, found.id)
                database.execute("UPDATE proposals SET status = ?, rejection = ? WHERE id = ?", said)
            return proposal_rows.get(database, found.id)

    def edit_hunk(self, proposal_id: str, digest: str, hunk: str, text: str) -> Proposal:
        """Put another text in the place of a hunk's new side, before it is accepted; the digest changes with it.

        Raises:
            NotFound: There is no such proposal or hunk.
            ConflictError: It isn't what was shown any more, or is closed.
            BadInput: The hunk isn't open, or would change nothing.
        """
        self._expire()
        with self._ledger.writing() as database:
            found = proposal_rows.get(database, proposal_id)
            settling.check_open(found)
            settling.check_shown(found, digest)
            for number, own in choices.hunks_of(found, [hunk]).items():
                changed = hunking.edited(found.files[number - 1], min(own), text, found.id)
                proposal_rows.put_file(database, found.id, changed)
            return proposal_rows.get(database, found.id)

    def blocks(self, proposal_id: str) -> dict[NotePath, Blocks]:
        """Tell which notes hold blocks that show hunks of a proposal, and which blocks."""
        with self._ledger.reading() as database:
            found = proposal_rows.get(database, proposal_id)
            shown = {file.path: proposal_rows.blocks(database, found.id, file.number) for file in found.files}
        return {path: blocks for path, blocks in shown.items() if blocks}

    def set_blocks(self, proposal_id: str, path: NotePath, blocks: Blocks) -> None:
        """Note which blocks of a note show hunks of a proposal, in the place of those that did.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            found = proposal_rows.get(database, proposal_id)
            proposal_rows.put_blocks(database, found.id, choices.file_at(found, path).number, blocks)

    def mark_in_note(self, proposal_id: str, states: Mapping[str, ItemState], reason: str = "") -> Proposal:
        """Note what a person did to blocks in a note itself: hunk ids with what became of each.

        Raises:
            NotFound: There is no such proposal or hunk.
        """
        with self._ledger.writing() as database:
            found = proposal_rows.get(database, proposal_id)
            for state in set(states.values()) - {"open"}:
                chosen = choices.hunks_of(found, [name for name, own in states.items() if own == state])
                settling.close(database, found, chosen, state, reason)
                found = proposal_rows.get(database, proposal_id)
            return settling.settle(database, found.id)

    def prune(self, *, max_age_days: float) -> int:
        """Delete proposals that were closed, and made so long ago; tell how many."""
        oldest = proposal_rows.moment(self._clock() - timedelta(days=max_age_days))
        with self._ledger.writing() as database:
            rows = database.execute(
                "SELECT id FROM proposals WHERE status NOT IN ('open', 'stale') AND created < ?", (oldest,)
            ).fetchall()
            for row in rows:
                proposal_rows.drop(database, row["id"])
        return len(rows)

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _expire(self) -> None:
        now = {"now": proposal_rows.moment(self._clock())}
        due = "status IN ('open', 'stale') AND expires <= :now"
        with self._ledger.reading() as database:
            if not database.execute(f"SELECT 1 FROM proposals WHERE {due} LIMIT 1", now).fetchone():  # noqa: S608
                return
        with self._ledger.writing() as database:
            database.execute(f"UPDATE proposals SET status = 'expired' WHERE {due}", now)  # noqa: S608


def seen(proposal: Proposal, visible: Callable[[NotePath], bool]) -> Proposal:
    """Leave out of a proposal what its reader may not know of.

    Raises:
        NotFound: It is about such a file; a link in one that only follows is left out.
    """
    hidden = {file.path for file in proposal.files if not (visible(file.path) and visible(file.place))}
    if any(file.cause == "asked" and file.path in hidden for file in proposal.files):
        raise proposal_rows.missing(proposal.id)
    return replace(
        proposal,
        files=tuple(file for file in proposal.files if file.path not in hidden),
        rewritten=tuple(one for one in proposal.rewritten if one.path not in hidden),
    )


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
