"""The one door through which a vault is written: requests, drafts, rules, then the journal or a proposal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, cast

from knapper.changes import drafting, grounds, rules, submissions
from knapper.changes import failures as failing
from knapper.changes.disk import apply as applying
from knapper.changes.disk import selection, undo
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.records import Change
from knapper.changes.disk.selection import Selector
from knapper.changes.disk.state import State
from knapper.changes.disk.undo import Undone
from knapper.changes.drafting import Desk
from knapper.changes.drafts import Draft
from knapper.changes.requests import Request
from knapper.changes.review import sight
from knapper.changes.review.making import DAYS
from knapper.changes.review.making import Note as Waiting
from knapper.changes.review.proposals import Proposals
from knapper.changes.review.taint import Taints
from knapper.changes.rules import LogPlace, Verdict
from knapper.changes.submissions import Submission
from knapper.errors import ConflictError, RefusedError
from knapper.vault import access
from knapper.vault.access import Grants, Scope
from knapper.vault.paths import NotePath

_TRASH: Final = ".trash/"


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
    chosen: str = ""
    """How the files were chosen that aren't named one by one, such as ``folder Projects``: always a proposal then."""
    person_word: bool = False
    """A person has seen this very batch and said yes."""
    log: LogPlace | None = None
    """Where the program adds an entry to its own log."""
    scope: Scope = access.EMPTY_SCOPE


