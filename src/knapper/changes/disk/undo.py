"""Undo: listing and selecting changes, and taking them back as a change of its own."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final, TypeAlias

from knapper.changes.disk import apply, plan
from knapper.changes.disk.apply import Applied
from knapper.changes.disk.journal import Change, Journal, PrunedChange
from knapper.changes.disk.plan import ChangeMeta, Conflict, Effect
from knapper.changes.disk.transaction import State
from knapper.errors import BadInput, ConflictError, NotFound

DEFAULT_LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Criteria for a list of changes; an empty or None field is no condition."""

    client: str = ""
    run: str = ""
    proposal: str = ""
    path: str = ""
    """A file's path before or after the change, or a folder's, which matches all below it."""
    since: datetime | None = None
    until: datetime | None = None
    work: str = ""
    """The id of a run, a session, a proposal or a change: all that it led to, with the undos of that."""
    sees: Callable[[str], bool] | None = None
    """Whether the reader may see a path; a change of which no file is visible is left out, and with a path, one that
    touches only hidden files there. None sees all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """One page of the list of changes, newest first."""

    changes: tuple[Change, ...]
    total: int
    limit: int
    offset: int


_IS_APPLIED = "phase IN ('applied', 'done')"
_STEP_TOUCHES_PATH = """(source = :path OR target = :path
    OR source > :below AND source < :beyond OR target > :below AND target < :beyond
    OR is_folder AND source IN (SELECT value FROM json_each(:above))
    OR is_folder AND target IN (SELECT value FROM json_each(:above)))"""
"""Of the path, all below it and the folders above it; each is a range of an index. Its values are of `_path_values`."""
_TOUCHES_PATH = f"id IN (SELECT change FROM steps WHERE {_STEP_TOUCHES_PATH})"  # noqa: S608 - constant text of ours
_OF_WORK = "(run = :work OR proposal = :work OR id = :work)"
_LED_TO = f"""id IN (WITH RECURSIVE led (id) AS (SELECT id FROM changes WHERE {_OF_WORK}
    UNION SELECT undoes.change FROM undoes JOIN led ON undoes.undone = led.id) SELECT id FROM led)"""  # noqa: S608 - constant text of ours
_STEP_PATHS = "SELECT change, source, target FROM steps WHERE kind NOT IN ('mkdir', 'rmdir')"
_AMONG_IDS = "id IN (SELECT value FROM json_each(:seen))"
_CONDITIONS = {
    "client": "client = :client",
    "run": "run = :run AND run <> ''",
    "proposal": "proposal = :proposal AND proposal <> ''",
    "path": _TOUCHES_PATH,
    "since": "at >= :since",
    "until": "at <= :until",
    "work": _LED_TO,
}


def list_changes(
    journal: Journal, criteria: ChangeFilter | None = None, *, limit: int = DEFAULT_LIMIT, offset: int = 0
) -> ChangePage:
    """Return applied changes, newest first, with undone ones and undos.

    Args:
        journal: The vault's.
        criteria: Which; None for all.
        limit: How many.
        offset: How many of the newest are left out.
    """
    criteria = criteria or ChangeFilter()
    conditions, values = _conditions(criteria)
    if criteria.sees:
        # those of which at least one file is visible, and is the one that is asked for, if any
        touches = _STEP_TOUCHES_PATH if "path" in values else "1"
        with journal.reading() as database:
            where = _applied(conditions)
            sql = f"{_STEP_PATHS} AND {touches} AND change IN (SELECT id FROM changes WHERE {where})"  # noqa: S608 - constant text of ours
            rows = database.execute(sql, values).fetchall()
        ids = {change for change, *ends in rows if all(criteria.sees(end) for end in ends if end)}
        conditions, values = [*conditions, _AMONG_IDS], {**values, "seen": json.dumps(sorted(ids))}
    page_values = {**values, "limit": limit, "offset": offset}
    changes = journal.select(f"{_applied(conditions)} ORDER BY seq DESC LIMIT :limit OFFSET :offset", page_values)
    total = journal.count_applied(" AND ".join(conditions), values)
    return ChangePage(changes=tuple(changes), total=total, limit=limit, offset=offset)


def read_latest(journal: Journal, criteria: ChangeFilter, *, limit: int, offset: int = 0) -> list[Change]:
    """Return changes by the time at which they were made, the latest first, without counting the others.

    Args:
        journal: The vault's.
        criteria: Which; ``sees`` doesn't count here.
        limit: How many.
        offset: How many of the latest are left out.
    """
    conditions, values = _conditions(criteria)
    page_values = {**values, "limit": limit, "offset": offset}
    return journal.select(f"{_applied(conditions)} ORDER BY at DESC, id DESC LIMIT :limit OFFSET :offset", page_values)


def read_among(journal: Journal, ids: Collection[str]) -> list[Change]:
    """Return the changes of some ids, in no order; those that the journal doesn't have any more are left out."""
    return journal.select(_AMONG_IDS, {"seen": json.dumps([*ids])}) if ids else []


