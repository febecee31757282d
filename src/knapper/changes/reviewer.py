"""Decisions on proposals, fitted to the files as they are now: accept, reject or edit, also as blocks in notes."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from knapper.changes import rules
from knapper.changes import writer as changes_writer
from knapper.changes.disk import apply, plan
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.proposals import note_blocks, parts
from knapper.changes.proposals.model import Proposal, ProposedFile
from knapper.changes.proposals.note_blocks import NoteRendering
from knapper.changes.proposals.parts import Selection
from knapper.changes.proposals.store import (
    ProposalFilter,
    Proposals,
    hidden_paths,
    hiding_errors,
    mark_hidden,
    visible_part,
)
from knapper.changes.text import blocks, splices
from knapper.changes.text.blocks import BlockChoice
from knapper.changes.writer import Submission, Writer
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.vault import files, parser
from knapper.vault.paths import NotePath
from knapper.vault.view import View


def select_parts(
    store: Proposals,
    view: View,
    proposal_id: str,
    digest: str,
    *,
    files: Collection[str] = (),
    hunks: Collection[str] = (),
) -> Selection:
    """Select what is accepted: its blocks are taken out of the notes, and those that still wait are rendered again.

    Args:
        store: Where the proposal is.
        view: The vault as the accepting client sees it.
        proposal_id: Which.
        digest: Of the state that was shown.
        files: Paths; if *hunks* is empty too, all that fits is selected.
        hunks: Ids such as ``2.1``.

    Raises:
        NotFound: There is no such proposal, file or hunk, or it is about a file that the client may not know of.
        ConflictError: It isn't what was shown any more, it is closed, something chosen is stale, or a block in a note
            was edited by hand.
        BadInput: What was chosen can't be taken by itself.
    """
    # Names are checked against what the client sees, so that an error reveals no hidden file.
    parts.check_names(store.show(proposal_id, visible=view.visible), files, hunks)
    with hiding_errors(hidden_paths(store.show(proposal_id).files, view.visible)):
        current, note_contents = _read_without_blocks(store, view.root, proposal_id)
        selection = store.select(
            proposal_id, digest, files=files, hunks=hunks, note_contents=note_contents, current=current
        )
    return replace(selection, draft=mark_hidden(selection.draft, view.visible))


def fit_to_files(store: Proposals, root: Path, proposal_id: str) -> tuple[Proposal, dict[NotePath, bytes]]:
    """Fit a proposal to the current content of its files, without its own blocks.

    Args:
        store: Where the proposal is.
        root: The vault's folder.
        proposal_id: Which.

    Returns:
        The proposal, and the contents of the notes that have blocks of it.

    Raises:
        NotFound: There is no such proposal.
        ConflictError: A block was edited by hand.
    """
    current, note_contents = _read_without_blocks(store, root, proposal_id)
    return store.rebase(proposal_id, current), note_contents


def draft_block_removal(store: Proposals, root: Path, proposal_id: str, *, ending: Collection[str] = ()) -> Draft:
    """Draft the removal of a proposal's blocks that don't wait any more from its notes.

    Args:
        store: Where the proposal is; hunks of it were rejected, or it ended.
        root: The vault's folder.
        proposal_id: Which.
        ending: Ids of hunks that will be rejected once their blocks are gone.

    Returns:
        A draft; without files if no note has such a block.

    Raises:
        NotFound: There is no such proposal.
        ConflictError: A block was edited by hand.
    """
    proposal, note_contents = fit_to_files(store, root, proposal_id)
    ended = proposal.status not in {"open", "stale"}
    waiting = {one.id for file in proposal.files for one in file.hunks if one.state == "open" and not ended}
    waiting -= set(ending)
    shown_blocks = store.note_blocks.get(proposal_id)
    drafts: list[FileDraft] = []
    for file in proposal.files:
        decided_blocks = [
            name for name, hunks in shown_blocks.get(file.path, {}).items() if not waiting.issuperset(hunks)
        ]
        if decided_blocks and file.path in note_contents:
            drafts.append(note_blocks.draft_removal(file, note_contents[file.path], decided_blocks))
    return Draft(files=tuple(one for one in drafts if one.before != one.after))


def _read_without_blocks(
    store: Proposals, root: Path, proposal_id: str
) -> tuple[dict[NotePath, bytes | None], dict[NotePath, bytes]]:
    """Return the contents of a proposal's files without its own blocks, and of the notes that have such with them."""
    proposal = store.show(proposal_id)
    if not store.has_note_blocks(proposal_id):
        return _read_files(root, proposal, ()), {}
    shown_blocks = store.note_blocks.get(proposal_id)
    current = _read_files(root, proposal, shown_blocks)
    if store.note_blocks.sync_texts(proposal_id, current):
        shown_blocks = store.note_blocks.get(proposal_id)
    note_contents: dict[NotePath, bytes] = {}
    for path, block_hunks in shown_blocks.items():
        raw = current.get(path)
        if raw is not None:
            note_contents[path] = raw
            current[path] = note_blocks.withdraw_blocks(raw, block_hunks)
    return current, note_contents


