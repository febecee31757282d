"""Submission of changes: checked, then applied, proposed or refused, and reported; and what a vault's writers share."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self

from knapper.changes import drafting, drafts, rules
from knapper.changes.disk import apply, repair, undo
from knapper.changes.disk.apply import Recovered
from knapper.changes.disk.journal import Change
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.transaction import State
from knapper.changes.disk.undo import LaterChange, OfProposal, Selector, Undone
from knapper.changes.drafting import DraftContext
from knapper.changes.drafts import Draft, Failure, FileDraft, LinkRewrite, Request
from knapper.changes.proposals import store, taint
from knapper.changes.proposals.parts import DEFAULT_DAYS, ProposalTerms
from knapper.changes.proposals.refusals import RefusedRequest
from knapper.changes.proposals.store import Proposals
from knapper.changes.proposals.taint import Taints
from knapper.changes.rules import LogTarget, Refusal, Verdict
from knapper.changes.text import diff
from knapper.errors import ConflictError, NotFound, RefusedError, StorageError
from knapper.jsontypes import objects_in
from knapper.vault import access, parser
from knapper.vault.access import Grants, Scope
from knapper.vault.paths import NotePath
from knapper.vault.view import View

if TYPE_CHECKING:
    from knapper.index.engine import Engine

Status = Literal["applied", "proposed", "refused", "planned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What happened, or would happen, to one file."""

    path: NotePath
    target: NotePath | None
    """The new path of a moved file."""
    action: Literal["edited", "created", "moved", "trashed", "linked"]
    """``linked``: only links in it follow a move."""
    before_hash: str | None
    after_hash: str | None
    """None for what is trashed, and for moved files that aren't notes."""
    diff: str
    """Unified; empty where no text changes."""

    @property
    def place(self) -> NotePath:
        """Return the path that the file has afterwards."""
        return self.target or self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Outcome of a batch of requests."""

    status: Status
    reason: str = ""
    """Why it was proposed or refused; empty where it was applied."""
    change_id: str = ""
    proposal_id: str = ""
    files: tuple[FileReport, ...] = ()
    hidden: int = 0
    """How many files changed that the caller may not see."""
    failures: tuple[Failure, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notices: tuple[str, ...] = ()
    rewritten: tuple[LinkRewrite, ...] = ()


def report_files(draft: Draft) -> tuple[tuple[FileReport, ...], int]:
    """Report the files of a draft that its caller may see, and count the others."""
    file_reports: list[FileReport] = []
    for file in (file for file in draft.files if not file.hidden):
        before, after = file.before or b"", file.after or b""
        has_text = file.after is not None and file.after != file.before
        file_reports.append(
            FileReport(
                path=file.path,
                target=file.target,
                action=_action_of(file),
                before_hash=file.base,
                after_hash=None if file.trash or file.after is None else parser.content_hash(file.after),
                diff=diff.unified_diff(before, after, file.place) if has_text else "",
            )
        )
    return tuple(file_reports), len(draft.files) - len(file_reports)


def _action_of(file: FileDraft) -> Literal["edited", "created", "moved", "trashed", "linked"]:
    if file.trash is not None:
        return "trashed"
    if file.target is not None:
        return "moved"
    if file.before is None and file.base is None:
        return "created"
    return "linked" if file.cause == "link" else "edited"


_TRASH_PREFIX: Final = ".trash/"


def _no_notices(_: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """Options of a batch of requests."""

    reason: str = ""
    """Why, for the journal and the proposal."""
    run: str = ""
    dry_run: bool = False
    """Only report what would happen."""
    propose: bool = False
    """Make a proposal even of a change that would be applied."""
    chosen_by: str = ""
    """How the files were chosen that aren't named one by one, such as ``folder Projects``: always a proposal then."""
    approved_by_person: bool = False
    """A person has seen this very batch and approved it."""
    log: LogTarget | None = None
    """Where the program adds an entry to its own log."""
    scope: Scope = access.EMPTY_SCOPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Access to write to one vault on behalf of one client."""

    context: DraftContext
    state: State
    proposals: Proposals
    taints: Taints
    grants: Grants
    """The client's, as the owner configured them."""
    on_touched: Callable[[Sequence[Path]], tuple[NotePath, ...]]
    """Called with what was written, so that the index is updated; returns large files left to the next indexing."""
    proposal_days: float = DEFAULT_DAYS
    """How long proposals wait."""
    on_applied: Callable[[str], tuple[str, ...]] = _no_notices
    """Called with the id of each applied change; returns notices for the caller."""
    recovered: list[str] = field(default_factory=list[str])
    """Notices about changes that a kill had interrupted; reported once, with the first change."""

    def submit(self, requests: Sequence[Request], options: SubmitOptions | None = None) -> Submission:
        """Carry out a batch: apply it, keep it as a proposal, or refuse it, as the client's rules say.

        Requests that can't be carried out, or that the rules refuse, are listed; the others are carried out together.

        Raises:
            KnapError: Every request fails (``details["failures"]`` has each where there are several), or the disk does;
                nothing is changed then.
        """
        options = options or SubmitOptions()
        if options.approved_by_person and not self.grants.is_person:
            raise RefusedError(f"the client '{self.grants.client}' is no person, and can't give a person's word")
        try:
            return self.attempt(requests, options)
        except ConflictError as error:
            if options.approved_by_person:
                raise
            # Another writer may have changed files between reading and writing, so that a second attempt may succeed.
            conflicts = objects_in(error.details.get("conflicts"))
            if not conflicts or any(one["problem"] != "has changed" for one in conflicts):
                raise
        # Under the lock no other client or process can write in between, so a second attempt is enough.
        return self.exclusively(lambda alone: alone.attempt(requests, options))

    def exclusively(self, work: "Callable[[Writer], Submission]") -> Submission:
        """Do work under the write lock, so that what it reads doesn't change; listeners are called after its release.

        Raises:
            KnapError: As the work raises, or another writer held the vault's lock until the time-out.
        """
        if self.state.is_locked:
            return work(self)
        touched: list[Path] = []
        change_id = ""
        left: tuple[str, ...] = ()

        def collect(paths: Sequence[Path]) -> tuple[NotePath, ...]:
            touched.extend(paths)
            return ()

        try:
            with apply.hold_lock(self.state) as held_state:
                submission = work(replace(self, state=held_state, on_touched=collect, on_applied=_no_notices))
                change_id = submission.change_id
        finally:
            # Also after an error: a part of the work may have been written before it.
            if touched:
                left = self._report_touched(touched, change_id)
        more = self.on_applied(change_id) if change_id else ()
        return replace(submission, notices=(*submission.notices, *left, *more))

    def attempt(self, requests: Sequence[Request], options: SubmitOptions) -> Submission:
        """Carry out a batch as `submit` does, but fail if another writer changes files between reading and writing."""
        drafted = drafting.draft_requests(self.context, requests)
        draft, failures = drafted.draft, drafted.failures
        if options.chosen_by:
            draft = replace(draft, by_query=True)
        if failures and len(failures) == len(requests):
            raise drafts.batch_error(failures, requests)
        verdict = self._decide(draft, options)
        refused = verdict.refusals
        if verdict.kind == "refuse" and (remaining := _without_refused(draft, verdict)) is not None:
            draft, verdict = remaining, self._decide(remaining, options)
        try:
            verdict.raise_if_refused()
        except RefusedError as error:
            self._log_refusals(drafted.draft, refused, options, verdict.reason)
            if failures:
                error.details["failures"] = drafts.failure_rows(failures, requests)
            raise
        submission = self._carry_out(draft, options, verdict)
        if refused:
            self._log_refusals(drafted.draft, refused, options)
        return replace(submission, failures=failures, refusals=refused)

    def _log_refusals(self, draft: Draft, refused: Sequence[Refusal], options: SubmitOptions, reason: str = "") -> None:
        """Record for the owner what a program wanted, and why it was refused; a person is told it anyway."""
        if self.grants.is_person or options.dry_run:
            return
        actions = {end: _action_of(file) for file in draft.files if not file.hidden for end in rules.paths_of(file)}
        paths = [file.path for file in draft.files if not file.hidden]
        alone = paths[0] if len(paths) == 1 else NotePath("")
        requests = [
            RefusedRequest(path=path, action=actions.get(path, ""), reason=why)
            for path, why in [(one.path, one.reason) for one in refused] or [(alone, reason)]
        ]
        # The client has to be told its refusal in any case; a disk that refuses is told by the next write.
        with contextlib.suppress(StorageError):
            self.proposals.refusals.log(self.grants.client, options.run, requests)

    def undo(self, selector: Selector, *, reason: str = "", partial: bool = False, run: str = "") -> Undone:
        """Take changes back; the undo is a change itself.

        Raises:
            RefusedError: The client may not.
            ConflictError: Files were changed since, and *partial* wasn't asked for.
            NotFound: There is nothing to take back.
        """
        changes = self.undoable(selector, run, partial=partial)
        meta = ChangeMeta(client=self.grants.client, reason=reason)
        try:
            undone = undo.undo(self.state, selector, meta, partial=partial, checked=changes)
        except ConflictError as error:
            conflicts = objects_in(error.details.get("conflicts"))
            if not conflicts:
                raise
            current = {str(one["path"]): str(one["current_hash"] or "") or None for one in conflicts}
            later = self.find_later(changes, current)
            message = f"{error.message}; later changes: {undo.describe_later(later)}" if later else error.message
            hint = self.explain_way(changes, current, partial=partial)
            details = {**error.details, "later": [one.as_dict() for one in later]} if later else error.details
            raise ConflictError(message, hint=hint, code=error.code, details=details) from error
        left = self._notify_touched(
            (path for file in undone.applied.files for path in (file.before_path, file.after_path) if path),
            undone.applied.change_id,
        )
        _ = self.on_applied(undone.applied.change_id)
        return replace(undone, applied=replace(undone.applied, notices=(*undone.applied.notices, *left)))

    def undoable(self, selector: Selector, run: str = "", *, partial: bool = False) -> list[Change]:
        """Return the changes that an undo would take back, the newest first.

        Raises:
            RefusedError: The client may not undo, or not these.
            NotFound: There is nothing to take back.
            ConflictError: The journal had to drop some of them, and *partial* wasn't asked for.
        """
        if not self.current_grants(run).may_undo:
            raise RefusedError(f"the client '{self.grants.client}' may not undo", hint="a person can: `knap undo`")
        try:
            changes = undo.select_changes(self.state.journal, selector, partial=partial, sees=self._may_know)
        except NotFound as error:
            if not isinstance(selector, OfProposal) or not self._waits(selector.proposal):
                raise
            raise NotFound(
                f"the proposal '{selector.proposal}' still waits: it has changed nothing that could be undone",
                hint=f"a person decides: `knap edits accept {selector.proposal}`, or `reject` in place of `accept`",
            ) from error
        for change in changes:
            # By the current rules; a client that isn't a person may only undo its own changes.
            touched = (end for file in change.files for end in (file.before_path, file.after_path) if end)
            ends = [NotePath(end) for end in touched if not end.startswith(_TRASH_PREFIX)]
            own = change.client == self.grants.client and not any(map(self.grants.is_guarded, ends))
            if not self.grants.is_person and not (own and all(map(self.context.view.visible, ends))):
                raise RefusedError(
                    f"the client '{self.grants.client}' may only take back its own changes of files that it may change",
                    hint="a person can take back others: `knap undo`",
                )
            if (locked_path := next((end for end in ends if not self.grants.writable(end)), None)) is not None:
                raise RefusedError(
                    f"{change.id} can't be taken back: '{self.grants.client}' may not change '{locked_path}'",
                    hint="the owner can allow it in the client's rules",
                    code="not_writable",
                )
        return changes

    def _waits(self, proposal_id: str) -> bool:
        """Return whether a proposal can still be decided and nothing of it was accepted; false for a hidden one."""
        try:
            proposal = self.proposals.show(proposal_id, visible=self.context.view.visible)
        except NotFound:
            return False
        return proposal.status in {"open", "stale"} and not proposal.changes

    def find_later(self, changes: Sequence[Change], paths: Iterable[str]) -> list[LaterChange]:
        """Return the later changes that stand in the way of an undo, newest first, as far as the client sees them.

        Args:
            changes: The changes to undo, newest first.
            paths: The files that they can't restore.
        """
        return [one for one in undo.find_later(self.state.journal, changes, paths) if self._may_know(one.change)]

    def explain_way(self, changes: Sequence[Change], current: Mapping[str, str | None], *, partial: bool) -> str:
        """Return the next step where an undo doesn't fit some files.

        Args:
            changes: The changes to undo, newest first.
            current: Those files, each with its current hash; None if it isn't there.
            partial: Whether such files were to be left out.
        """
        later = undo.find_later(self.state.journal, changes, current)
        rest_fits = not partial and undo.fits_in_part(self.state, changes)
        return undo.explain_way(later, current, rest_fits=rest_fits, sees=self._may_know)

    def _may_know(self, change: Change) -> bool:
        """Return whether the client may know of a change: a person of any, others of their own and of visible files."""
        if self.grants.is_person or self.context.view.policy.sees_all or change.client == self.grants.client:
            return True
        ends = ({end for end in (file.before_path, file.after_path) if end} for file in change.files)
        visible = self.context.view.visible
        return any(all(end.startswith(_TRASH_PREFIX) or visible(NotePath(end)) for end in both) for both in ends)

    def current_grants(self, run: str = "") -> Grants:
        """Return the client's current rules: a client that has read foreign text may only propose."""
        return replace(self.grants, tainted=self.taints.is_tainted(self.grants.client, run))

    def _decide(self, draft: Draft, options: SubmitOptions) -> Verdict:
        facts = rules.facts_of(self.context.view)
        verdict = rules.judge(
            draft,
            self.current_grants(options.run),
            facts,
            options.scope,
            person_word=options.approved_by_person,
            log=options.log,
        )
        if options.chosen_by and verdict.kind == "propose":
            return replace(verdict, reason=f"its notes were chosen by {options.chosen_by}")
        return verdict

    def _carry_out(self, draft: Draft, options: SubmitOptions, verdict: Verdict) -> Submission:
        meta = ChangeMeta(client=self.grants.client, run=options.run, reason=options.reason)
        if verdict.kind == "apply" and not (options.dry_run or options.propose):
            return self.apply(draft, meta)
        files, hidden = report_files(draft)
        submission = Submission(
            status="planned",
            reason=verdict.reason,
            files=files,
            hidden=hidden,
            notices=draft.notices,
            rewritten=draft.rewritten,
        )
        if options.dry_run:
            return submission
        tainted = self.current_grants(options.run).tainted
        terms = ProposalTerms(
            why=verdict.reason,
            tainted=tainted,
            days=self.proposal_days,
            scope=options.scope,
            behalf=self.grants.behalf,
        )
        return replace(submission, status="proposed", proposal_id=self.proposals.save(draft, meta, terms).id)

    def apply(self, draft: Draft, meta: ChangeMeta) -> Submission:
        """Apply a draft, and report the files to the index; the caller has checked the rules.

        Raises:
            KnapError: As for `knapper.changes.disk.apply.apply_effects`; nothing was changed then.
        """
        unseen = store.hidden_paths(draft.files, self.context.view.visible)
        with store.hiding_errors(unseen):
            applied = apply.apply_effects(self.state, list(draft.effects()), meta)
        left = self._notify_touched(
            (path for file in draft.files for path in (file.path, file.place)), applied.change_id
        )
        files, hidden = report_files(draft)
        notices = (*self.recovered, *applied.notices)
        if self.context.view.policy.sees_all:
            self.recovered.clear()
        else:
            # Notices about other changes and hidden files are only for a client that sees everything.
            own = [path for file in draft.files for path in (file.path, file.place)]
            notices = tuple(one for one in applied.notices if _names_any(one, own) and not _names_any(one, unseen))
        return Submission(
            status="applied",
            change_id=applied.change_id,
            files=files,
            hidden=hidden,
            notices=(*draft.notices, *notices, *left, *self.on_applied(applied.change_id)),
            rewritten=draft.rewritten,
        )

    def _notify_touched(self, paths: Iterable[NotePath | str], change_id: str) -> tuple[str, ...]:
        return self._report_touched([self.context.view.root / path for path in dict.fromkeys(paths)], change_id)

    def _report_touched(self, paths: Sequence[Path], change_id: str) -> tuple[str, ...]:
        """Have files indexed; return notices about large ones for which that takes too long here."""
        try:
            left = self.on_touched(paths)
        except KeyboardInterrupt as interrupt:
            # The files are written: who isn't told so repeats the command, and adds the same text twice.
            if change_id:
                interrupt.add_note(f"change {change_id} was made: `knap undo {change_id}` takes it back")
            raise
        return tuple(f"{path} {_NOT_INDEXED}" for path in left if self.context.view.visible(path))


