"""The one door through which a vault is written: requests, drafts, rules, then the journal or a proposal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from knapper.changes import drafting, rules, submissions
from knapper.changes.disk import apply as applying
from knapper.changes.disk import undo
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.selection import Selector
from knapper.changes.disk.state import State
from knapper.changes.disk.undo import Undone
from knapper.changes.drafting import Desk
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.requests import Request
from knapper.changes.review import acceptance, rendering
from knapper.changes.review.proposal_list import Wanted
from knapper.changes.review.proposal_records import Proposal
from knapper.changes.review.proposals import DAYS, Proposals, seen
from knapper.changes.review.proposals import Note as Waiting
from knapper.changes.review.taint import Taints
from knapper.changes.rules import Verdict
from knapper.changes.submissions import Submission
from knapper.changes.text import blocks, snapshots, splices
from knapper.changes.text.blocks import Choice
from knapper.errors import BadInput, KnapError, RefusedError
from knapper.vault import grants as granted
from knapper.vault.grants import Grants, Scope
from knapper.vault.paths import NotePath

_READ_BACK = 50
"""Proposals about one note that are told what became of their blocks in it."""


def _nothing(_: str) -> tuple[str, ...]:
    return ()


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
    proposal_days: float = DAYS
    """How long proposals wait."""
    applied: Callable[[str], tuple[str, ...]] = _nothing
    """Told the id of each change that was applied; answers what the caller should hear."""
    recovered: list[str] = field(default_factory=list[str])
    """What became of changes that a kill had cut short; told with the first change, and then no more."""

    def submit(self, requests: Sequence[Request], asked: Asked | None = None) -> Submission:
        """Carry out a batch: apply it, keep it as a proposal, or refuse it, as the client's rules say.

        Items that can't be carried out, or that the rules refuse, are listed, and the others go on together. A batch of
        one raises what is wrong with it instead.

        Raises:
            KnapError: The only request fails, or the disk does; nothing is changed then.
        """
        asked = asked or Asked()
        if asked.person_word and not self.grants.is_person:
            raise RefusedError(f"the client '{self.grants.client}' is no person, and can't give a person's word")
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
        self, proposal_id: str, digest: str, *, files: Sequence[str] = (), hunks: Sequence[str] = (), run: str = ""
    ) -> Submission:
        """Apply a proposal, or the named files or hunks of it, as it was shown.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It isn't what was shown, or a place in a file has changed since.
            RefusedError: The client may not accept it.
        """
        selection = acceptance.choose(self.proposals, self.desk.view, proposal_id, digest, files=files, hunks=hunks)
        try:
            ground, scope = rules.ground(self.desk.view), selection.scope
            verdict = rules.acceptance(selection.draft, self._mine(run), ground, scope, tainted=selection.tainted)
            verdict.raise_if_refused()
            source = selection.source
            meta = Meta(client=self.grants.client, run=source.run, reason=source.reason, proposal=proposal_id)
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
            ConflictError: A block of it in a note was edited by hand.
        """
        found = self.proposals.show(proposal_id, visible=self.desk.view.visible)
        if found.status not in {"open", "stale"}:
            return found
        fitted, _ = acceptance.fit(self.proposals, self.desk.view.root, proposal_id)
        return seen(fitted, self.desk.view.visible)

    def reject(
        self, proposal_id: str, reason: str = "", *, files: Sequence[str] = (), hunks: Sequence[str] = ()
    ) -> Proposal:
        """Say no to a proposal, or to the named files or hunks of it; blocks of it leave the notes.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It is closed, or a block of it was edited by hand.
            RefusedError: It is another client's, and the client is no person.
        """
        found = self.proposals.show(proposal_id, visible=self.desk.view.visible)
        if not self.grants.is_person and found.client != self.grants.client:
            raise RefusedError(f"the proposal {proposal_id} is another client's", hint="a person can reject it")
        rejected = self.proposals.reject(proposal_id, reason, files=files, hunks=hunks)
        cleared = acceptance.blocks_removed(self.proposals, self.desk.view.root, proposal_id)
        if cleared.files:
            _ = self._apply(cleared, Meta(client=self.grants.client, run=found.run, reason=f"rejected {proposal_id}"))
        return rejected

    def draw(self, proposal_id: str) -> Submission:
        """Show what waits of a proposal as blocks in its notes; the notes' own text stays as it is.

        Raises:
            NotFound: There is none.
            RefusedError: The client isn't a person.
            BadInput: A part can't be shown in a note.
            ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
        """
        self._check_person("put blocks into notes")
        found, noted = acceptance.fit(self.proposals, self.desk.view.root, proposal_id)
        held = self.proposals.blocks(proposal_id)
        made = [
            (file.path, rendering.render(file, noted.get(file.path, file.before or b""), held.get(file.path, {})))
            for file in found.files
            if file.kind == "edit" and file.state == "open"
        ]
        if not made:
            raise BadInput(f"nothing of {proposal_id} can be shown in a note", hint="`knap edits show` shows it")
        draft = Draft(files=tuple(file for _, one in made for file in one.draft.files))
        done = self._apply(draft, Meta(client=self.grants.client, run=found.run, reason=f"shown: {proposal_id}"))
        for path, one in made:
            self.proposals.set_blocks(proposal_id, path, one.blocks)
        return replace(done, proposal_id=proposal_id)

    def resolve(self, path: str, choice: Choice | Mapping[str, Choice]) -> Submission:
        """Accept or reject the edits that wait as blocks in a note: all of them, or each by its id.

        Raises:
            NotFound: There is no such note or block.
            ConflictError: A block was edited by hand or half deleted.
            RefusedError: The client isn't a person.
        """
        self._check_person("resolve blocks")
        note = self.desk.view.read(path)
        found = blocks.resolve_all(snapshots.take(note.raw, note.outline), choice)
        after = splices.merge(note.raw, found)
        needs = frozenset[Capability]({"add", "delete"})
        file = FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=True)
        done = self._apply(Draft(files=(file,)), Meta(client=self.grants.client, reason="resolved waiting edits"))
        self._read_back(note.path, after)
        return done

    def _read_back(self, path: NotePath, raw: bytes) -> None:
        """Tell proposals what became of their blocks in a note."""
        for one in self.proposals.find(Wanted(path=path), limit=_READ_BACK).proposals:
            shown = self.proposals.blocks(one.id).get(path)
            if not shown:
                continue
            file = next(file for file in self.proposals.show(one.id).files if file.path == path)
            seen = rendering.read_back(file, raw, shown)
            _ = self.proposals.mark_in_note(one.id, seen.states)
            self.proposals.set_blocks(one.id, path, seen.blocks)

    def _check_person(self, what: str) -> None:
        if not self.grants.is_person:
            raise RefusedError(f"only a person can {what}", hint="use `knap edits`, or accept the proposal itself")

    def undo(self, selector: Selector, *, reason: str = "", partial: bool = False, run: str = "") -> Undone:
        """Take changes back; the undo is a change itself.

        Raises:
            RefusedError: The client may not.
            ConflictError: Files were changed since, and *partial* wasn't asked for.
            NotFound: There is nothing to take back.
        """
        if not self._mine(run).may_undo:
            raise RefusedError(f"the client '{self.grants.client}' may not undo", hint="a person can: `knap undo`")
        undone = undo.undo(self.state, selector, Meta(client=self.grants.client, reason=reason), partial=partial)
        self._tell(path for file in undone.applied.files for path in (file.before_path, file.after_path) if path)
        _ = self.applied(undone.applied.change_id)
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
            tainted = self._mine(asked.run).tainted
            note = Waiting(why=verdict.reason, tainted=tainted, days=self.proposal_days, scope=asked.scope)
            saved = self.proposals.save(draft, meta, note)
            return replace(told, status="proposed", proposal_id=saved.id)
        return replace(self._apply(draft, meta), reason="")

    def _apply(self, draft: Draft, meta: Meta) -> Submission:
        applied = applying.apply(self.state, list(draft.effects()), meta)
        self._tell(path for file in draft.files for path in (file.path, file.place))
        files, hidden = submissions.reports(draft)
        told = tuple(self.recovered)
        self.recovered.clear()
        return Submission(
            status="applied",
            change_id=applied.change_id,
            files=files,
            hidden=hidden,
            notices=(*told, *draft.notices, *applied.notices, *self.applied(applied.change_id)),
            rewritten=draft.rewritten,
        )

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
    paths = {file.path for file in kept}
    rewritten = tuple(one for one in draft.rewritten if one.path in paths)
    return replace(draft, files=kept, rewritten=rewritten)