def _read_files(root: Path, proposal: Proposal, shown: Collection[NotePath]) -> dict[NotePath, bytes | None]:
    contents: dict[NotePath, bytes | None] = {}
    for file in proposal.files:
        if file.state != "open" and file.path not in shown:
            continue
        if file.before is not None:
            contents[file.path] = read_note(root, file.path)
        else:
            # A file without stored text may be of any size, so only its existence is checked.
            contents[file.path] = b"" if _exists(root, file.path) else None
        if file.target is not None:
            is_occupied = _exists(root, file.target)
            with suppress(OSError):  # only the case of a name may change, on a file system that ignores case
                is_occupied = is_occupied and not (root / file.path).samefile(root / file.place)
            contents.setdefault(file.target, b"" if is_occupied else None)
    return contents


def read_note(root: Path, path: NotePath) -> bytes | None:
    """Return a note's content; None if it is gone, or a link that leads out of the vault."""
    try:
        return files.read_bytes(files.find_path(root, path).file, shown_as=path)
    except (NotFound, RefusedError):
        return None


def _exists(root: Path, path: NotePath) -> bool:
    return os.path.lexists(root / path)


def sync_accepted_blocks(store: Proposals, journal: Journal, root: Path, proposal_id: str) -> None:
    """Record which blocks of a proposal were accepted in its notes meanwhile.

    Args:
        store: Where the proposal is.
        journal: Shows whether one of the program's own changes did it.
        root: The vault's folder.
        proposal_id: Which.

    Raises:
        NotFound: There is no such proposal.
    """
    for path, block_hunks in store.note_blocks.get(proposal_id).items():
        raw = read_note(root, path)
        if raw is not None and any(name.encode() not in raw for name in block_hunks):
            after = parser.content_hash(raw)
            changes = journal.select(
                "proposal = :id AND phase IN ('applied', 'done') ORDER BY seq DESC", {"id": proposal_id}
            )
            found = (
                one.id for one in changes for file in one.files if (file.after_path, file.after_hash) == (path, after)
            )
            store.read_back(proposal_id, path, raw, next(found, ""))


def check_person(writer: Writer, what: str) -> None:
    """Check that the client is a person.

    Raises:
        RefusedError: It isn't one.
    """
    if not writer.grants.is_person:
        raise RefusedError(f"only a person can {what}", hint="use `knap edits`, or accept the proposal itself")


def get_decidable(writer: Writer, proposal_id: str) -> Proposal:
    """Return a proposal that the client may decide on.

    Raises:
        NotFound: There is none, or it is about a file that the client may not know of.
        RefusedError: It is another client's, or an agent made it for another one, and the client is no person.
    """
    proposal = writer.proposals.show(proposal_id, visible=writer.context.view.visible)
    who = writer.grants
    if not who.is_person and (proposal.client, proposal.behalf) != (who.client, who.behalf):
        raise RefusedError(f"the proposal {proposal_id} is another client's", hint="a person can decide on it")
    return proposal