def read_newest_first(journal: Journal, ids: Collection[str]) -> list[Change]:
    """Return the changes of some ids, the newest first; those that the journal doesn't have any more are left out."""
    return journal.select(f"{_AMONG_IDS} {_BACKWARDS}", {"seen": json.dumps([*ids])}) if ids else []


def format_time(at: datetime) -> str:
    """Format a time as the journal does; one without a zone is in the system's."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def _conditions(criteria: ChangeFilter) -> tuple[list[str], dict[str, object]]:
    values: dict[str, object] = {
        "client": criteria.client,
        "run": criteria.run,
        "proposal": criteria.proposal,
        "path": criteria.path,
        "since": format_time(criteria.since) if criteria.since else "",
        "until": format_time(criteria.until) if criteria.until else "",
        "work": criteria.work,
    }
    set_values = {name: value for name, value in values.items() if value}
    conditions = [_CONDITIONS[name] for name in set_values]
    return conditions, {**set_values, **(_path_values(criteria.path) if criteria.path else {})}


def _applied(conditions: Iterable[str]) -> str:
    return " AND ".join([_IS_APPLIED, *conditions])


def _path_values(path: str) -> dict[str, object]:
    """Return the values that `_TOUCHES_PATH` takes."""
    folders = [path[:end] for end, sign in enumerate(path) if sign == "/"]
    after_slash = chr(ord("/") + 1)
    return {"path": path, "below": f"{path}/", "beyond": f"{path}{after_slash}", "above": json.dumps(folders)}


_HOLDS = "phase IN ('applied', 'done') AND undone = 0"
_NO_UNDO = "NOT EXISTS (SELECT 1 FROM undoes WHERE undoes.change = changes.id)"
_BACKWARDS = "ORDER BY seq DESC"
_UNDOS = "(SELECT change FROM undoes WHERE undone = :id)"
_LIMITS_HINT: Final = "it keeps what the settings journal.max_mb and journal.max_age_days leave room for"
_MAX_LISTED: Final = 20
_MAX_ID_LENGTH: Final = 80
"""Characters of an id that an error message repeats."""
_BATCH_SIZE: Final = 200
_UNDOABLE = f"{_HOLDS} AND {_NO_UNDO} {_BACKWARDS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The newest change that is still in effect and no undo itself; used twice, it takes back two changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    """A change by its id; the only way to take back an undo."""

    change_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfProposal:
    """All that accepting a proposal changed."""

    proposal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRun:
    """All that a run wrote."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """Everything from a time on, so that the vault is as it was then."""

    at: datetime


Selector: TypeAlias = Last | One | OfProposal | OfRun | Since


def _sees_every(_: Change) -> bool:
    return True


def select_changes(
    journal: Journal, selector: Selector, *, partial: bool = False, sees: Callable[[Change], bool] = _sees_every
) -> list[Change]:
    """Return the changes that a selector means and that are still in effect, newest first.

    Args:
        journal: The vault's.
        selector: Which.
        partial: True returns those that the journal still has, even if it dropped others.
        sees: Whether the client may know of a change; others are treated as if they didn't exist.

    Raises:
        NotFound: There is none, or the journal had to drop it (code ``pruned``).
        ConflictError: The journal had to drop some of them (code ``pruned``), and *partial* wasn't asked for.
        BadInput: The one change was undone already.
    """
    pruned = find_lost(journal, selector)
    if pruned and (isinstance(selector, One) or not (partial or isinstance(selector, Last))):
        details = {"pruned": [one.id for one in pruned[:_MAX_LISTED]]}
        message = f"{describe_lost(pruned)}, so that this can't be taken back"
        if isinstance(selector, One) or not _find_selected(journal, selector, _sees_every):
            raise NotFound(message, hint=_LIMITS_HINT, code="pruned", details=details)
        hint = f"a partial undo takes back the rest; {_LIMITS_HINT}"
        raise ConflictError(f"{message} as a whole; nothing was done", hint=hint, code="pruned", details=details)
    selected = _find_selected(journal, selector, sees)
    if not selected:
        match selector:
            case OfRun():
                phrase = f" of the run '{selector.run[:_MAX_ID_LENGTH]}'"
            case OfProposal():
                phrase = f" of the proposal '{selector.proposal[:_MAX_ID_LENGTH]}'"
            case Since():
                phrase = f" since {selector.at.isoformat(timespec='minutes')}"
            case _:
                phrase = ""
        more = ": the journal had to drop all that there was" if pruned else ""
        hint = _LIMITS_HINT if pruned else "list the journal for what was changed"
        raise NotFound(f"there is nothing to undo{phrase}{more}", hint=hint, code="pruned" if pruned else None)
    return selected


def find_lost(journal: Journal, selector: Selector) -> list[PrunedChange]:
    """Return the changes that a selector means, but that the journal had to drop for its size or their age."""
    match selector:
        case Last():
            return journal.pruned("held")
        case One():
            return journal.pruned("id = :id", {"id": selector.change_id})
        case OfProposal():
            return journal.pruned("held AND proposal = :proposal", {"proposal": selector.proposal})
        case OfRun():
            return journal.pruned("held AND run = :run", {"run": selector.run})
        case Since():
            return journal.pruned("held AND at >= :at", {"at": format_time(selector.at)})


def describe_lost(pruned: Sequence[PrunedChange]) -> str:
    """Return a sentence about changes that can't be taken back any more."""
    if len(pruned) == 1:
        return f"change '{pruned[0].id}' of {pruned[0].at[:10]} isn't in the journal any more"
    return f"{len(pruned)} changes up to {pruned[0].at[:10]} aren't in the journal any more"