def _names_any(notice: str, paths: Iterable[str]) -> bool:
    return any(path in notice for path in paths)


def _without_refused(draft: Draft, verdict: Verdict) -> Draft | None:
    """Return a draft without the refused requests; None if nothing would be left, or a folder moves."""
    refused = frozenset(number for refusal in verdict.refusals for number in refusal.requests)
    if not refused or draft.folders:
        return None
    files = tuple(file for file in draft.files if not file.requests & refused)
    if not files:
        return None
    paths = {file.path for file in files}
    rewritten = tuple(one for one in draft.rewritten if one.path in paths)
    return replace(draft, files=files, rewritten=rewritten)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingSettings:
    """What the owner configured for all who write to a vault."""

    state_dir: Path
    """The folder of the program's state, which all vaults share."""
    proposal_days: float
    """How long proposals wait."""
    journal_bytes: int
    journal_days: float
    """How large and how old the journal may grow."""
    backup_bytes: int
    """How large the state may be that is copied each day."""
    git_environment: Callable[[], Mapping[str, str]] | None = None
    """The environment of git, which commits each change; None to leave that to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultWriters:
    """The state that the writers of one vault share."""

    settings: WritingSettings
    engine: "Engine"
    state: State
    proposals: Proposals
    taints: Taints
    recovered: list[str] = field(default_factory=list[str])
    """Notices for the first writer that sees everything."""
    untold: list[Recovered] = field(default_factory=list[Recovered])
    """Outcomes that no reader was told yet."""
    backup_days: list[date] = field(default_factory=list[date])
    """The day of the last backup, if any."""

    @classmethod
    def open(
        cls, settings: WritingSettings, engine: "Engine", folder: Path, taints: Taints, stack: contextlib.ExitStack
    ) -> Self:
        """Open the journal and the proposals, and finish any write that was interrupted.

        Args:
            settings: What the owner configured.
            engine: The vault's index.
            folder: The vault's state folder.
            taints: Who has read foreign text: who read it in one vault, read it for all.
            stack: Closes what is opened.

        Raises:
            StorageError: The state can't be opened.
        """
        state, recovered = apply.open_state(engine.view.root, folder)
        stack.callback(state.journal.shut)
        proposals = store.open_proposals(folder)
        stack.callback(proposals.shut)
        if not state.journal.is_read_only:
            _ = proposals.reconcile(state.journal)
            state.journal.limit(max_bytes=settings.journal_bytes, max_age_days=settings.journal_days)
            proposals.prune(max_age_days=settings.journal_days)
        return cls(
            settings=settings,
            engine=engine,
            state=state,
            proposals=proposals,
            taints=taints,
            recovered=[_describe_recovery(recovery) for recovery in recovered],
            untold=recovered,
        )

    def recover(self) -> None:
        """Finish or take back what was cut short since this was opened, unless its writer is still at work.

        Raises:
            StorageError: The disk refuses.
        """
        recovered = apply.recover_if_free(self.state)
        self.recovered.extend(_describe_recovery(recovery) for recovery in recovered)
        self.untold.extend(recovered)
        if recovered:
            _ = self.proposals.reconcile(self.state.journal)

    def writer(self, view: View, grants: Grants) -> Writer:
        """Create the writer of one client."""
        # Once a day, also in a server that runs for weeks: copy the databases, and prune what ended. What couldn't be
        # copied is told by `knap doctor`: writing goes on without.
        today = datetime.now(UTC).date()
        if self.backup_days != [today]:
            self.backup_days[:] = [today]
            _ = repair.back_up_daily(self.state.folder, max_bytes=self.settings.backup_bytes, today=today)
            with contextlib.suppress(StorageError):  # one entry more takes nothing from anybody
                _ = self.taints.prune(lambda: taint.find_stored_runs(self.settings.state_dir))
        engine, state, settings = self.engine, self.state, self.settings

        def version(name: str) -> bytes | None:
            try:
                return state.journal.content(name)
            except NotFound:
                return None

        return Writer(
            context=DraftContext(
                view=view,
                owner=engine.view,
                graph=engine.graph,
                read_version=version,
                catch_up=engine.catch_up,
                journal=state.journal,
            ),
            state=state,
            proposals=self.proposals,
            taints=self.taints,
            grants=grants,
            on_touched=lambda paths: _refresh_index(engine, paths),
            proposal_days=settings.proposal_days,
            on_applied=_make_committer(state, settings.git_environment) if settings.git_environment else _no_notices,
            recovered=self.recovered,
        )


def _describe_recovery(recovery: Recovered) -> str:
    return f"a change that was cut short was {recovery.outcome}: {', '.join(recovery.paths)}"


def _make_committer(state: State, environment: Callable[[], Mapping[str, str]]) -> Callable[[str], tuple[str, ...]]:
    from knapper.changes.disk import git  # noqa: PLC0415 - only where the owner wants it

    def commit(change_id: str) -> tuple[str, ...]:
        if not change_id:
            return ()
        outcome = git.commit(state.root, [state.journal.show(change_id)], env=environment())
        return (f"git: {outcome.reason}",) if outcome.reason else ()

    return commit


_NOT_INDEXED: Final = "is large: search finds its new text after the next `knap index`, or while `knap watch` runs"


def _refresh_index(engine: "Engine", paths: Sequence[Path]) -> tuple[NotePath, ...]:
    """Refresh the index after a write; a failure here doesn't undo the write.

    If another process is writing the index, or it can't be written, the next refresh catches up or reports it.

    Returns:
        Files that are too large for that, and stay in the index as they were; none where a watcher takes them in.
    """
    from knapper.index.engine import MAX_INLINE_BYTES  # noqa: PLC0415 - as late as the engine is

    with contextlib.suppress(ConflictError, StorageError, sqlite3.DatabaseError):
        # Files that a search wouldn't index either, and whose names the index has, stay as they are.
        large: dict[Path, NotePath] = {}
        for path in paths:
            with contextlib.suppress(OSError):  # moved or deleted
                if path.stat().st_size > MAX_INLINE_BYTES:
                    large[path] = NotePath(path.relative_to(engine.view.root).as_posix())
        known = engine.store.states_of(large.values())
        large = {path: name for path, name in large.items() if name in known}
        _ = engine.refresh_paths([path for path in paths if path not in large])
        return () if engine.is_followed else tuple(large.values())
    return ()
