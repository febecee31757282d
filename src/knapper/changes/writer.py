"""The one door through which a vault is written: requests, drafts, rules, then the journal or a proposal."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knapper.changes import apply as applying
from knapper.changes import drafting, proposals, rules, submissions, undo
from knapper.changes.drafting import Desk
from knapper.changes.drafts import Draft
from knapper.changes.effects import Meta
from knapper.changes.proposal_records import Proposal
from knapper.changes.proposals import Proposals
from knapper.changes.requests import Request
from knapper.changes.rules import Verdict
from knapper.changes.selection import Selector
from knapper.changes.state import State
from knapper.changes.submissions import Submission
from knapper.changes.taint import Taints
from knapper.changes.undo import Undone
from knapper.errors import KnapError, NotFound, RefusedError
from knapper.vault import disk, lookup
from knapper.vault import grants as granted
from knapper.vault.grants import Grants, Scope
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Say how a batch of requests is meant."""

    reason: str = ""
    """Why, for the journal and the proposal."""
    run: str = ""
    dry_run: bool = False
    """Only tell what would happen."""
    propose: bool = False
    """Make a proposal even of what would be applied."""
    person_word: bool = False
    """A person has seen this very batch and said yes."""
    log: bool = False
    """An entry that the program adds to its own log."""
    scope: Scope = granted.NOTHING_OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Write to one vault on behalf of one client."""

    desk: Desk
    state: State
    proposals: Proposals
    taints: Taints
    grants: Grants
    """The client's, as the owner configured them."""
    touched: Callable[[Sequence[Path]], None]
    """Told which files and folders were written, so that the index follows."""

    def submit(self, requests: Sequence[Request], asked: Asked | None = None) -> Submission:
        """Carry out a batch: apply it, keep it as a proposal, or refuse it, as the client's rules say.

        Items that can't be carried out, or that the rules refuse, are listed, and the others go on together. A batch of
        one raises what is wrong with it instead.

        Raises:
            KnapError: The only request fails, or the disk does; nothing is changed then.
        """
        asked = asked or Asked()
        drafted = drafting.draft(self.desk, requests)
        draft, failures = drafted.draft, drafted.failures
        if failures and len(failures) == len(requests):
            raise failures[0].error
        verdict = self._decide(draft, asked)
        refused = verdict.refusals
        if verdict.kind == "refuse" and (kept := _without(draft, verdict)) is not None:
            draft, verdict = kept, self._decide(kept, asked)
        verdict.raise_if_refused()
        done = self._carry_out(draft, asked, verdict)
        return replace(done, failures=failures, refusals=refused)

    def accept(
        self,
        proposal_id: str,
        digest: str,
        *,
        files: Sequence[str] = (),
        hunks: Sequence[str] = (),
        scope: Scope = granted.NOTHING_OPEN,
    ) -> Submission:
        """Apply a proposal, or the named files or hunks of it, as it was shown.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It isn't what was shown, or a place in a file has changed since.
            RefusedError: The client may not accept it.
        """
        shown = self.refit(proposal_id)
        selection = self.proposals.select(proposal_id, digest, files=files, hunks=hunks)
        try:
            verdict = rules.acceptance(
                selection.draft, self._mine(), rules.ground(self.desk.view), scope, tainted=selection.tainted
            )
            verdict.raise_if_refused()
            meta = Meta(client=self.grants.client, run=shown.run, reason=shown.reason, proposal=proposal_id)
            applied = self._apply(selection.draft, meta)
        except KnapError:
            self.proposals.abandon(selection)
            raise
        self.proposals.mark_accepted(selection, applied.change_id)
        return replace(applied, proposal_id=proposal_id)

    def refit(self, proposal_id: str) -> Proposal:
        """Fit a proposal to the files as they are now, and give it as the client may see it.

        Raises:
            NotFound: There is none, or it is about a file that the client may not know of.
        """
        found = self.proposals.show(proposal_id, visible=self.desk.view.visible)
        if found.status in {"open", "stale"}:
            whole = self.proposals.show(proposal_id)
            places = {path for file in whole.files for path in (file.path, file.place)}
            self.proposals.rebase(proposal_id, {path: self._current(path) for path in places})
            found = self.proposals.show(proposal_id, visible=self.desk.view.visible)
        return found

    def undo(self, selector: Selector, *, reason: str = "", partial: bool = False) -> Undone:
        """Take changes back; the undo is a change itself.

        Raises:
            RefusedError: The client may not.
            ConflictError: Files were changed since, and *partial* wasn't asked for.
            NotFound: There is nothing to take back.
        """
        if not self._mine().may_undo:
            raise RefusedError(f"the client '{self.grants.client}' may not undo", hint="a person can: `knap undo`")
        undone = undo.undo(self.state, selector, Meta(client=self.grants.client, reason=reason), partial=partial)
        self._tell(file.path for file in undone.applied.files)
        return undone

    def _mine(self, run: str = "") -> Grants:
        """Give the client's rules as they hold right now: who has read foreign text only proposes."""
        return replace(self.grants, tainted=self.taints.is_tainted(self.grants.client, run))

    def _decide(self, draft: Draft, asked: Asked) -> Verdict:
        ground = rules.ground(self.desk.view)
        return rules.verdict(
            draft, self._mine(asked.run), ground, asked.scope, person_word=asked.person_word, log=asked.log
        )

    def _carry_out(self, draft: Draft, asked: Asked, verdict: Verdict) -> Submission:
        files, hidden = submissions.reports(draft)
        told = Submission(
            status="planned",
            reason=verdict.reason,
            files=files,
            hidden=hidden,
            notices=draft.notices,
            rewritten=draft.rewritten,
        )
        if asked.dry_run:
            return told
        meta = Meta(client=self.grants.client, run=asked.run, reason=asked.reason)
        if verdict.kind == "propose" or asked.propose:
            note = proposals.Note(why=verdict.reason, tainted=self._mine(asked.run).tainted)
            saved = self.proposals.save(draft, meta, note)
            return replace(told, status="proposed", proposal_id=saved.id)
        return replace(self._apply(draft, meta), reason="")

    def _apply(self, draft: Draft, meta: Meta) -> Submission:
        applied = applying.apply(self.state, list(draft.effects()), meta)
        self._tell(path for file in draft.files for path in (file.path, file.place))
        files, hidden = submissions.reports(draft)
        return Submission(
            status="applied",
            change_id=applied.change_id,
            files=files,
            hidden=hidden,
            notices=(*draft.notices, *applied.notices),
            rewritten=draft.rewritten,
        )

    def _current(self, path: NotePath) -> bytes | None:
        """Read a file as it is now, or what stands at a path that is to be taken; None where nothing is."""
        try:
            found = lookup.find(self.desk.owner.root, path)
            return disk.read_bytes(found.file, shown_as=path)
        except NotFound:
            return None

    def _tell(self, paths: Iterable[NotePath | str]) -> None:
        self.touched([self.desk.view.root / path for path in dict.fromkeys(paths)])


def _without(draft: Draft, verdict: Verdict) -> Draft | None:
    """Leave out the requests that are refused; None where nothing would be left, or what is left isn't whole."""
    hit = frozenset(number for refusal in verdict.refusals for number in refusal.requests)
    if not hit or draft.folders:
        return None
    kept = tuple(file for file in draft.files if not file.requests & hit)
    if not kept:
        return None
    paths = {file.place for file in kept}
    rewritten = tuple(one for one in draft.rewritten if one.path in paths)
    return replace(draft, files=kept, rewritten=rewritten)
