"""List, show, accept and reject what waits for a person's word."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, get_args

from knapper.changes.disk import undo
from knapper.changes.disk.journal import Journal
from knapper.changes.proposals import store
from knapper.changes.proposals.model import Proposal, ProposalStatus, ProposedFile, ProposedHunk, Stale, Summary
from knapper.changes.proposals.tables import ProposalFilter
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import answers, foreign
from knapper.tools.context import Context
from knapper.tools.shapes import Answer, proposed
from knapper.tools.shapes.written import Written

STATUSES: Final[tuple[ProposalStatus, ...]] = get_args(ProposalStatus)
_TURNS: Final[Mapping[ProposalStatus, ProposalStatus]] = {"open": "stale", "stale": "open"}
"""What a proposal of each status may have turned into since it was looked at."""
_QUICK_FILES: Final = 50
"""A proposal about more is listed as it was when it was last shown."""


def list_proposals(
    context: Context, status: str = "", path: str = "", limit: int = store.LIMIT, offset: int = 0
) -> Annotated[Answer, proposed.Proposals]:
    """List changes that wait for a person's word, and what became of earlier ones; the newest first.

    Args:
        context: The vault, as the client sees it.
        status: Only those that are ``open``, ``stale``, ``accepted``, ``partly_accepted``, ``rejected``, ``expired`` or
            ``superseded``; empty for all.
        path: Only those about this file or folder; empty for all.
        limit: How many at most.
        offset: How many of the newest are left out.

    Returns:
        ``results`` with id, status, client, created, why they wait, and how many parts are in which state; ``undone``
        and ``undone_by`` where what was accepted was taken back.
    """
    answers.check_page(limit, offset)
    chosen: ProposalStatus | None = next((known for known in STATUSES if status == known), None)
    if status and chosen is None:
        raise BadInput(f"there is no status '{status}'", hint=f"one of: {', '.join(STATUSES)}")
    wanted = ProposalFilter(status=chosen, path=path, visible=context.view.visible)
    find = context.writer.proposals.find
    found = find(wanted, limit=limit, offset=offset)
    turning = find(replace(wanted, status=_TURNS[chosen]), limit=limit).proposals if chosen in _TURNS else ()
    if _looked(context, (*found.proposals, *turning)):
        found = find(wanted, limit=limit, offset=offset)
    taken_back = undo.find_undone(_journal(context), [change for one in found.proposals for change in one.changes])
    return answers.stretch([_summary(one, taken_back) for one in found.proposals], found.total, limit, offset)


def _looked(context: Context, listed: Sequence[Summary]) -> bool:
    """Fit those that wait to the files as they are now; tells whether there were any."""
    waiting = [one for one in listed if one.status in {"open", "stale"} and one.files <= _QUICK_FILES]
    for one in waiting:
        with contextlib.suppress(KnapError):  # decided meanwhile, or a block was edited by hand: showing it says so
            _ = context.reviewer.refit(one.id)
    return bool(waiting)


def show_proposal(context: Context, proposal_id: str) -> Annotated[Answer, proposed.Proposal]:
    """Show a proposal, fitted to the files as they are now: its files, hunks and word-level differences.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, as list_proposals tells it.

    Returns:
        ``digest``, which accepting asks for, and ``files`` with ``hunks``; ``undone`` (``all`` or ``part``) and
        ``undone_by`` where what was accepted was taken back.

    Raises:
        NotFound: There is none, or it is about files that the client doesn't see.
    """
    fitted = context.reviewer.refit(proposal_id)
    foreign.shown(context, (file.path for file in fitted.files if file.before is not None))
    return shape(context, fitted)


def accept_proposal(
    context: Context, proposal_id: str, digest: str, files: Sequence[str] = (), hunks: Sequence[str] = ()
) -> Annotated[Answer, Written]:
    """Apply a proposal, or the named files or hunks of it, exactly as it was shown.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, as list_proposals tells it.
        digest: The ``digest`` that show_proposal told: nothing is accepted that wasn't shown.
        files: Paths of the files that are meant; empty for all.
        hunks: Ids of the hunks that are meant, such as ``2.1``; empty for all.

    Raises:
        NotFound: There is no such proposal, file or hunk.
        ConflictError: It isn't what was shown any more, is closed, or a place in a file changed.
        RefusedError: The client may not accept it; a person can.
    """
    asked = context.asked or SubmitOptions()
    do = context.reviewer.plan if asked.dry_run else context.reviewer.accept
    return do(proposal_id, digest, files=files, hunks=hunks, run=asked.run).as_dict()


def reject_proposal(
    context: Context, proposal_id: str, reason: str = "", files: Sequence[str] = (), hunks: Sequence[str] = ()
) -> Annotated[Answer, proposed.Rejected]:
    """Say no to a proposal, or to the named files or hunks of it; it stays visible, with the reason.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, as list_proposals tells it.
        reason: Why; may be empty.
        files: Paths of the files that are meant; empty for all.
        hunks: Ids of the hunks that are meant, such as ``2.1``; empty for all.

    Raises:
        NotFound: There is no such proposal, file or hunk.
        ConflictError: It is closed.
        RefusedError: It is another client's, and the client is no person.
    """
    if context.asked is not None and context.asked.dry_run:
        parts = context.reviewer.plan_rejection(proposal_id, files=files, hunks=hunks)
        return {"success": True, "id": proposal_id, "status": "planned", "reason": reason, **_named(parts)}
    found = context.reviewer.reject(proposal_id, reason, files=files, hunks=hunks)
    return {"success": True, "id": found.id, "status": found.status, "reason": reason}


def _named(parts: Sequence[ProposedFile]) -> Answer:
    paths: list[JSONValue] = [file.path for file in parts]
    names: list[JSONValue] = [one.id for file in parts for one in file.hunks]
    return {"files": paths, "hunks": names}


def edit_proposal(
    context: Context, proposal_id: str, digest: str, hunk: str, new_text: str
) -> Annotated[Answer, proposed.Edited]:
    """Put another text in the place of a hunk's new lines, before it is accepted; its digest changes with that.

    Where the hunk is shown as a block in its note, the block is drawn anew with the text.

    Args:
        context: The vault, as the client sees it.
        proposal_id: Id of the proposal, as list_proposals tells it.
        digest: The ``digest`` that show_proposal told.
        hunk: Id of the hunk, such as ``2.1``.
        new_text: The lines that come in the place of the hunk's new ones.

    Returns:
        The proposal as show_proposal gives it; ``change_id`` of the change that drew its block anew.

    Raises:
        NotFound: There is no such proposal or hunk.
        ConflictError: It isn't what was shown any more, or is closed; or its block in the note was edited by hand.
        BadInput: The hunk isn't open, or would change nothing.
        RefusedError: It is another client's, and the client is no person.
    """
    run = context.asked.run if context.asked else ""
    edited = context.reviewer.edit(proposal_id, digest, hunk, new_text, run=run)
    notices: list[JSONValue] = [*edited.proposal.notices, *edited.notices]
    return shape(context, edited.proposal) | _some({"change_id": edited.change_id, "notes": notices})


def shape(context: Context, proposal: Proposal) -> dict[str, JSONValue]:
    """Give a proposal as every surface shows it."""
    together = {file.number: group[0].number for group in proposal.groups() for file in group}
    files: list[JSONValue] = [_file(file, together[file.number]) for file in proposal.files]
    rewritten: list[JSONValue] = [
        {"path": one.path, "line": one.line, "old": one.old, "new": one.new} for one in proposal.rewritten
    ]
    folders: list[JSONValue] = [{"path": source, "target": target} for source, target in proposal.folders]
    notices: list[JSONValue] = [*proposal.notices]
    changes: list[JSONValue] = [*proposal.changes]
    shown: dict[str, JSONValue] = {
        "success": True,
        "id": proposal.id,
        "status": proposal.status,
        "digest": proposal.digest,
        "client": proposal.client,
        "created": proposal.created.isoformat(timespec="seconds"),
        "expires": proposal.expires.isoformat(timespec="seconds"),
        "files": files,
    }
    more: dict[str, JSONValue] = {
        "reason": proposal.reason,
        "why": proposal.why,
        "run": proposal.run,
        "tainted": proposal.tainted,
        "folders": folders,
        "links_rewritten": rewritten,
        "rejection": proposal.rejection,
        "superseded_by": proposal.superseded_by,
        "change_ids": changes,
        "notes": notices,
    }
    return shown | _some({**more, **_undone(proposal.changes, undo.find_undone(_journal(context), proposal.changes))})


def _journal(context: Context) -> Journal:
    return context.writer.state.journal


def _undone(changes: Sequence[str], taken_back: Mapping[str, str]) -> dict[str, JSONValue]:
    """Say what became of changes that accepting made: an undo leaves a proposal accepted, for it was."""
    gone = [change for change in changes if change in taken_back]
    by: list[JSONValue] = [*dict.fromkeys(taken_back[change] for change in gone if taken_back[change])]
    return {"undone": "all" if len(gone) == len(changes) else "part", "undone_by": by} if gone else {}


def _summary(one: Summary, taken_back: Mapping[str, str]) -> JSONValue:
    items: dict[str, JSONValue] = {name: count for name, count in one.items.items() if count}
    shown: dict[str, JSONValue] = {
        "id": one.id,
        "status": one.status,
        "client": one.client,
        "created": one.created.isoformat(timespec="seconds"),
        "expires": one.expires.isoformat(timespec="seconds"),
        "path": one.path,
        "files": one.files,
        "items": items,
    }
    more: dict[str, JSONValue] = {"reason": one.reason, "why": one.why, "run": one.run, "tainted": one.tainted}
    return shown | _some({**more, **_undone(one.changes, taken_back)})


def _file(file: ProposedFile, group: int) -> JSONValue:
    hunks: list[JSONValue] = [_hunk(one) for one in file.hunks]
    shown: dict[str, JSONValue] = {
        "number": file.number,
        "group": group,
        "path": file.path,
        "kind": file.kind,
        "state": file.state,
        "follows": file.cause == "link",
        "hunks": hunks,
        "diff": file.unified,
    }
    more: dict[str, JSONValue] = {"target": file.target, "base_hash": file.base, "reason": file.reason}
    return shown | _some({**more, "stale": _stale(file.stale)})


def _hunk(one: ProposedHunk) -> JSONValue:
    words: list[JSONValue] = [[mark.side, mark.text] for mark in one.hunk.words]
    shown: dict[str, JSONValue] = {
        "id": one.id,
        "state": one.state,
        "line": one.hunk.old_start_line,
        "old": one.hunk.old.decode(errors="replace"),
        "new": one.hunk.new.decode(errors="replace"),
        "words": words,
    }
    return shown | _some({"edited": one.edited, "reason": one.reason, "stale": _stale(one.stale)})


def _stale(stale: Stale | None) -> JSONValue:
    if stale is None:
        return None
    shown: dict[str, JSONValue] = {"code": stale.code, "message": stale.message}
    return shown | _some({"line": stale.line, "current_text": stale.current_text})


def _some(parts: dict[str, JSONValue]) -> dict[str, JSONValue]:
    return {name: value for name, value in parts.items() if value}
