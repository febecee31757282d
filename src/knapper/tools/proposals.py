"""List, show, accept, reject and edit proposals, also as blocks inside notes."""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, get_args

from knapper.changes import reviewer, rules
from knapper.changes.disk import undo
from knapper.changes.disk.journal import Journal
from knapper.changes.proposals import note_blocks, store
from knapper.changes.proposals.model import (
    Proposal,
    ProposalStatus,
    ProposedFile,
    ProposedHunk,
    Rejection,
    Stale,
    Summary,
)
from knapper.changes.proposals.store import ProposalFilter
from knapper.changes.text import blocks
from knapper.changes.text.blocks import BlockChoice
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, KnapError, NotFound, RefusedError
from knapper.tools import answers
from knapper.tools.context import Context, resolve_filter
from knapper.tools.shapes import write
from knapper.tools.shapes.write import PendingBlockList, PendingBlockRow, UndoneFields, WriteResult
from knapper.vault import pending

PROPOSAL_STATUSES: Final[tuple[ProposalStatus, ...]] = get_args(ProposalStatus)
_STATUS_TRANSITIONS: Final[Mapping[ProposalStatus, ProposalStatus]] = {"open": "stale", "stale": "open"}
"""Which status a listed proposal may have changed to since it was last refitted."""
_LEFT_OUT_IF_EMPTY: Final = (
    "reason",
    "why",
    "run",
    "tainted",
    "folders",
    "links_rewritten",
    "rejection",
    "superseded_by",
    "decided_at",
    "decided_by",
    "change_ids",
    "notes",
)
_MAX_REFIT_FILES: Final = 50
"""A proposal for more files is listed as it was when it was last shown."""
_BATCH_SIZE: Final = 20
"""Proposals that are read at once where nobody knows how many are asked for."""


def list_proposals(
    context: Context, status: str = "", path: str = "", limit: int = store.LIMIT, offset: int = 0
) -> write.ProposalList:
    """List changes that wait for a person's decision, and the outcomes of earlier ones; the newest first.

    Args:
        context: The vault, as the client sees it.
        status: Only those that are ``open``, ``stale``, ``accepted``, ``partly_accepted``, ``rejected``, ``expired`` or
            ``superseded``; empty for all.
        path: Only those about this file, by its path or name, or about this folder; empty for all.
        limit: How many at most.
        offset: How many of the newest to skip.

    Returns:
        ``results`` with id, status, client, created, why they wait, and how many parts are in which state; ``undone``
        and ``undone_by`` where accepted parts were undone.

    Raises:
        BadInput: The status or the path isn't valid.
        Ambiguous: Several files have the name.
        RefusedError: The path leads outside the vault.
    """
    answers.check_page(limit, offset)
    wanted_status: ProposalStatus | None = next((known for known in PROPOSAL_STATUSES if status == known), None)
    if status and wanted_status is None:
        raise BadInput(f"there is no status '{status}'", hint=f"one of: {', '.join(PROPOSAL_STATUSES)}")
    find, query = context.writer.proposals.find, ProposalFilter(visible=context.view.visible)

    def has_proposals(path: str) -> bool:
        return bool(find(replace(query, path=path), limit=1).total)

    query = replace(query, status=wanted_status, path=resolve_filter(context, path, has_proposals))
    listing = find(query, limit=limit, offset=offset)
    # A proposal of the other status may match the filter once it is refitted.
    may_have_changed = (
        find(replace(query, status=_STATUS_TRANSITIONS[wanted_status]), limit=limit).proposals
        if wanted_status in _STATUS_TRANSITIONS
        else ()
    )
    if _refit_listed(context, (*listing.proposals, *may_have_changed)):
        listing = find(query, limit=limit, offset=offset)
    undone_by = undo.find_undone(
        _journal(context), [change for summary in listing.proposals for change in summary.changes]
    )
    return answers.page_of(
        [_summary_row(context, summary, undone_by) for summary in listing.proposals], listing.total, limit, offset
    )


def iterate_proposals(context: Context, criteria: ProposalFilter) -> Iterator[tuple[Summary, write.ProposalRow]]:
    """Yield proposals, the latest first, as `list_proposals` shows them; only as many are read as are asked for.

    Args:
        context: The vault, as the client sees it.
        criteria: Which; a path is one of the vault. Proposals about hidden files are left out in any case.
    """
    latest, query = context.writer.proposals.latest, replace(criteria, visible=context.view.visible)
    offset = 0
    while batch := latest(query, limit=_BATCH_SIZE, offset=offset):
        if _refit_listed(context, batch):
            batch = latest(query, limit=_BATCH_SIZE, offset=offset)
        undone_by = undo.find_undone(_journal(context), [change for summary in batch for change in summary.changes])
        for summary in batch:
            yield summary, _summary_row(context, summary, undone_by)
        offset += len(batch)