def _find_selected(journal: Journal, selector: Selector, sees: Callable[[Change], bool]) -> list[Change]:
    match selector:
        case Last():
            return list(islice(filter(sees, _iterate_backwards(journal)), 1))
        case One():
            change = journal.show(selector.change_id)
            if not sees(change):
                raise journal.missing(selector.change_id)
            if change.undone:
                later = journal.select(f"id IN {_UNDOS} AND {_HOLDS} {_BACKWARDS}", {"id": selector.change_id})
                hint = f"to have it again, undo {later[0].id}" if later else "list the journal for what took it back"
                raise BadInput(f"change '{selector.change_id}' was undone already", code="already_undone", hint=hint)
            return [change]
        case OfProposal():
            selected = journal.select(f"proposal = :proposal AND {_UNDOABLE}", {"proposal": selector.proposal})
        case OfRun():
            selected = journal.select(f"run = :run AND {_UNDOABLE}", {"run": selector.run})
        case Since():
            # without undone ones, and without undos of changes that are as new
            recent = journal.select(
                f"phase IN ('applied', 'done') AND at >= :at {_BACKWARDS}", {"at": format_time(selector.at)}
            )
            new = {change.id for change in recent}
            selected = [
                change
                for change in recent
                if not change.undone and not (change.undoes and new.issuperset(change.undoes))
            ]
    return list(filter(sees, selected))


def _iterate_backwards(journal: Journal) -> Iterator[Change]:
    # The first batch is a single change, which is nearly always the one that is wanted.
    offset, limit = 0, 1
    while batch := journal.select(f"{_UNDOABLE} LIMIT :limit OFFSET :offset", {"limit": limit, "offset": offset}):
        yield from batch
        offset, limit = offset + limit, _BATCH_SIZE


_UNDONE = """SELECT id, coalesce((
        SELECT later.id FROM undoes JOIN changes AS later ON later.id = undoes.change
        WHERE undoes.undone = changes.id AND later.undone = 0 AND later.phase IN ('applied', 'done')
        ORDER BY later.seq DESC LIMIT 1
    ), '') AS undo FROM changes
    WHERE undone = 1 AND id IN (SELECT value FROM json_each(:ids))
    UNION ALL SELECT id, '' FROM pruned WHERE held = 0 AND id IN (SELECT value FROM json_each(:ids))"""


def find_undone(journal: Journal, changes: Collection[str]) -> dict[str, str]:
    """Return which of some changes were taken back, and not made again since.

    Args:
        journal: The vault's.
        changes: Ids.

    Returns:
        Ids of undone changes, each with the id of the undo; undoing that makes the change again. The undo's id is empty
        if the journal has dropped it.
    """
    if not changes:
        return {}
    with journal.reading() as database:
        rows = database.execute(_UNDONE, {"ids": json.dumps(list(changes))})
        return {row["id"]: row["undo"] for row in rows.fetchall()}


