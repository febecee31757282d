"""Decide on what waits: accept, reject, edit, and show it as blocks in its notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from knapper.changes import grounds, rules, submissions
from knapper.changes.disk import apply as applying
from knapper.changes.disk import plan as plans
from knapper.changes.disk.effects import Meta
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.review import acceptance, choices, rendering, resolutions, sight
from knapper.changes.review.choices import Blocks, Selection
from knapper.changes.review.proposal_list import Wanted
from knapper.changes.review.proposal_records import Proposal, ProposedFile
from knapper.changes.review.rendering import Rendering
from knapper.changes.submissions import Submission
from knapper.changes.text import blocks, snapshots, splices
from knapper.changes.text.blocks import Choice
from knapper.changes.writer import Writer
from knapper.errors import BadInput, KnapError, RefusedError
from knapper.vault.paths import NotePath

_READ_BACK = 50
"""Proposals about one note that are told what became of their blocks in it."""
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
        self._follow(proposal_id)
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
        left = () if files or hunks else _left(settled)
        return replace(applied, proposal_id=proposal_id, notices=(*applied.notices, *left))

    def plan(
        self, proposal_id: str, digest: str, *, files: Sequence[str] = (), hunks: Sequence[str] = (), run: str = ""
    ) -> Submission:
        """Tell what accepting would do, and do nothing; errors are those of `accept`."""
        view = self.writer.desk.view
        self._follow(proposal_id)
        selection = acceptance.choose(self.writer.proposals, view, proposal_id, digest, files=files, hunks=hunks)
        self.writer.proposals.abandon(selection)
        self._judge(selection, run)
        return replace(self._told(selection.draft), proposal_id=proposal_id)

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
        self._follow(proposal_id)
        fitted, _ = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        return sight.seen(fitted, self.writer.desk.view.visible)

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
        found = self._own(proposal_id)
        self._follow(proposal_id)
        _ = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        _ = self.writer.proposals.reject(proposal_id, reason, files=files, hunks=hunks)
        cleared = acceptance.blocks_removed(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        done = Submission(status="applied", proposal_id=proposal_id)
        return self._apply(cleared, f"rejected {proposal_id}", found.run) if cleared.files else done

    def plan_rejection(
        self, proposal_id: str, *, files: Sequence[str] = (), hunks: Sequence[str] = ()
    ) -> tuple[ProposedFile, ...]:
        """Give the files of which `reject` would reject something, with just those hunks; errors are the same."""
        found = self._own(proposal_id)
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
        found = self._own(proposal_id)
        self._follow(proposal_id)
        drawings = self.writer.proposals.drawings
        held = drawings.get(proposal_id)
        if self.writer.mine(run).tainted and not self.writer.grants.is_person:
            _check_taint(found, held, hunk)
        noted: Mapping[NotePath, bytes] = {}
        if held:
            _, noted = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        made = drawings.edit(proposal_id, digest, hunk, text, noted).rendering
        done = Submission(status="applied")
        if made is not None:
            try:
                done = self._apply(made.draft, f"edited {hunk} of {proposal_id}", run or found.run)
            except KnapError:
                drawings.follow(proposal_id, noted)
                raise
        return replace(done, notices=(*done.notices, *(made.left_out if made else ())))

    def draw(self, proposal_id: str, *, dry_run: bool = False) -> Submission:
        """Show what waits of a proposal as blocks in its notes; the notes' own text stays as it is.

        What can't be shown in a note, such as a change of its properties, waits outside of it and is told.

        Args:
            proposal_id: Which.
            dry_run: Only tell what that would do.

        Raises:
            NotFound: There is none.
            RefusedError: The client isn't a person.
            BadInput: No part can be shown in a note.
            ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
        """
        self._check_person("put blocks into notes")
        return self.writer.alone(lambda alone: replace(self, writer=alone).draw_alone(proposal_id, dry_run=dry_run))

    def draw_alone(self, proposal_id: str, *, dry_run: bool) -> Submission:
        """Draw as `draw` does, while nobody else writes."""
        self._follow(proposal_id)
        found, noted = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        held = self.writer.proposals.drawings.get(proposal_id)
        made, causes = _renderings(found, noted, held)
        if not made:
            hint = "only edits that fit their notes can be; `knap edits show` shows the proposal"
            raise causes[0] if causes else BadInput(f"nothing of {proposal_id} can be shown in a note", hint=hint)
        draft = Draft(files=tuple(file for one in made.values() for file in one.draft.files))
        if dry_run:
            done = self._plan(draft)
        else:
            self.writer.proposals.drawings.keep(proposal_id, {path: one.blocks for path, one in made.items()})
            done = self._apply(draft, f"shown: {proposal_id}", found.run)
            for path, one in made.items():
                self.writer.proposals.drawings.put(proposal_id, path, one.blocks)
        left_out = (*(notice for one in made.values() for notice in one.left_out), *(error.message for error in causes))
        return replace(done, proposal_id=proposal_id, notices=(*done.notices, *left_out))

    def resolve(self, path: str, choice: Choice | Mapping[str, Choice], *, dry_run: bool = False) -> Submission:
        """Accept or reject the edits that wait as blocks in a note: all of them, or each by its id.

        Args:
            path: The note's.
            choice: What becomes of all, or of each.
            dry_run: Only tell what that would do.

        Raises:
            NotFound: There is no such note or block.
            ConflictError: A block was edited by hand or half deleted.
            RefusedError: The client isn't a person.
        """
        self._check_person("resolve blocks")
        return self.writer.alone(lambda alone: replace(self, writer=alone).resolve_alone(path, choice, dry_run=dry_run))

    def resolve_alone(self, path: str, choice: Choice | Mapping[str, Choice], *, dry_run: bool) -> Submission:
        """Resolve as `resolve` does, while nobody else writes."""
        note = self.writer.desk.view.read(path)
        for one in self._about(note.path):
            self.writer.proposals.drawings.follow(one, {note.path: note.raw})
        found = blocks.resolve_all(snapshots.take(note.raw, note.outline), choice)
        taken = self._accepted(note.path, choice)
        after = splices.merge(note.raw, found)
        needs = frozenset[Capability]({"add", "delete"})
        file = FileDraft(path=note.path, base=note.hash, before=note.raw, after=after, needs=needs, anchored=True)
        proposal = taken[0] if len(taken) == 1 else ""
        if dry_run:
            return replace(self._plan(Draft(files=(file,))), proposal_id=proposal)
        done = self._apply(Draft(files=(file,)), "resolved waiting edits", proposal=proposal)
        self._read_back(note.path, after, done.change_id)
        return replace(done, proposal_id=proposal)

    def _accepted(self, path: NotePath, choice: Choice | Mapping[str, Choice]) -> list[str]:
        """List the proposals of which blocks in a note are accepted."""
        return [
            one
            for one in self._about(path)
            for shown in [self.writer.proposals.drawings.get(one).get(path, {})]
            if any((choice if isinstance(choice, str) else choice.get(name)) == "accept" for name in shown)
        ]

    def _follow(self, proposal_id: str) -> None:
        """Learn what became of blocks in notes meanwhile, of a proposal that the client may know of."""
        _ = self.writer.proposals.show(proposal_id, visible=self.writer.desk.view.visible)
        resolutions.follow(self.writer.proposals, self.writer.state.journal, self.writer.desk.view.root, proposal_id)

    def _own(self, proposal_id: str) -> Proposal:
        found = self.writer.proposals.show(proposal_id, visible=self.writer.desk.view.visible)
        if not self.writer.grants.is_person and found.client != self.writer.grants.client:
            raise RefusedError(f"the proposal {proposal_id} is another client's", hint="a person can decide on it")
        return found

    def _apply(self, draft: Draft, reason: str, run: str = "", *, proposal: str = "") -> Submission:
        """Write what only concerns blocks in notes; the rules hold for that, too."""
        draft = self._permitted(draft)
        return self.writer.apply(
            draft, Meta(client=self.writer.grants.client, run=run, reason=reason, proposal=proposal)
        )

    def _plan(self, draft: Draft) -> Submission:
        """Tell what `_apply` would do; errors are the same."""
        return self._told(self._permitted(draft))

    def _told(self, draft: Draft) -> Submission:
        plans.check(applying.check(self.writer.state, list(draft.effects())))
        shown, hidden = submissions.reports(draft)
        told = Submission(status="planned", files=shown, hidden=hidden, notices=draft.notices)
        return replace(told, rewritten=draft.rewritten)

    def _permitted(self, draft: Draft) -> Draft:
        grants, ground = self.writer.grants, grounds.of(self.writer.desk.view)
        draft = sight.marked(draft, self.writer.desk.view.visible)
        rules.verdict(draft, replace(grants, editable="all"), ground, person_word=True).raise_if_refused()
        return draft

    def _read_back(self, path: NotePath, raw: bytes, change_id: str) -> None:
        """Tell proposals what became of their blocks in a note."""
        drawings = self.writer.proposals.drawings
        for one in self._about(path):
            shown = drawings.get(one).get(path)
            if not shown:
                continue
            file = next(file for file in self.writer.proposals.show(one).files if file.path == path)
            seen = rendering.read_back(file, raw, shown)
            _ = drawings.mark(one, seen.states, change_id=change_id)
            drawings.put(one, path, seen.blocks)

    def _about(self, path: NotePath) -> list[str]:
        return [one.id for one in self.writer.proposals.find(Wanted(path=path), limit=_READ_BACK).proposals]

    def _check_person(self, what: str) -> None:
        if not self.writer.grants.is_person:
            raise RefusedError(f"only a person can {what}", hint="use `knap edits`, or accept the proposal itself")


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


def _renderings(
    proposal: Proposal, noted: Mapping[NotePath, bytes], held: Mapping[NotePath, Blocks]
) -> tuple[dict[NotePath, Rendering], list[BadInput]]:
    """Put what waits into its notes, and gather why that can't be done with some."""
    made: dict[NotePath, Rendering] = {}
    causes: list[BadInput] = []
    for file in proposal.files:
        if file.state != "open" or not file.waiting:
            continue
        try:
            made[file.path] = rendering.render(file, noted.get(file.path, file.before or b""), held.get(file.path, {}))
        except BadInput as error:
            causes.append(error)
    return made, causes