def sync_note_blocks(writer: Writer, proposal_id: str) -> None:
    """Record what was done to a proposal's blocks in notes meanwhile; the client has to be allowed to know of it."""
    _ = writer.proposals.show(proposal_id, visible=writer.context.view.visible)
    if writer.proposals.has_note_blocks(proposal_id):
        sync_accepted_blocks(writer.proposals, writer.state.journal, writer.context.view.root, proposal_id)


def apply_block_draft(writer: Writer, draft: Draft, reason: str, run: str = "", *, proposal: str = "") -> Submission:
    """Write a draft that only concerns blocks in notes; the rules apply to it, too."""
    draft = _check_permitted(writer, draft)
    return writer.apply(draft, ChangeMeta(client=writer.grants.client, run=run, reason=reason, proposal=proposal))


def plan_block_draft(writer: Writer, draft: Draft) -> Submission:
    """Return what `apply_block_draft` would do; errors are the same."""
    return preview_draft(writer, _check_permitted(writer, draft))


def preview_draft(writer: Writer, draft: Draft) -> Submission:
    """Return what applying a permitted draft would do."""
    with hiding_errors(hidden_paths(draft.files, writer.context.view.visible)):
        plan.check_conflicts(apply.plan_effects(writer.state, list(draft.effects())))
    files, hidden = changes_writer.report_files(draft)
    submission = Submission(status="planned", files=files, hidden=hidden, notices=draft.notices)
    return replace(submission, rewritten=draft.rewritten)


def _check_permitted(writer: Writer, draft: Draft) -> Draft:
    grants, facts = writer.grants, rules.facts_of(writer.context.view)
    draft = mark_hidden(draft, writer.context.view.visible)
    rules.judge(draft, replace(grants, editable="all"), facts, person_word=True).raise_if_refused()
    return draft