def iterate_rejections(context: Context, criteria: ProposalFilter) -> Iterator[Rejection]:
    """Yield rejections whose time is known, the latest first; only as many are read as are asked for.

    Args:
        context: The vault, as the client sees it.
        criteria: As for `iterate_proposals`; its times and client are those of the rejection.
    """
    query, offset = replace(criteria, visible=context.view.visible), 0
    while batch := context.writer.proposals.rejections(query, limit=_BATCH_SIZE, offset=offset):
        yield from batch
        offset += len(batch)


def _refit_listed(context: Context, listed: Sequence[Summary]) -> bool:
    """Refit open and stale proposals to the files as they are now; return whether there were any."""
    open_or_stale = [
        summary for summary in listed if summary.status in {"open", "stale"} and summary.files <= _MAX_REFIT_FILES
    ]
    for summary in open_or_stale:
        # Decided meanwhile, or a block was edited by hand: the list stays usable, and showing the proposal reports it.
        with contextlib.suppress(KnapError):
            _ = context.reviewer.refit(summary.id)
    return bool(open_or_stale)


def show_proposal(context: Context, proposal_id: str) -> write.ProposalAnswer:
    """Show a proposal, fitted to the files as they are now: its files, hunks and word-level differences.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, from list_proposals.

    Returns:
        ``digest``, which accept_proposal needs, and ``files`` with ``hunks``; ``undone`` (``all`` or ``part``) and
        ``undone_by`` where accepted parts were undone.

    Raises:
        NotFound: There is none, or it is about files that the client doesn't see.
    """
    refitted = context.reviewer.refit(proposal_id)
    answers.mark_shown_paths(context, (file.path for file in refitted.files if file.before is not None))
    return proposal_answer(context, refitted)


def accept_proposal(
    context: Context, proposal_id: str, digest: str, files: Sequence[str] = (), hunks: Sequence[str] = ()
) -> WriteResult:
    """Apply a proposal, or the named files or hunks of it, exactly as it was shown.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, from list_proposals.
        digest: The ``digest`` from show_proposal: nothing is accepted that wasn't shown.
        files: Paths of the files to accept; empty for all.
        hunks: Ids of the hunks to accept, such as ``2.1``; empty for all.

    Raises:
        NotFound: There is no such proposal, file or hunk.
        ConflictError: It has changed since it was shown, is closed, or a file was changed at that place.
        RefusedError: The client may not accept it; a person can.
    """
    options = context.submit_options or SubmitOptions()
    decide = context.reviewer.plan if options.dry_run else context.reviewer.accept
    try:
        return answers.write_result(decide(proposal_id, digest, files=files, hunks=hunks, run=options.run))
    except RefusedError as error:
        if error.code == rules.PERSON_NEEDED:
            error.hint = answers.review_fields(context, proposal_id)["message"]
            error.details.update(answers.place_fields(context, proposal_id))
            if not (files or hunks):
                error.details["proposal_id"] = proposal_id
        raise


def reject_proposal(
    context: Context, proposal_id: str, reason: str = "", files: Sequence[str] = (), hunks: Sequence[str] = ()
) -> write.RejectionResult:
    """Reject a proposal, or the named files or hunks of it; it stays visible, with the reason.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, from list_proposals.
        reason: Why it is rejected; may be empty.
        files: Paths of the files to reject; empty for all.
        hunks: Ids of the hunks to reject, such as ``2.1``; empty for all.

    Raises:
        NotFound: There is no such proposal, file or hunk.
        ConflictError: It is closed.
        RefusedError: It is another client's, and the client isn't a person.
    """
    if context.submit_options is not None and context.submit_options.dry_run:
        parts = context.reviewer.plan_rejection(proposal_id, files=files, hunks=hunks)
        return {
            "success": True,
            "id": proposal_id,
            "status": "planned",
            "reason": reason,
            "files": [file.path for file in parts],
            "hunks": [hunk.id for file in parts for hunk in file.hunks],
        }
    proposal = context.reviewer.reject(proposal_id, reason, files=files, hunks=hunks)
    return {"success": True, "id": proposal.id, "status": proposal.status, "reason": reason}


