"""Show waiting edits inside their notes, and resolve them there."""

from collections.abc import Collection
from typing import Annotated

from knapper.changes.text import blocks
from knapper.changes.text.blocks import BlockChoice
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.written import Written
from knapper.vault import pending


def list_blocks(context: Context, path: str) -> dict[str, JSONValue]:
    """List the edits that wait in a note as blocks, each with both its sides.

    Args:
        context: The vault, as the client sees it.
        path: Of a note that is there.

    Returns:
        ``results`` with id, type, line, before and after; ``problem`` where one can't be resolved.

    Raises:
        NotFound: There is no such note.
    """
    note = context.view.read(path)
    _ = foreign.heard(context, note)
    found = pending.find_pending(note.raw, note.outline)
    rows: list[JSONValue] = [_row(block) for block in found]
    return {"success": True, "path": note.path, "hash": note.hash, "results": rows, "total": len(rows)}


def draw_proposal(context: Context, proposal_id: str) -> Annotated[Answer, Written]:
    """Show what waits of a proposal as blocks in its notes; the notes' own text stays as it is.

    What can't be shown in a note, such as a change of its properties, waits outside of it; ``notes`` tells.

    Raises:
        NotFound: There is no such proposal.
        RefusedError: The client isn't a person.
        BadInput: No part can be shown in a note.
        ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
    """
    return context.reviewer.in_notes.draw(proposal_id, dry_run=_is_dry(context)).as_dict()


def resolve_blocks(
    context: Context, path: str, *, accept: Collection[str] = (), reject: Collection[str] = ()
) -> Annotated[Answer, Written]:
    """Put the new or the old text of waiting edits in the place of their blocks in a note.

    Args:
        context: The vault, as the client sees it.
        path: Of a note that is there.
        accept: Ids of blocks; ``all`` stands for every one.
        reject: Likewise.

    Raises:
        NotFound: There is no such note or block.
        BadInput: None is named, or one is to be both accepted and rejected.
        ConflictError: A block was edited by hand or half deleted; nothing is guessed.
        RefusedError: The client isn't a person.
    """
    if not (accept or reject) or ("all" in {*accept, *reject} and len(accept) + len(reject) > 1):
        raise BadInput("it isn't clear which blocks are meant", hint="name ids to accept or reject, or 'all' once")
    if both := set(accept) & set(reject):
        raise BadInput(f"{', '.join(sorted(both))} can't be both accepted and rejected", hint="name each once")
    choice: dict[str, BlockChoice] = dict.fromkeys(accept, "accept")
    choice |= dict.fromkeys(reject, "reject")
    if "all" in choice:
        if not list_blocks(context, path)["total"]:
            raise NotFound(f"no edit waits in '{path}'", hint="`knap edits` lists proposals", code="block_not_found")
        return context.reviewer.in_notes.resolve(path, choice["all"], dry_run=_is_dry(context)).as_dict()
    return context.reviewer.in_notes.resolve(path, choice, dry_run=_is_dry(context)).as_dict()


def _is_dry(context: Context) -> bool:
    return context.asked is not None and context.asked.dry_run


def _row(block: pending.PendingBlock) -> JSONValue:
    shown: dict[str, JSONValue] = {
        "id": block.id,
        "type": block.kind,
        "line": block.line,
        "before": block.before,
        "after": block.after,
    }
    why = blocks.block_problem(block)
    return {**shown, "problem": why} if why else shown
