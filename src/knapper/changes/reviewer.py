"""Decide on what waits: accept it, reject it, or edit it before."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from knapper.changes import deciding, grounds, rules
from knapper.changes.disk.effects import Meta
from knapper.changes.note_blocks import NoteBlocks
from knapper.changes.review import acceptance, choices, sight
from knapper.changes.review.choices import Blocks, Selection
from knapper.changes.review.proposal_records import Proposal, ProposedFile
from knapper.changes.submissions import Submission
from knapper.changes.writer import Writer
from knapper.errors import KnapError, RefusedError
from knapper.vault.paths import NotePath

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """Say what became of a proposal of which a hunk was edited."""

    proposal: Proposal
    change_id: str = ""
    """The change that drew its block anew; empty where no note shows it."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Decide on behalf of the client that a writer writes for."""

    writer: Writer

    @property
    def in_notes(self) -> NoteBlocks:
        """Show what waits as blocks in its notes, and decide on it there."""
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
            return replace(self, writer=alone).accept_alone(proposal_id, digest, files=files, hunks=hunks, run=run)

        return self.writer.alone(accept)  # a part that another one has applied, but not marked yet, seems not to fit

    def accept_alone(
        self, proposal_id: str, digest: str, *, files: Sequence[str], hunks: Sequence[str], run: str
    ) -> Submission:
        """Accept as `accept` does, while nobody else writes."""
        deciding.follow(self.writer, proposal_id)
        selection = acceptance.choose(
            self.writer.proposals, self.writer.desk.view, proposal_id, digest, files=files, hunks=hunks
        )
        try:
            self._judge(selection, run)
            source = selection.source
            meta = Meta(client=self.writer.grants.client, run=source.run, reason=source.reason, proposal=proposal_id)
            applied = self.writer.apply(selection.draft, meta)
        except KnapError:
            self.writer.proposals.abandon(selection)
            raise
        settled = self.writer.proposals.mark_accepted(selection, applied.change_id)
        left = () if files or hunks else _left(sight.seen(settled, self.writer.desk.view.visible))
        return replace(applied, proposal_id=proposal_id, notices=(*applied.notices, *left))

    def plan(
        self, proposal_id: str, digest: str, *, files: Sequence[str] = (), hunks: Sequence[str] = (), run: str = ""
    ) -> Submission:
        """Tell what accepting would do, and do nothing; errors are those of `accept`."""
        view = self.writer.desk.view
        deciding.follow(self.writer, proposal_id)
        selection = acceptance.choose(self.writer.proposals, view, proposal_id, digest, files=files, hunks=hunks)
        self.writer.proposals.abandon(selection)
        self._judge(selection, run)
        return replace(deciding.tell(self.writer, selection.draft), proposal_id=proposal_id)

    def _judge(self, selection: Selection, run: str) -> None:
        grants, ground = self.writer.mine(run), grounds.of(self.writer.desk.view)
        verdict = rules.acceptance(selection.draft, grants, ground, selection.scope, tainted=selection.tainted)
        verdict.raise_if_refused()

    def refit(self, proposal_id: str) -> Proposal:
        """Fit a proposal to the files as they are now, and give it as the client may see it.

        Raises:
            NotFound: There is none, or it is about a file that the client may not know of.
            ConflictError: A block of it in a note was edited by hand.
        """
        found = self.writer.proposals.show(proposal_id, visible=self.writer.desk.view.visible)
        if found.status not in {"open", "stale"}:
            return found
        deciding.follow(self.writer, proposal_id)
        with self._veiling(proposal_id):
            fitted, _ = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        return sight.seen(fitted, self.writer.desk.view.visible)

    def _veiling(self, proposal_id: str) -> AbstractContextManager[None]:
        """Let errors tell nothing of those files of a proposal that the client may not know of."""
        files = self.writer.proposals.show(proposal_id).files
        return sight.veiling(sight.hidden_paths(files, self.writer.desk.view.visible))

    def reject(
        self, proposal_id: str, reason: str = "", *, files: Sequence[str] = (), hunks: Sequence[str] = ()
    ) -> Proposal:
        """Say no to a proposal, or to the named files or hunks of it; blocks of it leave the notes.

        Raises:
            NotFound: There is no such proposal, file or hunk.
            ConflictError: It is closed, or a block of it was edited by hand.
            RefusedError: It is another client's, and the client is no person.
        """

        def reject(alone: Writer) -> Submission:
            return replace(self, writer=alone).reject_alone(proposal_id, reason, files=files, hunks=hunks)

        _ = self.writer.alone(reject)
        return self.writer.proposals.show(proposal_id, visible=self.writer.desk.view.visible)

    def reject_alone(self, proposal_id: str, reason: str, *, files: Sequence[str], hunks: Sequence[str]) -> Submission:
        """Reject as `reject` does, while nobody else writes."""
        found = deciding.own(self.writer, proposal_id)
        choices.check_names(found, files, hunks)
        deciding.follow(self.writer, proposal_id)
        chosen = self.writer.proposals.rejectable(proposal_id, files=files, hunks=hunks)
        ending = {f"{file}.{hunk}" for file, numbers in chosen.items() for hunk in numbers}
        root = self.writer.desk.view.root
        with self._veiling(proposal_id):
            cleared = acceptance.blocks_removed(self.writer.proposals, root, proposal_id, ending=ending)
        done = Submission(status="applied", proposal_id=proposal_id)
        if cleared.files:  # first, so that a kill leaves nothing in notes of what is rejected
            done = deciding.apply(self.writer, cleared, f"rejected {proposal_id}", found.run)
        _ = self.writer.proposals.reject(proposal_id, reason, files=files, hunks=hunks)
        return done

    def plan_rejection(
        self, proposal_id: str, *, files: Sequence[str] = (), hunks: Sequence[str] = ()
    ) -> tuple[ProposedFile, ...]:
        """Give the files of which `reject` would reject something, with just those hunks; errors are the same."""
        found = deciding.own(self.writer, proposal_id)
        choices.check_names(found, files, hunks)
        chosen = self.writer.proposals.rejectable(proposal_id, files=files, hunks=hunks)
        return tuple(
            replace(file, hunks=tuple(one for one in file.hunks if one.number in chosen[file.number]))
            for file in found.files
            if file.number in chosen
        )

    def edit(self, proposal_id: str, digest: str, hunk: str, text: str, *, run: str = "") -> Edited:
        """Put another text in the place of a hunk's new side, before it is accepted; the digest changes with it.

        A block that shows the hunk in its note is drawn anew; that is a change of its own, and taking it back takes
        back the text, too.

        Raises:
            NotFound: There is no such proposal or hunk.
            ConflictError: It isn't what was shown any more, or is closed; or a block of it was edited by hand.
            BadInput: The hunk isn't open, or would change nothing.
            RefusedError: It is another client's, and the client is no person; or who edits has read text that others
                wrote, which whoever proposed it hadn't, or it would come into a note.
        """

        def edit(alone: Writer) -> Submission:
            return replace(self, writer=alone).edit_alone(proposal_id, digest, hunk, text, run=run)

        done = self.writer.alone(edit)
        now = self.writer.proposals.show(proposal_id, visible=self.writer.desk.view.visible)
        return Edited(proposal=now, change_id=done.change_id, notices=done.notices)

    def edit_alone(self, proposal_id: str, digest: str, hunk: str, text: str, *, run: str) -> Submission:
        """Edit as `edit` does, while nobody else writes."""
        found = deciding.own(self.writer, proposal_id)
        choices.check_names(found, (), (hunk,))
        deciding.follow(self.writer, proposal_id)
        drawings = self.writer.proposals.drawings
        held = drawings.get(proposal_id)
        if self.writer.mine(run).tainted and not self.writer.grants.is_person:
            _check_taint(found, held, hunk)
        noted: Mapping[NotePath, bytes] = {}
        if held:
            with self._veiling(proposal_id):
                _, noted = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        made = drawings.edit(proposal_id, digest, hunk, text, noted).rendering
        done = Submission(status="applied")
        if made is not None:
            try:
                done = deciding.apply(self.writer, made.draft, f"edited {hunk} of {proposal_id}", run or found.run)
            except KnapError:
                drawings.follow(proposal_id, noted)
                raise
        return replace(done, notices=(*done.notices, *(made.left_out if made else ())))


def _check_taint(proposal: Proposal, held: Mapping[NotePath, Blocks], hunk: str) -> None:
    """Keep what somebody wrote who has read others' text out of what was trusted, and out of notes."""
    if not proposal.tainted:
        hint = "propose it anew, so that a person decides on it"
        raise RefusedError(f"{proposal.id} was proposed before text was read that others wrote", hint=hint)
    ((number, own),) = choices.hunks_of(proposal, [hunk]).items()
    for path, blocks_there in held.items():
        if any(f"{number}.{min(own)}" in hunks for hunks in blocks_there.values()):
            hint = "a person can edit it, or reject it, so that it can be proposed anew"
            raise RefusedError(
                f"hunk {hunk} is shown in '{path}', and text was read meanwhile that others wrote", hint=hint
            )


def _left(proposal: Proposal) -> tuple[str, ...]:
    """Tell of what was asked for and didn't fit its file any more."""
    stale = [file.path for file in proposal.files if file.state == "open"]
    if not stale:
        return ()
    names = ", ".join(f"'{path}'" for path in stale[:_NAMED]) + (", …" if len(stale) > _NAMED else "")
    return (f"what doesn't fit {names} any more wasn't applied; `knap edits show {proposal.id}` says why",)