def edit_proposal(context: Context, proposal_id: str, digest: str, hunk: str, new_text: str) -> write.EditedProposal:
    """Replace the new lines of a hunk before it is accepted; the proposal's digest changes.

    A hunk that is shown as a block in its note is redrawn with the text.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, from list_proposals.
        digest: The ``digest`` from show_proposal.
        hunk: Id of the hunk, such as ``2.1``.
        new_text: The lines that replace the hunk's new ones.

    Returns:
        The proposal as show_proposal returns it; ``change_id`` of the change that redrew its block.

    Raises:
        NotFound: There is no such proposal or hunk.
        ConflictError: It has changed since it was shown, or is closed; or its block in the note was edited by hand.
        BadInput: The hunk isn't open, or would change nothing.
        RefusedError: It is another client's, and the client isn't a person.
    """
    run = context.submit_options.run if context.submit_options else ""
    edited = context.reviewer.edit(proposal_id, digest, hunk, new_text, run=run)
    answer: write.EditedProposal = {**proposal_answer(context, edited.proposal), "change_id": edited.change_id}
    if not edited.change_id:
        del answer["change_id"]
    if notices := [*edited.proposal.notices, *edited.notices]:
        answer["notes"] = notices
    return answer


def proposal_answer(context: Context, proposal: Proposal) -> write.ProposalAnswer:
    """Return a proposal as every surface shows it; who is shown what a tainted client wrote has read foreign text."""
    if proposal.tainted:
        answers.mark_tainted(context, f"proposal {proposal.id}")
    group_of = {file.number: group[0].number for group in proposal.groups() for file in group}
    block_ids = _present_block_ids(context, proposal)
    answer: write.ProposalAnswer = {
        "success": True,
        "id": proposal.id,
        "status": proposal.status,
        "digest": proposal.digest,
        "client": proposal.client,
        "created": proposal.created.isoformat(timespec="seconds"),
        "expires": proposal.expires.isoformat(timespec="seconds"),
        "files": [_file_row(file, group_of[file.number], block_ids) for file in proposal.files],
        "reason": proposal.reason,
        "why": proposal.why,
        "run": proposal.run,
        "tainted": proposal.tainted,
        "folders": [{"path": source, "target": target} for source, target in proposal.folders],
        "links_rewritten": answers.rewritten_links(proposal.rewritten),
        "rejection": proposal.rejection,
        "superseded_by": proposal.superseded_by,
        "decided_at": _format(proposal.decided_at),
        "decided_by": proposal.decided_by,
        "change_ids": [*proposal.changes],
        "notes": [*proposal.notices],
    }
    for name in _LEFT_OUT_IF_EMPTY:
        if not answer.get(name):
            del answer[name]
    if proposal.status in {"open", "stale"}:
        answer = {**answer, **answers.place_fields(context, proposal.id)}
    return {**answer, **_undone_fields(proposal.changes, undo.find_undone(_journal(context), proposal.changes))}


def _format(at: datetime | None) -> str:
    return at.isoformat(timespec="seconds") if at else ""


def _present_block_ids(context: Context, proposal: Proposal) -> dict[str, str]:
    """Return the ids of the blocks that show a proposal's hunks in its notes now, by the hunks' ids."""
    visible_paths = {file.path for file in proposal.files}
    block_ids: dict[str, str] = {}
    for path, shown_blocks in context.writer.proposals.note_blocks.get(proposal.id).items():
        raw = reviewer.read_note(context.view.root, path) if path in visible_paths else None
        for block_id in note_blocks.intact_blocks(raw or b"", shown_blocks):
            block_ids |= dict.fromkeys(shown_blocks[block_id], block_id)
    return block_ids


def _journal(context: Context) -> Journal:
    return context.writer.state.journal


def _undone_fields(changes: Sequence[str], undoing_changes: Mapping[str, str]) -> UndoneFields:
    """Return which changes of an accepted proposal were undone; the proposal itself stays accepted."""
    undone_changes = [change for change in changes if change in undoing_changes]
    if not undone_changes:
        return {}
    fields: UndoneFields = {"undone": "all" if len(undone_changes) == len(changes) else "part"}
    if undone_by := [*dict.fromkeys(undoing_changes[change] for change in undone_changes if undoing_changes[change])]:
        fields["undone_by"] = undone_by
    return fields


def _summary_row(context: Context, summary: Summary, undoing_changes: Mapping[str, str]) -> write.ProposalRow:
    # In the words of a tainted client, which a list shows to nobody whom reading them would taint.
    shows_reason = not summary.tainted or context.rights.grants.is_person
    row: write.ProposalRow = {
        "id": summary.id,
        "status": summary.status,
        "client": summary.client,
        "created": summary.created.isoformat(timespec="seconds"),
        "expires": summary.expires.isoformat(timespec="seconds"),
        "path": summary.path,
        "files": summary.files,
        "items": {name: count for name, count in summary.items.items() if count},
        "reason": summary.reason if shows_reason else "",
        "why": summary.why,
        "run": summary.run,
        "tainted": summary.tainted,
        "decided_at": _format(summary.decided_at),
        "decided_by": summary.decided_by,
    }
    for name in ("reason", "why", "run", "tainted", "decided_at", "decided_by"):
        if not row.get(name):
            del row[name]
    return {**row, **_undone_fields(summary.changes, undoing_changes)}


