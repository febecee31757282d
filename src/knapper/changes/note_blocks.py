"""Show what waits as blocks in its notes, and accept or reject it there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from knapper.changes import deciding
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.review import acceptance, rendering
from knapper.changes.review.choices import Blocks
from knapper.changes.review.proposal_list import Wanted
from knapper.changes.review.proposal_records import Proposal
from knapper.changes.review.rendering import Rendering
from knapper.changes.submissions import Submission
from knapper.changes.text import blocks, snapshots, splices
from knapper.changes.text.blocks import Choice
from knapper.changes.writer import Writer
from knapper.errors import BadInput
from knapper.vault.paths import NotePath

_READ_BACK = 50
"""Proposals about one note that are told what became of their blocks in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteBlocks:
    """Handle the blocks in notes on behalf of the client that a writer writes for."""

    writer: Writer

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
        deciding.check_person(self.writer, "put blocks into notes")
        return self.writer.alone(lambda alone: replace(self, writer=alone).draw_alone(proposal_id, dry_run=dry_run))

    def draw_alone(self, proposal_id: str, *, dry_run: bool) -> Submission:
        """Draw as `draw` does, while nobody else writes."""
        deciding.follow(self.writer, proposal_id)
        found, noted = acceptance.fit(self.writer.proposals, self.writer.desk.view.root, proposal_id)
        held = self.writer.proposals.drawings.get(proposal_id)
        made, causes = _renderings(found, noted, held)
        if not made:
            hint = "only edits that fit their notes can be; `knap edits show` shows the proposal"
            raise causes[0] if causes else BadInput(f"nothing of {proposal_id} can be shown in a note", hint=hint)
        draft = Draft(files=tuple(file for one in made.values() for file in one.draft.files))
        if dry_run:
            done = deciding.plan(self.writer, draft)
        else:
            self.writer.proposals.drawings.keep(proposal_id, {path: one.blocks for path, one in made.items()})
            done = deciding.apply(self.writer, draft, f"shown: {proposal_id}", found.run)
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
        deciding.check_person(self.writer, "resolve blocks")
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
            return replace(deciding.plan(self.writer, Draft(files=(file,))), proposal_id=proposal)
        done = deciding.apply(self.writer, Draft(files=(file,)), "resolved waiting edits", proposal=proposal)
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
