"""Understand edits of lines that show an edit which still waits: what is changed is what that edit proposes."""

from collections.abc import Sequence
from dataclasses import dataclass

from knapper.agents.task.edits import Grounds, ValidatedEdit
from knapper.agents.task.replies import EditInstruction
from knapper.changes.proposals.tables import ProposalFilter
from knapper.changes.text import positions
from knapper.changes.text.positions import LineSpan
from knapper.errors import KnapError
from knapper.vault import pending
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath
from knapper.vault.pending import PendingBlock
from knapper.vault.source import Lines

_LOOKED_AT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEdit:
    """Hold an edit of a block, and the part of a proposal that it shows."""

    instruction: EditInstruction
    path: NotePath
    proposal_id: str
    hunk: str
    text: str
    """The new text of that part."""


def apart(grounds: Grounds, edits: Sequence[EditInstruction]) -> tuple[list[EditInstruction], list[BlockEdit]]:
    """Part edits of the agent's own waiting blocks from all others.

    Only a replacement of all lines of a whole block counts; what cuts into one is refused as everywhere.
    """
    others: list[EditInstruction] = []
    found: list[BlockEdit] = []
    for edit in edits:
        one = _of_block(grounds, edit)
        if one is None:
            others.append(edit)
        else:
            found.append(one)
    return others, found


def change(grounds: Grounds, edits: Sequence[BlockEdit]) -> tuple[tuple[str, ...], list[ValidatedEdit]]:
    """Put other texts into what waits; gives the proposals that changed, and what came of each edit."""
    reviewer = grounds.context.reviewer
    run = grounds.context.asked.run if grounds.context.asked else ""
    changed: dict[str, None] = {}
    told: list[ValidatedEdit] = []
    for edit in edits:
        error: KnapError | None = None
        try:
            digest = reviewer.refit(edit.proposal_id).digest
            _ = reviewer.edit(edit.proposal_id, digest, edit.hunk, edit.text, run=run)
            changed[edit.proposal_id] = None
        except KnapError as raised:
            error = raised
        told.append(ValidatedEdit(instruction=edit.instruction, path=edit.path, kind="replace", error=error))
    return tuple(changed), told


def _of_block(grounds: Grounds, edit: EditInstruction) -> BlockEdit | None:
    try:
        position = positions.parse_position(edit.position)
        if not isinstance(position, LineSpan) or position.word != "replace":
            return None
        note = grounds.context.view.read(edit.file)
        block = _block(note, position)
        asked = grounds.context.asked
        if block is None or asked is None or not asked.scope.holds(note.path) or "delete" not in grounds.rules.can:
            return None
    except KnapError:
        return None
    place = _place(grounds, note.path, block.id)
    if place is None:
        return None
    return BlockEdit(instruction=edit, path=note.path, proposal_id=place[0], hunk=place[1], text=edit.content)


def _block(note: Note, span: LineSpan) -> PendingBlock | None:
    """Find the block whose lines are just those of a position."""
    lines = Lines(starts=note.outline.line_starts, size=len(note.raw))
    for block in pending.find_pending(note.raw, note.outline):
        last = lines.number(max(block.tag_stop - 1, block.start))
        if block.problem is None and (block.line, last) == (span.first, span.last):
            return block
    return None


def _place(grounds: Grounds, path: NotePath, block: str) -> tuple[str, str] | None:
    """Find the proposal and the hunk that a block shows, where the agent made it and it shows just one."""
    writer = grounds.context.writer
    for one in writer.proposals.find(ProposalFilter(path=path), limit=_LOOKED_AT).proposals:
        if one.client != writer.grants.client:
            continue
        hunks = writer.proposals.drawings.get(one.id).get(path, {}).get(block, ())
        if len(hunks) == 1:
            return one.id, hunks[0]
    return None