def _file_row(file: ProposedFile, group: int, block_ids: Mapping[str, str]) -> write.ProposalFile:
    row: write.ProposalFile = {
        "number": file.number,
        "group": group,
        "path": file.path,
        "kind": file.kind,
        "state": file.state,
        "follows": file.cause == "link",
        "hunks": [_hunk_row(hunk, block_ids.get(hunk.id, "")) for hunk in file.hunks],
        "diff": file.unified,
        "target": file.target or "",
        "base_hash": file.base or "",
        "reason": file.reason,
    }
    for name in ("target", "base_hash", "reason"):
        if not row.get(name):
            del row[name]
    if file.stale:
        row["stale"] = _stale_fields(file.stale)
    return row


def _hunk_row(hunk: ProposedHunk, block_id: str) -> write.ProposalHunk:
    row: write.ProposalHunk = {
        "id": hunk.id,
        "state": hunk.state,
        "line": hunk.hunk.old_start_line,
        "old": hunk.hunk.old.decode(errors="replace"),
        "new": hunk.hunk.new.decode(errors="replace"),
        "words": [[mark.side, mark.text] for mark in hunk.hunk.words],
        "edited": hunk.edited,
        "reason": hunk.reason,
        "block": block_id,
    }
    for name in ("edited", "reason", "block"):
        if not row.get(name):
            del row[name]
    if hunk.stale:
        row["stale"] = _stale_fields(hunk.stale)
    return row


def _stale_fields(stale: Stale) -> write.StaleReason:
    reason: write.StaleReason = {"code": stale.code, "message": stale.message}
    if stale.line:
        reason["line"] = stale.line
    if stale.current_text:
        reason["current_text"] = stale.current_text
    return reason


def list_blocks(context: Context, path: str) -> PendingBlockList:
    """List the pending edits that a note holds as blocks, with the text before and after.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.

    Returns:
        ``results`` with id, type, line, before and after; ``problem`` where one can't be resolved.

    Raises:
        NotFound: There is no such note.
    """
    note = context.view.read(context.view.locate(path))
    _ = answers.mark_if_foreign(context, note)
    rows: list[PendingBlockRow] = []
    for block in pending.find_pending(note.raw, note.outline):
        row: PendingBlockRow = {
            "id": block.id,
            "type": block.kind,
            "line": block.line,
            "before": block.before,
            "after": block.after,
        }
        if problem := blocks.block_problem(block):
            row["problem"] = problem
        rows.append(row)
    return {"success": True, "path": note.path, "hash": note.hash, "results": rows, "total": len(rows)}


def show_proposal_in_notes(context: Context, proposal_id: str) -> WriteResult:
    """Show the open parts of a proposal as blocks in its notes; the notes' own text stays as it is.

    A part that can't be a block, such as a change of properties, stays in the proposal only; ``notes`` names it.

    Raises:
        NotFound: There is no such proposal.
        RefusedError: The client isn't a person.
        BadInput: No part can be shown in a note.
        ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
    """
    return answers.write_result(context.reviewer.note_blocks.draw(proposal_id, dry_run=_is_dry_run(context)))


def resolve_blocks(
    context: Context, path: str, *, accept: Collection[str] = (), reject: Collection[str] = (), base: str = ""
) -> WriteResult:
    """Replace the blocks of pending edits in a note by their new or old text.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        accept: Ids of blocks; ``all`` stands for every one.
        reject: Likewise.
        base: The note's hash from `list_blocks`; empty to take the note as it is.

    Raises:
        NotFound: There is no such note or block.
        BadInput: None is named, or one is to be both accepted and rejected.
        ConflictError: The note isn't the listed one any more, or a block was edited by hand or half deleted; nothing is
            guessed.
        RefusedError: The client isn't a person.
    """
    if not (accept or reject) or ("all" in {*accept, *reject} and len(accept) + len(reject) > 1):
        raise BadInput("it isn't clear which blocks are meant", hint="name ids to accept or reject, or 'all' once")
    if overlap := set(accept) & set(reject):
        raise BadInput(f"{', '.join(sorted(overlap))} can't be both accepted and rejected", hint="name each once")
    choices: dict[str, BlockChoice] = dict.fromkeys(accept, "accept")
    choices |= dict.fromkeys(reject, "reject")
    note_path = context.view.locate(path, certain=True)
    if "all" in choices and not list_blocks(context, note_path)["total"]:
        raise NotFound(f"no edit waits in '{path}'", hint="`knap edits` lists proposals", code="block_not_found")
    choice = choices.get("all", choices)
    resolve = context.reviewer.note_blocks.resolve
    return answers.write_result(resolve(note_path, choice, base=base, dry_run=_is_dry_run(context)))


def _is_dry_run(context: Context) -> bool:
    return context.submit_options is not None and context.submit_options.dry_run