_LATER: Final = f"""{_IS_APPLIED} AND {_TOUCHES_PATH}
    AND seq > (SELECT seq FROM changes WHERE id = :after) ORDER BY seq"""  # noqa: S608 - constant text of ours
_MAX_LATER: Final = 5
"""Most later changes that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterChange:
    """A change in effect that stands in the way of undoing an earlier one."""

    change: Change
    paths: tuple[str, ...]
    """The files that it touched, by their names in the undo."""

    def as_dict(self) -> dict[str, object]:
        """Return it as errors and answers show it."""
        return {
            "id": self.change.id,
            "at": self.change.at.isoformat(timespec="seconds"),
            "client": self.change.client,
            "paths": [*self.paths],
        }


def find_later(journal: Journal, changes: Sequence[Change], paths: Iterable[str]) -> list[LaterChange]:
    """Return the changes to some files that have to be undone before earlier ones can be.

    A file that was renamed is followed to its new name. Changes that were undone since don't count, nor do their undos.

    Args:
        journal: The vault's.
        changes: Those to undo, newest first; none of them is returned.
        paths: The files that they can't restore.

    Returns:
        The later changes, newest first; empty where the journal doesn't know what changed the files.
    """
    if not changes:
        return []
    oldest = changes[-1].id
    found: dict[str, Change] = {}
    touched: dict[str, dict[str, None]] = {}
    pending = [(path, path, oldest) for path in dict.fromkeys(paths)]
    while pending:
        origin, path, after = pending.pop()
        for change in journal.select(_LATER, {**_path_values(path), "after": after}):
            if origin in touched.setdefault(change.id, {}):
                continue
            found[change.id] = change
            touched[change.id][origin] = None
            pending += [(origin, name, change.id) for name in _names_after(change, path) if name != path]
    ignored = {change.id for change in changes} | {one.id for one in found.values() if one.undone}
    later = [
        LaterChange(change=one, paths=tuple(touched[one.id]))
        for one in found.values()
        if one.id not in ignored and not (one.undoes and ignored.issuperset(one.undoes))
    ]
    order = {change.id: number for number, change in enumerate(read_newest_first(journal, found))}
    return sorted(later, key=lambda one: order[one.change.id])


def _names_after(change: Change, path: str) -> Iterator[str]:
    """Yield the names that a change gave to a file, also by moving its folder."""
    for file in change.files:
        before, after = file.before_path, file.after_path
        if before and after and before != after:
            if path == before:
                yield after
            elif file.is_folder and path.startswith(f"{before}/"):
                yield after + path[len(before) :]


def describe_later(later: Sequence[LaterChange]) -> str:
    """Return who changed which files later, and when, for an error message."""
    names: list[str] = []
    for one in later[:_MAX_LATER]:
        files = ", ".join(f"'{path}'" for path in one.paths)
        names.append(f"{one.change.id} ({one.change.at.astimezone():%Y-%m-%d %H:%M} by {one.change.client}: {files})")
    more = [f"{len(later) - _MAX_LATER} more"] if len(later) > _MAX_LATER else []
    return ", ".join([*names, *more])


def explain_way(
    later: Sequence[LaterChange],
    current: Mapping[str, str | None],
    *,
    rest_fits: bool,
    sees: Callable[[Change], bool] = _sees_every,
) -> str:
    """Return the next step after an undo that was refused because of its files.

    Args:
        later: The later changes of these, newest first.
        current: The files that can't be restored, each with its current hash; None if it isn't there.
        rest_fits: Whether the undo fits the other files.
        sees: Whether the client may know of a change; of others it is told only that there are some.
    """
    outside = sorted(path for path, name in current.items() if not _explains(later, path, name))
    unseen = sorted({path for one in later if not sees(one.change) for path in one.paths})
    ids = ", then ".join(one.change.id for one in later[:_MAX_LATER])
    ids += ", and so on" if len(later) > _MAX_LATER else ""
    if unseen:
        first = f"ask a person to undo a later change of '{unseen[0]}' first, which this client may not see"
    elif not later:
        first = "undo what came later first"
    elif outside:
        first = f"take back what another program changed in '{outside[0]}', then undo what came later: {ids}"
    else:
        first = f"undo what came later first: {ids}"
    if rest_fits:
        return f"{first}, or take back the other files only (--partial)"
    return first if later else f"{first}, in the program that made it"


def _explains(later: Sequence[LaterChange], path: str, current: str | None) -> bool:
    """Return whether the newest of the later changes left a file as it is now."""
    newest = next((one.change for one in later if path in one.paths), None)
    if newest is None:
        return False
    if current is None:  # it removed the file, or gave it another name
        return all(file.after_path != path for file in newest.files)
    return any(file.after_hash == current for file in newest.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Result of an undo."""

    applied: Applied
    """The undo as a change; undoing it makes the changes again."""
    changes: tuple[str, ...]
    """Ids of what was taken back, newest first."""
    left: tuple[Conflict, ...]
    """Files that were left alone because they were changed meanwhile; only a partial undo has any."""