def _was_overtaken(error: ConflictError) -> bool:
    """Tell whether somebody else wrote between our reading and our writing; then all can be read once more."""
    found = cast("Sequence[Mapping[str, object]]", error.details.get("conflicts", ()))
    return bool(found) and all(one["problem"] == "has changed" for one in found)


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

        Items that can't be carried out, or that the rules refuse, are listed, and the others go on together.

        Raises:
            KnapError: Every request fails (``details["failures"]`` has each where there are several), or the disk does;
                nothing is changed then.
        """
        asked = asked or Asked()
        if asked.person_word and not self.grants.is_person:
            raise RefusedError(f"the client '{self.grants.client}' is no person, and can't give a person's word")
        try:
            return self.attempt(requests, asked)
        except ConflictError as error:
            if asked.person_word or not _was_overtaken(error):
                raise
        return self.alone(lambda alone: alone.attempt(requests, asked))

    def alone(self, work: "Callable[[Writer], Submission]") -> Submission:
        """Do work while nobody else writes, so that what it reads stays so; of changes is told when others can again.

        Raises:
            KnapError: As the work says, or another writer has the vault's lock all the time.
        """
        if self.state.is_held:
            return work(self)
        touched: list[Path] = []
        try:
            with applying.hold(self.state) as held:
                done = work(replace(self, state=held, touched=touched.extend, applied=_nothing))
        finally:
            if touched:
                self.touched(touched)
        more = self.applied(done.change_id) if done.change_id else ()
        return replace(done, notices=(*done.notices, *more))

    def attempt(self, requests: Sequence[Request], asked: Asked) -> Submission:
        """Carry out a batch as `submit` does, but fail where somebody else writes between reading and writing."""
        drafted = drafting.draft(self.desk, requests)
        draft, failures = drafted.draft, drafted.failures
        if asked.chosen:
            draft = replace(draft, by_query=True)
        if failures and len(failures) == len(requests):
            raise failing.of_all(failures, requests)
        verdict = self._decide(draft, asked)
        refused = verdict.refusals
        if verdict.kind == "refuse" and (kept := _without(draft, verdict)) is not None:
            draft, verdict = kept, self._decide(kept, asked)
        try:
            verdict.raise_if_refused()
        except RefusedError as error:
            if failures:
                error.details["failures"] = failing.rows(failures, requests)
            raise
        done = self._carry_out(draft, asked, verdict)
        return replace(done, failures=failures, refusals=refused)

    def undo(self, selector: Selector, *, reason: str = "", partial: bool = False, run: str = "") -> Undone:
        """Take changes back; the undo is a change itself.

        Raises:
            RefusedError: The client may not.
            ConflictError: Files were changed since, and *partial* wasn't asked for.
            NotFound: There is nothing to take back.
        """
        found = self.undoable(selector, run, partial=partial)
        meta = Meta(client=self.grants.client, reason=reason)
        try:
            undone = undo.undo(self.state, selector, meta, partial=partial, checked=found)
        except ConflictError as error:
            if "conflicts" in error.details:
                error.hint = "undo what came later first, or take back the other files only (--partial)"
            raise
        self._tell(path for file in undone.applied.files for path in (file.before_path, file.after_path) if path)
        _ = self.applied(undone.applied.change_id)
        return undone

    def undoable(self, selector: Selector, run: str = "", *, partial: bool = False) -> list[Change]:
        """Give the changes that an undo would take back, the newest first.

        Raises:
            RefusedError: The client may not undo, or not these.
            NotFound: There is nothing to take back.
            ConflictError: The journal had to drop some of them, and *partial* wasn't asked for.
        """
        if not self.mine(run).may_undo:
            raise RefusedError(f"the client '{self.grants.client}' may not undo", hint="a person can: `knap undo`")
        found = selection.changes(self.state.journal, selector, partial=partial, sees=self._knows)
        for change in found:
            self._check_undo(change)
        return found

    def _knows(self, change: Change) -> bool:
        """Tell whether the client may know of a change: a person of all, others of what they did or could see."""
        if self.grants.is_person or self.desk.view.policy.sees_all or change.client == self.grants.client:
            return True
        ends = ({end for end in (file.before_path, file.after_path) if end} for file in change.files)
        visible = self.desk.view.visible
        return any(all(end.startswith(_TRASH) or visible(NotePath(end)) for end in both) for both in ends)

    def _check_undo(self, change: Change) -> None:
        """Hold an undo to the rules as they are now; who isn't a person takes back only what it did itself."""
        touched = (end for file in change.files for end in (file.before_path, file.after_path) if end)
        ends = [NotePath(end) for end in touched if not end.startswith(_TRASH)]
        own = change.client == self.grants.client and not any(map(self.grants.is_guarded, ends))
        if not self.grants.is_person and not (own and all(map(self.desk.view.visible, ends))):
            raise RefusedError(
                f"the client '{self.grants.client}' may only take back its own changes of files that it may change",
                hint="a person can take back others: `knap undo`",
            )
        if (kept := next((end for end in ends if not self.grants.writable(end)), None)) is not None:
            raise RefusedError(
                f"{change.id} can't be taken back: '{self.grants.client}' may not change '{kept}'",
                hint="the owner can allow it in the client's rules",
                code="not_writable",
            )

    def mine(self, run: str = "") -> Grants:
        """Give the client's rules as they hold right now: who has read foreign text only proposes."""
        return replace(self.grants, tainted=self.taints.is_tainted(self.grants.client, run))

    def _decide(self, draft: Draft, asked: Asked) -> Verdict:
        ground = grounds.of(self.desk.view)
        verdict = rules.verdict(
            draft, self.mine(asked.run), ground, asked.scope, person_word=asked.person_word, log=asked.log
        )
        if asked.chosen and verdict.kind == "propose":
            return replace(verdict, reason=f"its notes were chosen by {asked.chosen}")
        return verdict

    def _carry_out(self, draft: Draft, asked: Asked, verdict: Verdict) -> Submission:
        meta = Meta(client=self.grants.client, run=asked.run, reason=asked.reason)
        if verdict.kind == "apply" and not (asked.dry_run or asked.propose):
            return self.apply(draft, meta)
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
        tainted = self.mine(asked.run).tainted
        note = Waiting(
            why=verdict.reason,
            tainted=tainted,
            days=self.proposal_days,
            scope=asked.scope,
            behalf=self.grants.behalf,
        )
        return replace(told, status="proposed", proposal_id=self.proposals.save(draft, meta, note).id)

    def apply(self, draft: Draft, meta: Meta) -> Submission:
        """Do what was decided, and let the index follow; deciding is the caller's.

        Raises:
            KnapError: As for `knapper.changes.disk.apply.apply`; nothing was changed then.
        """
        unseen = sight.hidden_paths(draft.files, self.desk.view.visible)
        with sight.veiling(unseen):
            applied = applying.apply(self.state, list(draft.effects()), meta)
        self._tell(path for file in draft.files for path in (file.path, file.place))
        files, hidden = submissions.reports(draft)
        told = (*self.recovered, *applied.notices)
        if self.desk.view.policy.sees_all:
            self.recovered.clear()
        else:  # of other changes, and of files that follow, whoever sees all is told
            own = [path for file in draft.files for path in (file.path, file.place)]
            told = tuple(one for one in applied.notices if _is_about(one, own) and not _is_about(one, unseen))
        return Submission(
            status="applied",
            change_id=applied.change_id,
            files=files,
            hidden=hidden,
            notices=(*draft.notices, *told, *self.applied(applied.change_id)),
            rewritten=draft.rewritten,
        )

    def _tell(self, paths: Iterable[NotePath | str]) -> None:
        self.touched([self.desk.view.root / path for path in dict.fromkeys(paths)])


def _is_about(notice: str, paths: Iterable[str]) -> bool:
    return any(path in notice for path in paths)


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