_MAX_READ_BACK = 50
"""Largest number of proposals about one note whose blocks in it are updated after it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteBlocks:
    """Blocks in notes, shown and resolved on behalf of a writer's client."""

    writer: Writer

    def draw(self, proposal_id: str, *, dry_run: bool = False) -> Submission:
        """Show the waiting parts of a proposal as blocks in its notes; the notes' own text stays as it is.

        What can't be shown in a note, such as a change of its properties, waits outside of it, and a notice says so.

        Args:
            proposal_id: Which.
            dry_run: Only report what that would do.

        Raises:
            NotFound: There is none.
            RefusedError: The client isn't a person.
            BadInput: No part can be shown in a note.
            ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
        """
        check_person(self.writer, "put blocks into notes")
        return self.writer.exclusively(
            lambda alone: replace(self, writer=alone).draw_locked(proposal_id, dry_run=dry_run)
        )

    def draw_locked(self, proposal_id: str, *, dry_run: bool) -> Submission:
        """Show blocks as `draw` does; the caller holds the write lock."""
        sync_note_blocks(self.writer, proposal_id)
        proposal, note_contents = fit_to_files(self.writer.proposals, self.writer.context.view.root, proposal_id)
        shown_blocks = self.writer.proposals.note_blocks.get(proposal_id)
        renderings: dict[NotePath, NoteRendering] = {}
        causes: list[BadInput] = []
        for file in (file for file in proposal.files if file.state == "open" and file.waiting):
            raw = note_contents.get(file.path, file.before or b"")
            try:
                renderings[file.path] = note_blocks.render_note(file, raw, shown_blocks.get(file.path, {}))
            except BadInput as error:
                causes.append(error)
        if not renderings:
            hint = "only edits that fit their notes can be; `knap edits show` shows the proposal"
            raise causes[0] if causes else BadInput(f"nothing of {proposal_id} can be shown in a note", hint=hint)
        draft = Draft(files=tuple(file for one in renderings.values() for file in one.draft.files))
        if dry_run:
            submission = plan_block_draft(self.writer, draft)
        else:
            # Stored before the notes are written, so that the blocks are recognised even after a kill.
            self.writer.proposals.note_blocks.store_texts(
                proposal_id, {path: one.blocks for path, one in renderings.items()}
            )
            submission = apply_block_draft(self.writer, draft, f"shown: {proposal_id}", proposal.run)
            for path, one in renderings.items():
                self.writer.proposals.note_blocks.put(proposal_id, path, one.blocks)
        left_out = (
            *(notice for one in renderings.values() for notice in one.left_out),
            *(error.message for error in causes),
        )
        return replace(submission, proposal_id=proposal_id, notices=(*submission.notices, *left_out))

    def resolve(
        self, path: str, choice: BlockChoice | Mapping[str, BlockChoice], *, base: str = "", dry_run: bool = False
    ) -> Submission:
        """Accept or reject the edits that wait as blocks in a note: all of them, or some by their ids.

        Args:
            path: The note's.
            choice: One decision for all, or one for each id.
            base: The hash of the note whose blocks were shown; empty to take the note as it is.
            dry_run: Only report what that would do.

        Raises:
            NotFound: There is no such note or block.
            ConflictError: The note isn't what was shown any more, or a block was edited by hand or half deleted.
            RefusedError: The client isn't a person.
        """
        check_person(self.writer, "resolve blocks")
        return self.writer.exclusively(
            lambda alone: replace(self, writer=alone).resolve_locked(path, choice, base=base, dry_run=dry_run)
        )

    def resolve_locked(
        self, path: str, choice: BlockChoice | Mapping[str, BlockChoice], *, base: str, dry_run: bool
    ) -> Submission:
        """Resolve blocks as `resolve` does; the caller holds the write lock."""
        note = self.writer.context.view.read(path)
        if base and base != note.hash:
            details: dict[str, object] = {"current_hash": note.hash, "path": note.path}
            hint = "list its blocks again, and look at them"
            raise ConflictError(f"{note.path} changed meanwhile", hint=hint, code="stale", details=details)
        store = self.writer.proposals.note_blocks
        for one in self._proposals_about(note.path):
            store.sync_texts(one, {note.path: note.raw})
        resolutions = blocks.resolve_blocks(splices.take_snapshot(note.raw, note.outline), choice)
        shown = {one: store.get(one).get(note.path, {}) for one in self._proposals_about(note.path)}
        accepted_ids = [
            one
            for one, names in shown.items()
            if any((choice if isinstance(choice, str) else choice.get(name)) == "accept" for name in names)
        ]
        after = splices.merge(note.raw, resolutions)
        needs = frozenset[Capability]({"add", "delete"})
        file = FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=True)
        proposal = accepted_ids[0] if len(accepted_ids) == 1 else ""
        if dry_run:
            return replace(plan_block_draft(self.writer, Draft(files=(file,))), proposal_id=proposal)
        submission = apply_block_draft(self.writer, Draft(files=(file,)), "resolved waiting edits", proposal=proposal)
        for one in self._proposals_about(note.path):
            block_hunks = store.get(one).get(note.path)
            if not block_hunks:
                continue
            proposed = next(each for each in self.writer.proposals.show(one).files if each.path == note.path)
            decisions = note_blocks.read_decisions(proposed, after, block_hunks)
            _ = store.mark(one, decisions.states, client=self.writer.grants.client, change_id=submission.change_id)
            store.put(one, note.path, decisions.blocks)
        return replace(submission, proposal_id=proposal)

    def _proposals_about(self, path: NotePath) -> list[str]:
        return [one.id for one in self.writer.proposals.find(ProposalFilter(path=path), limit=_MAX_READ_BACK).proposals]


_MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Outcome of editing a hunk of a proposal."""

    proposal: Proposal
    change_id: str = ""
    """The change that rendered its block again; empty if no note shows it."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Decisions on proposals on behalf of a writer's client."""

    writer: Writer
    is_confirmed: bool = False
    """A person said yes whom the client's program asked, and nobody else: neither a tool nor a model sets this."""

    @property
    def note_blocks(self) -> NoteBlocks:
        """The proposals' blocks in notes."""
        return NoteBlocks(writer=self.writer)

    def accept(
        self, proposal_id: str, digest: str, *, files: Sequence[str] = (), hunks: Sequence[str] = (), run: str = ""
    ) -> Submission:
        """Apply a proposal, or the named files or hunks of it, as it was shown.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It isn't what was shown, or a place in a file has changed since.
            RefusedError: The client may not accept it.
        """

        def accept(alone: Writer) -> Submission:
            return replace(self, writer=alone).accept_locked(proposal_id, digest, files=files, hunks=hunks, run=run)

        # Under the lock: a part that another process has applied, but not yet marked, would seem stale.
        return self.writer.exclusively(accept)

    def accept_locked(
        self, proposal_id: str, digest: str, *, files: Sequence[str], hunks: Sequence[str], run: str
    ) -> Submission:
        """Accept as `accept` does; the caller holds the write lock."""
        sync_note_blocks(self.writer, proposal_id)
        selection = select_parts(
            self.writer.proposals, self.writer.context.view, proposal_id, digest, files=files, hunks=hunks
        )
        try:
            self._check_rules(selection, run)
            source = selection.source
            meta = ChangeMeta(
                client=self.writer.grants.client, run=source.run, reason=source.reason, proposal=proposal_id
            )
            applied = self.writer.apply(selection.draft, meta)
        except KnapError:
            # Otherwise the proposal would seem to be in the middle of being applied.
            self.writer.proposals.abandon(selection)
            raise
        proposal = self.writer.proposals.mark_accepted(selection, applied.change_id)
        notices = [*applied.notices]
        if not (files or hunks):  # the files that were to be changed but don't fit any more
            shown = visible_part(proposal, self.writer.context.view.visible)
            stale = [file.path for file in shown.files if file.state == "open"]
            names = ", ".join(f"'{path}'" for path in stale[:_MAX_NAMED]) + (", …" if len(stale) > _MAX_NAMED else "")
            hint = f"`knap edits show {proposal.id}` says why"
            notices += [f"what doesn't fit {names} any more wasn't applied; {hint}"] if stale else []
        return replace(applied, proposal_id=proposal_id, notices=tuple(notices))

    def plan(
        self, proposal_id: str, digest: str, *, files: Sequence[str] = (), hunks: Sequence[str] = (), run: str = ""
    ) -> Submission:
        """Return what accepting would do, without doing it; errors are those of `accept`."""
        view = self.writer.context.view
        sync_note_blocks(self.writer, proposal_id)
        selection = select_parts(self.writer.proposals, view, proposal_id, digest, files=files, hunks=hunks)
        # Selecting logs an attempt to accept, which isn't made here.
        self.writer.proposals.abandon(selection)
        self._check_rules(selection, run)
        return replace(preview_draft(self.writer, selection.draft), proposal_id=proposal_id)

    def _check_rules(self, selection: Selection, run: str) -> None:
        grants, facts = self.writer.grants, rules.facts_of(self.writer.context.view)
        # A person's own word counts whatever was read; a confirmation comes through the client's program.
        if self.is_confirmed or not grants.is_person:
            grants = self.writer.current_grants(run)
        judge = rules.judge_confirmation if self.is_confirmed else rules.judge_acceptance
        if self.is_confirmed:
            _ = get_decidable(self.writer, selection.proposal)
        judge(selection.draft, grants, facts, selection.scope, tainted=selection.tainted).raise_if_refused()

    def refit(self, proposal_id: str) -> Proposal:
        """Fit a proposal to the files as they are now, and return it as the client may see it.

        Where the state can't be written, it is returned as it was last fitted: nobody can decide on it then.

        Raises:
            NotFound: There is none, or it is about a file that the client may not know of.
            ConflictError: A block of it in a note was edited by hand.
        """
        proposal = self.writer.proposals.show(proposal_id, visible=self.writer.context.view.visible)
        if proposal.status not in {"open", "stale"} or self.writer.proposals.is_read_only:
            return proposal
        sync_note_blocks(self.writer, proposal_id)
        with self._hiding_errors(proposal_id):
            fitted, _ = fit_to_files(self.writer.proposals, self.writer.context.view.root, proposal_id)
        return visible_part(fitted, self.writer.context.view.visible)

    def _hiding_errors(self, proposal_id: str) -> AbstractContextManager[None]:
        """Redact errors in the block, so that they don't reveal the files that the client may not know of."""
        files = self.writer.proposals.show(proposal_id).files
        return hiding_errors(hidden_paths(files, self.writer.context.view.visible))

    def reject(
        self, proposal_id: str, reason: str = "", *, files: Sequence[str] = (), hunks: Sequence[str] = ()
    ) -> Proposal:
        """Reject a proposal, or the named files or hunks of it; their blocks are taken out of the notes.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It is closed, or a block of it was edited by hand.
            RefusedError: It is another client's, and the client is no person.
        """

        def reject(alone: Writer) -> Submission:
            return replace(self, writer=alone).reject_locked(proposal_id, reason, files=files, hunks=hunks)

        _ = self.writer.exclusively(reject)
        return self.writer.proposals.show(proposal_id, visible=self.writer.context.view.visible)

    def reject_locked(self, proposal_id: str, reason: str, *, files: Sequence[str], hunks: Sequence[str]) -> Submission:
        """Reject as `reject` does; the caller holds the write lock."""
        proposal = get_decidable(self.writer, proposal_id)
        parts.check_names(proposal, files, hunks)
        sync_note_blocks(self.writer, proposal_id)
        chosen = self.writer.proposals.rejectable(proposal_id, files=files, hunks=hunks)
        ending = {f"{file}.{hunk}" for file, numbers in chosen.items() for hunk in numbers}
        root = self.writer.context.view.root
        with self._hiding_errors(proposal_id):
            cleared = draft_block_removal(self.writer.proposals, root, proposal_id, ending=ending)
        submission = Submission(status="applied", proposal_id=proposal_id)
        # The notes come first, so that a kill in between leaves no blocks of a rejected proposal in them.
        if cleared.files:
            submission = apply_block_draft(self.writer, cleared, f"rejected {proposal_id}", proposal.run)
        client = self.writer.grants.client
        _ = self.writer.proposals.reject(proposal_id, reason, files=files, hunks=hunks, client=client)
        return submission

    def record_applied(self, proposal_id: str, hunks: Sequence[str]) -> Proposal:
        """Record that a person put the new text of hunks into their notes with an editor.

        An editor that has unsaved text does that, as a write beside it would lose the one or the other. The journal
        has no change of it, so the editor's own undo takes it back.

        Raises:
            NotFound: There is no such proposal or hunk.
            BadInput: One isn't open.
            ConflictError: A note doesn't have the new text in the old one's place.
            RefusedError: The client isn't a person.
        """
        check_person(self.writer, "record what an editor applied")

        def record(alone: Writer) -> Submission:
            return replace(self, writer=alone).record_applied_locked(proposal_id, hunks)

        _ = self.writer.exclusively(record)
        return self.writer.proposals.show(proposal_id, visible=self.writer.context.view.visible)

    def record_applied_locked(self, proposal_id: str, hunks: Sequence[str]) -> Submission:
        """Record as `record_applied` does; the caller holds the write lock."""
        proposal = self.refit(proposal_id)
        parts.check_names(proposal, (), hunks)
        chosen = [(file, one) for file in proposal.files for one in file.hunks if one.id in hunks]
        for file, one in chosen:
            if one.state != "open" or file.kind != "edit":
                raise BadInput(f"hunk {one.id} isn't an open edit", hint="show the proposal again", code="not_open")
            raw = read_note(self.writer.context.view.root, file.path) or b""
            if one.stale is None or one.hunk.new.replace(b"\r\n", b"\n") not in raw.replace(b"\r\n", b"\n"):
                hint = "save the note first, or accept the hunk itself"
                raise ConflictError(
                    f"'{file.path}' doesn't have the new text of {one.id}", hint=hint, code="not_applied"
                )
        _ = self.writer.proposals.note_blocks.mark(proposal_id, {one.id: "accepted" for _, one in chosen})
        return Submission(status="applied", proposal_id=proposal_id)

    def plan_rejection(
        self, proposal_id: str, *, files: Sequence[str] = (), hunks: Sequence[str] = ()
    ) -> tuple[ProposedFile, ...]:
        """Return the files of which `reject` would reject something, with just those hunks; errors are the same."""
        proposal = get_decidable(self.writer, proposal_id)
        parts.check_names(proposal, files, hunks)
        chosen = self.writer.proposals.rejectable(proposal_id, files=files, hunks=hunks)
        return tuple(
            replace(file, hunks=tuple(one for one in file.hunks if one.number in chosen[file.number]))
            for file in proposal.files
            if file.number in chosen
        )

    def edit(self, proposal_id: str, digest: str, hunk: str, text: str, *, run: str = "") -> Edited:
        """Replace the new side of a hunk before it is accepted; the digest changes with it.

        A block that shows the hunk in its note is rendered again. That is a change of its own, and undoing it restores
        the hunk's old text, too.

        Raises:
            NotFound: There is no such proposal or hunk.
            ConflictError: It isn't what was shown any more, or is closed; or a block of it was edited by hand.
            BadInput: The hunk isn't open, or would change nothing.
            RefusedError: It is another client's, and the client is no person. Or the editing client has read text that
                others wrote, and the proposing client hadn't, or a note shows the hunk.
        """

        def edit(alone: Writer) -> Submission:
            return replace(self, writer=alone).edit_locked(proposal_id, digest, hunk, text, run=run)

        submission = self.writer.exclusively(edit)
        now = self.writer.proposals.show(proposal_id, visible=self.writer.context.view.visible)
        return Edited(proposal=now, change_id=submission.change_id, notices=submission.notices)

    def edit_locked(self, proposal_id: str, digest: str, hunk: str, text: str, *, run: str) -> Submission:
        """Edit as `edit` does; the caller holds the write lock."""
        proposal = get_decidable(self.writer, proposal_id)
        parts.check_names(proposal, (), (hunk,))
        sync_note_blocks(self.writer, proposal_id)
        store = self.writer.proposals.note_blocks
        shown_blocks = store.get(proposal_id)
        if not self.writer.grants.is_person and self.writer.current_grants(run).tainted:
            # The text of a tainted client gets neither into an untainted proposal nor into a note.
            if not proposal.tainted:
                hint = "propose it again, so that a person decides on it"
                raise RefusedError(f"{proposal.id} was proposed before text was read that others wrote", hint=hint)
            ((number, own),) = parts.choose_hunks(proposal, [hunk]).items()
            for path, blocks_there in shown_blocks.items():
                if any(f"{number}.{min(own)}" in hunks for hunks in blocks_there.values()):
                    hint = "a person can edit it, or reject it, so that it can be proposed again"
                    raise RefusedError(
                        f"hunk {hunk} is shown in '{path}', and text was read meanwhile that others wrote", hint=hint
                    )
        note_contents: Mapping[NotePath, bytes] = {}
        if shown_blocks:
            with self._hiding_errors(proposal_id):
                _, note_contents = fit_to_files(self.writer.proposals, self.writer.context.view.root, proposal_id)
        rendering = store.edit(proposal_id, digest, hunk, text, note_contents).rendering
        submission = Submission(status="applied")
        if rendering is not None:
            try:
                submission = apply_block_draft(
                    self.writer, rendering.draft, f"edited {hunk} of {proposal_id}", run or proposal.run
                )
            except KnapError:
                # The text was stored before the note was written: take it back.
                store.sync_texts(proposal_id, note_contents)
                raise
        return replace(submission, notices=(*submission.notices, *(rendering.left_out if rendering else ())))