def undo(
    state: State,
    selector: Selector,
    meta: ChangeMeta,
    *,
    partial: bool = False,
    checked: Sequence[Change] | None = None,
) -> Undone:
    """Restore the files of some changes to their state before.

    Folders that the changes made are removed if they are empty now; files in the system's trash are written again.

    Args:
        state: The vault's.
        selector: Which changes.
        meta: Who and why; its ``undoes`` is filled in.
        partial: True takes back what it can and leaves files that were changed since.
        checked: The changes that the rules were checked for, so that only these are taken back; None selects them now.

    Raises:
        NotFound: Nothing fits the selector, or the journal had to drop it.
        BadInput: The change was undone already.
        ConflictError: Files were changed since (each in ``details["conflicts"]``), or the journal had to drop some of
            the changes (code ``pruned``); nothing was done.
    """
    changes = checked if checked is not None else select_changes(state.journal, selector, partial=partial)
    effects_to_apply = list(inverse_effects(state.journal, changes))
    conflicts: tuple[Conflict, ...] = ()
    if partial:
        effects_to_apply, conflicts = _leave_out_conflicts(state, effects_to_apply)
    ids = tuple(change.id for change in changes)
    reason = meta.reason or f"undo of {', '.join(ids[:3])}{' and more' if len(ids) > 3 else ''}"
    applied = apply.apply_effects(state, effects_to_apply, replace(meta, reason=reason, undoes=ids))
    pruned = [] if isinstance(selector, Last) else find_lost(state.journal, selector)
    if pruned:
        applied = replace(applied, notices=(*applied.notices, describe_lost(pruned)))
    return Undone(applied=applied, changes=ids, left=conflicts)


def inverse_effects(journal: Journal, changes: Iterable[Change]) -> Iterable[Effect]:
    """Return the effects that take changes back, in order.

    Args:
        journal: Has the contents.
        changes: Newest first.

    Raises:
        NotFound: A content was pruned.
    """
    for change in changes:
        for step in reversed(change.steps):
            source, target = step.source, step.target
            match step.kind:
                case "replace":
                    yield plan.Write(path=target, base=step.after, content=journal.content(step.before or ""))
                case "create":
                    yield plan.Remove(path=target, base=step.after or "")
                case "remove" | "discard":
                    yield plan.Write(path=source, content=journal.content(step.before or ""), mode=step.mode)
                case "move":
                    yield plan.Rename(source=target, target=source, base=None if step.is_folder else step.after)
                case "mkdir":
                    yield plan.RemoveFolder(path=target, keep_filled=True)
                case "rmdir":
                    yield plan.MakeFolder(path=source, mode=step.mode)


def fits_in_part(state: State, changes: Sequence[Change]) -> bool:
    """Return whether a partial undo of changes would take something back."""
    try:
        _ = _leave_out_conflicts(state, list(inverse_effects(state.journal, changes)))
    except ConflictError:
        return False
    return True


def _leave_out_conflicts(state: State, requested: Sequence[Effect]) -> tuple[list[Effect], tuple[Conflict, ...]]:
    """Leave out effects that don't fit the files, then those that depend on them, until the rest fits."""
    remaining, conflicts = list(requested), list[Conflict]()
    while True:
        planned = apply.plan_effects(state, remaining)
        if not planned.conflicts:
            break
        conflicts.extend(planned.conflicts)
        misfits = {conflict.effect for conflict in planned.conflicts}
        remaining = [effect for number, effect in enumerate(remaining) if number not in misfits]
    if not apply.plan_effects(state, remaining).steps:
        plan.check_conflicts(plan.ChangePlan(conflicts=conflicts))
    return remaining, tuple({conflict.path: conflict for conflict in conflicts}.values())
