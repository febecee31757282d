"""Take changes back, as a change of its own that can be taken back too."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from knapper.changes.disk import apply as applying
from knapper.changes.disk import effects, plan, selection
from knapper.changes.disk.apply import Applied
from knapper.changes.disk.effects import Effect, Meta
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import Conflict
from knapper.changes.disk.records import Change
from knapper.changes.disk.selection import Last, Selector
from knapper.changes.disk.state import State
from knapper.changes.disk.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Say what was taken back."""

    applied: Applied
    """The undo as a change; undo its id to have everything again."""
    changes: tuple[str, ...]
    """Ids of what was taken back, newest first."""
    left: tuple[Conflict, ...]
    """Files that stayed, since they were changed meanwhile; empty unless a partial undo was asked for."""


def undo(
    state: State, selector: Selector, meta: Meta, *, partial: bool = False, checked: Sequence[Change] | None = None
) -> Undone:
    """Bring the files of some changes back to what they were before.

    Folders that the changes made are removed where they are empty now; what went to the system's trash is written anew.

    Args:
        state: The vault's.
        selector: Which changes.
        meta: Who and why; its ``undoes`` is filled in.
        partial: True takes back what it can and leaves files that were changed since.
        checked: What the selector gave when the rules were asked, so that just that is taken back; None asks anew.

    Raises:
        NotFound: Nothing fits the selector, or the journal had to drop it.
        BadInput: The change was undone already.
        ConflictError: Files were changed since (each in ``details["conflicts"]``), or the journal had to drop some of
            the changes (code ``pruned``); nothing was done.
    """
    changes = checked if checked is not None else selection.changes(state.journal, selector, partial=partial)
    wanted = list(inverse(state.journal, changes))
    left: tuple[Conflict, ...] = ()
    if partial:
        wanted, left = _possible(state, wanted)
    ids = tuple(change.id for change in changes)
    reason = meta.reason or f"undo of {', '.join(ids[:3])}{' and more' if len(ids) > 3 else ''}"
    applied = applying.apply(state, wanted, replace(meta, reason=reason, undoes=ids))
    gone = [] if isinstance(selector, Last) else selection.lost(state.journal, selector)
    if gone:
        applied = replace(applied, notices=(*applied.notices, selection.told(gone)))
    return Undone(applied=applied, changes=ids, left=left)


def inverse(journal: Journal, changes: Iterable[Change]) -> Iterable[Effect]:
    """Give the effects that take changes back, in order.

    Args:
        journal: Has the contents.
        changes: Newest first.

    Raises:
        NotFound: A content was pruned.
    """
    for change in changes:
        for step in reversed(change.steps):
            yield _inverse(journal, step)


def _inverse(journal: Journal, step: Step) -> Effect:
    source, target = step.source, step.target
    match step.kind:
        case "replace":
            return effects.Write(path=target, base=step.after, content=journal.content(step.before or ""))
        case "create":
            return effects.Remove(path=target, base=step.after or "")
        case "remove" | "discard":
            return effects.Write(path=source, content=journal.content(step.before or ""), mode=step.mode)
        case "move":
            return effects.Rename(source=target, target=source, base=None if step.is_folder else step.after)
        case "mkdir":
            return effects.RemoveFolder(path=target, keep_filled=True)
        case "rmdir":
            return effects.MakeFolder(path=source, mode=step.mode)


def _possible(state: State, wanted: Sequence[Effect]) -> tuple[list[Effect], tuple[Conflict, ...]]:
    """Leave out what doesn't fit the files, then what was to follow on it, until the rest fits."""
    rest, left = list(wanted), list[Conflict]()
    while True:
        planned = applying.check(state, rest)
        if not planned.conflicts:
            break
        left.extend(planned.conflicts)
        misfits = {conflict.effect for conflict in planned.conflicts}
        rest = [effect for number, effect in enumerate(rest) if number not in misfits]
    if not applying.check(state, rest).steps:
        plan.check(plan.Plan(conflicts=left))
    return rest, tuple({conflict.path: conflict for conflict in left}.values())
