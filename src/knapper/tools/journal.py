"""List changes from the journal, and undo them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypedDict, Unpack

from knapper.changes.disk import apply, undo
from knapper.changes.disk import plan as disk_plan
from knapper.changes.disk.journal import Change, Journal
from knapper.changes.disk.plan import Conflict, FileResult
from knapper.changes.disk.undo import ChangeFilter, Last, OfProposal, OfRun, One, Selector, Since
from knapper.changes.text import diff
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, NotFound, StorageError
from knapper.tools import answers
from knapper.tools.context import Context, resolve_filter
from knapper.tools.shapes.write import ChangeList, ChangeRow, FileAction, UndoConflict, UndoResult, WrittenFile
from knapper.vault.paths import NotePath

_TRASH_PREFIX = ".trash/"
_BATCH_SIZE = 50
"""Changes that are read at once where nobody knows how many are asked for."""


class ChangeConditions(TypedDict, total=False):
    """Conditions on changes; what is left out or empty is no condition."""

    client: str
    run: str
    proposal_id: str
    path: str
    since: str


def list_changes(
    context: Context, limit: int = undo.DEFAULT_LIMIT, offset: int = 0, **which: Unpack[ChangeConditions]
) -> ChangeList:
    """List what was changed in the vault, the newest first: who, when, why, and which files.

    Changes that concern only hidden files are left out.

    Args:
        context: The vault, as the client sees it.
        limit: How many at most.
        offset: How many of the newest to skip.
        client: Only what this client changed.
        run: Only what this run changed.
        proposal_id: Only what accepting this proposal changed.
        path: Only what touched this file, by its path or name, or any below this folder.
        since: Only from this time on, such as ``2026-01-31T12:00``; without a zone it is the system's.

    Returns:
        ``results`` with id, at, client, run, reason, proposal_id, undone, undoes and files.

    Raises:
        BadInput: The path or the time isn't valid.
        Ambiguous: Several files have the name.
        RefusedError: The path leads outside the vault.
    """
    answers.check_page(limit, offset)
    since, change_journal = which.get("since", ""), context.writer.state.journal
    query = ChangeFilter(
        client=which.get("client", ""),
        run=which.get("run", ""),
        proposal=which.get("proposal_id", ""),
        since=parse_moment(since) if since else None,
        sees=None
        if context.view.policy.sees_all
        else lambda end: end.startswith(_TRASH_PREFIX) or may_see(context, end),
    )

    def has_changes(path: str) -> bool:
        return bool(undo.list_changes(change_journal, replace(query, path=path), limit=1).total)

    path = resolve_filter(context, which.get("path", ""), has_changes)
    # The same answer as for a file without changes: an error would reveal that a hidden one exists.
    if path and not may_see(context, path):
        none: list[ChangeRow] = []
        return answers.page_of(none, 0, limit, offset)
    listing = undo.list_changes(change_journal, replace(query, path=path), limit=limit, offset=offset)
    return answers.page_of([_change_row(context, change) for change in listing.changes], listing.total, limit, offset)


def iterate_changes(context: Context, criteria: ChangeFilter) -> Iterator[tuple[Change, ChangeRow]]:
    """Yield changes, the latest first, as `list_changes` shows them; only as many are read as are asked for.

    Args:
        context: The vault, as the client sees it.
        criteria: Which; a path is one of the vault, which the client sees. A change that touches only hidden files
            there is left out.
    """
    sees_all, offset = context.view.policy.sees_all, 0
    while batch := undo.read_latest(context.writer.state.journal, criteria, limit=_BATCH_SIZE, offset=offset):
        for change in batch:
            if sees_all or any(_is_visible(context, file) and _touches(file, criteria.path) for file in change.files):
                yield change, _change_row(context, change)
        offset += len(batch)


def seen_undoes(context: Context, change: Change) -> tuple[str, ...]:
    """Return the ids of what an undo took back, as far as the client sees those changes."""
    if context.view.policy.sees_all:
        return change.undoes
    undone = undo.read_among(context.writer.state.journal, change.undoes)
    seen = {one.id for one in undone if any(_is_visible(context, file) for file in one.files)}
    return tuple(change_id for change_id in change.undoes if change_id in seen)


def may_see(context: Context, path: str) -> bool:
    """Return whether the client may know of a file, or of files in a folder."""
    return context.view.policy.sees_all or all(context.view.visible(NotePath(one)) for one in (path, f"{path}/x.md"))


def undo_change(
    context: Context,
    change_id: str = "",
    run: str = "",
    proposal_id: str = "",
    since: str = "",
    *,
    partial: bool = False,
) -> UndoResult:
    """Undo the last change, or take back the one that is named; the undo is a change itself, and can be undone.

    Args:
        context: The vault, as the client sees it.
        change_id: Id of a change. At most one of change_id, run, proposal_id and since; without any, the last
            change.
        run: Every change of this run.
        proposal_id: Every change that accepting this proposal made.
        since: Everything from this time on, such as ``2026-01-31T12:00``; without a zone it is the system's.
        partial: Skip files that were changed since, or whose changes the journal had to drop, and undo the rest.

    Returns:
        ``undone``: ids of the undone changes; ``files``, edited ones with their diff, or its beginning
        (``diff_truncated``); ``left``: files that were skipped, since they were changed.

    Raises:
        NotFound: There is nothing to undo.
        BadInput: The change was undone already, or more than one thing is named.
        ConflictError: Files were changed since (``conflicts``), or the journal had to drop some of the changes
            (``pruned``), and *partial* is false; nothing was done.
        RefusedError: The client may not undo.
    """
    selector = _parse_selector({"change_id": change_id, "run": run, "proposal_id": proposal_id, "since": since})
    options = context.submit_options or SubmitOptions()
    if options.dry_run:
        return _undo_plan(context, selector, options.run, partial=partial)
    result = context.writer.undo(selector, reason=options.reason, partial=partial, run=options.run)
    change_journal = context.writer.state.journal
    files = _file_rows(context, result.applied.files, lambda file: _edit_diff(change_journal, file))
    answers.mark_shown_paths(context, (file["path"] for file in files if "diff" in file))
    answer: UndoResult = {
        "success": True,
        "status": "applied",
        "change_id": result.applied.change_id,
        "undone": [*result.changes],
        "files": answers.cut_diffs(files),
    }
    if result.left:
        undone = undo.read_newest_first(change_journal, result.changes)
        answer["left"] = _conflict_rows(context, undone, result.left)
    if result.applied.notices:
        answer["notes"] = [*result.applied.notices]
    return answer


def _parse_selector(conditions: Mapping[str, str]) -> Selector:
    given_names = {name: value for name, value in conditions.items() if value}
    if len(given_names) > 1:
        raise BadInput(f"{' and '.join(given_names)} can't be given together", hint="give one of them")
    match next(iter(given_names.items()), ("", "")):
        case ("change_id", value):
            return One(change_id=value)
        case ("run", value):
            return OfRun(run=value)
        case ("proposal_id", value):
            return OfProposal(proposal=value)
        case ("since", value):
            return Since(at=parse_moment(value))
        case _:
            return Last()


def parse_moment(text: str) -> datetime:
    """Parse a day or a time in ISO 8601.

    Raises:
        BadInput: It isn't one.
    """
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        hint = "write it like 2026-01-31 or 2026-01-31T18:30"
        raise BadInput(f"'{text}' is no day or time", hint=hint, code="invalid_time") from None


def _undo_plan(context: Context, selector: Selector, run: str, *, partial: bool) -> UndoResult:
    """Return what an undo would do; nothing is written."""
    state = context.writer.state
    changes = context.writer.undoable(selector, run, partial=partial)
    plan = apply.plan_effects(state, list(undo.inverse_effects(state.journal, changes)))
    # The answer's diffs quote the files as they are now.
    answers.mark_shown_paths(
        context, (path for change in changes for file in change.files if (path := file.after_path))
    )
    files = _file_rows(context, disk_plan.file_results(plan.steps), lambda file: _file_diff(file, plan.contents))
    answer: UndoResult = {
        "success": True,
        "status": "planned",
        "undone": [change.id for change in changes],
        "files": answers.cut_diffs(files),
    }
    if plan.conflicts:
        answer["left"] = _conflict_rows(context, changes, plan.conflicts)
    return answer


def _change_row(context: Context, change: Change) -> ChangeRow:
    hidden = sum(not _is_visible(context, file) for file in change.files)
    # They went to the system's trash, which is outside the vault.
    discarded = {step.source for step in change.steps if step.kind == "discard"}
    row: ChangeRow = {
        "id": change.id,
        "at": change.at.isoformat(timespec="seconds"),
        "client": change.client,
        "files": _file_rows(context, change.files, trashed=discarded),
        # A reason may quote hidden files, and their number is only for the client that changed them.
        "reason": "" if hidden else change.reason,
        "run": change.run,
        "proposal_id": change.proposal,
        "undone": change.undone,
        "undoes": [*seen_undoes(context, change)],
        "hidden_files": hidden if change.client == context.view.policy.client else 0,
    }
    for name in ("reason", "run", "proposal_id", "undone", "undoes", "hidden_files"):
        if not row.get(name):
            del row[name]
    return row


def _file_rows(
    context: Context,
    files: Iterable[FileResult],
    diff_of: Callable[[FileResult], str] = lambda _: "",
    *,
    trashed: Collection[str] = (),
) -> list[WrittenFile]:
    rows: list[WrittenFile] = []
    for file in files:
        if not _is_visible(context, file):
            continue
        before, after = file.before_path, file.after_path
        row: WrittenFile = {
            "action": "trashed" if file.path in trashed else _file_action(file),
            "path": before or file.path,
            "target": (after or "") if before and after != before else "",
            "before_hash": file.before_hash or "",
            "hash": file.after_hash or "",
            "diff": diff_of(file),
        }
        rows.append(answers.without_empty_parts(row))
    return rows


def _is_visible(context: Context, file: FileResult) -> bool:
    """Return whether the client may know of a file; a file in the trash counts as what it was before."""
    if context.view.policy.sees_all:
        return True
    vault_paths = [end for end in (file.before_path, file.after_path) if end and not end.startswith(_TRASH_PREFIX)]
    return all(context.view.visible(end) for end in vault_paths)


def _touches(file: FileResult, path: str) -> bool:
    """Return whether a file is the one that is asked for, or lies in that folder; an empty path asks for all."""
    ends = [end for end in (file.before_path, file.after_path) if end]
    return not path or any(
        end == path or end.startswith(f"{path}/") or (file.is_folder and path.startswith(f"{end}/")) for end in ends
    )


def _file_action(file: FileResult) -> FileAction:
    before, after = file.before_path, file.after_path
    if before is None:
        return "created"
    if after is None:
        return "removed"
    if before == after:
        return "edited"
    if after.startswith(_TRASH_PREFIX):
        return "trashed"
    return "restored" if before.startswith(_TRASH_PREFIX) else "moved"


def _file_diff(file: FileResult, contents: Mapping[str, bytes]) -> str:
    old, new = contents.get(file.before_hash or "", b""), contents.get(file.after_hash or "", b"")
    is_known = all(name is None or name in contents for name in (file.before_hash, file.after_hash))
    return diff.unified_diff(old, new, file.path) if is_known and old != new else ""


def _edit_diff(change_journal: Journal, file: FileResult) -> str:
    """Return the diff of a file that an applied change edited; empty where it was made, moved or removed."""
    if file.before_path != file.after_path or file.before_hash is None or file.after_hash is None:
        return ""
    try:
        contents = {name: change_journal.content(name) for name in (file.before_hash, file.after_hash)}
    except (NotFound, StorageError):  # dropped for the journal's limits, or damaged; the undo itself is done
        return ""
    return _file_diff(file, contents)


def _conflict_rows(context: Context, changes: Sequence[Change], conflicts: Sequence[Conflict]) -> list[UndoConflict]:
    later = context.writer.find_later(changes, [one.path for one in conflicts])
    rows: list[UndoConflict] = []
    for one in conflicts:
        row: UndoConflict = {"path": one.path, "problem": one.problem, "current_hash": one.current}
        ids = [change.change.id for change in later if one.path in change.paths]
        rows.append({**row, "later": ids} if ids else row)
    return rows
