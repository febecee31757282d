"""Choose the changes that an undo takes back."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, TypeAlias

from knapper.changes.disk import history
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.pruning import Pruned
from knapper.changes.disk.records import Change
from knapper.errors import BadInput, ConflictError, NotFound

_HOLDS = "phase IN ('applied', 'done') AND undone = 0"
_NO_UNDO = "NOT EXISTS (SELECT 1 FROM undoes WHERE undoes.change = changes.id)"
_BACKWARDS = "ORDER BY seq DESC"
_UNDOS = "(SELECT change FROM undoes WHERE undone = :id)"
_LIMITS: Final = "it keeps what the settings journal.max_mb and journal.max_age_days leave room for"
_SHOWN: Final = 20
_MAX_SHOWN: Final = 80
"""Characters of an id that are told again."""
_STRETCH: Final = 200
_MINE = f"{_HOLDS} AND {_NO_UNDO} {_BACKWARDS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The newest change that still holds and is no undo itself; asked twice, it takes back two changes."""


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


def _every(_: Change) -> bool:
    return True


def changes(
    journal: Journal, selector: Selector, *, partial: bool = False, sees: Callable[[Change], bool] = _every
) -> list[Change]:
    """Give the changes that a selector means and that still hold, newest first.

    Args:
        journal: Where they are.
        selector: Which.
        partial: True gives those that the journal still has of what is meant.
        sees: Tells of a change whether whoever asks may know of it; others are as if they weren't there.

    Raises:
        NotFound: There is none, or the journal had to drop it (code ``pruned``).
        ConflictError: The journal had to drop some of them (code ``pruned``), and *partial* wasn't asked for.
        BadInput: The one change was undone already.
    """
    gone = lost(journal, selector)
    if gone and (isinstance(selector, One) or not (partial or isinstance(selector, Last))):
        raise _pruned(journal, selector, gone)
    found = _found(journal, selector, sees)
    if not found:
        more = ": the journal had to drop all that there was" if gone else ""
        hint = _LIMITS if gone else "list the journal for what was changed"
        raise NotFound(f"there is nothing to undo{_said(selector)}{more}", hint=hint, code="pruned" if gone else None)
    return found


def _said(selector: Selector) -> str:
    """Say what was asked for, where it isn't the last change."""
    match selector:
        case OfRun():
            return f" of the run '{selector.run[:_MAX_SHOWN]}'"
        case OfProposal():
            return f" of the proposal '{selector.proposal[:_MAX_SHOWN]}'"
        case Since():
            return f" since {selector.at.isoformat(timespec='minutes')}"
        case _:
            return ""


def lost(journal: Journal, selector: Selector) -> list[Pruned]:
    """List the changes that a selector means, but that the journal had to drop for its size or their age."""
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
            return journal.pruned("held AND at >= :at", {"at": history.moment(selector.at)})


def told(gone: Sequence[Pruned]) -> str:
    """Say what can't be taken back any more."""
    if len(gone) == 1:
        return f"change '{gone[0].id}' of {gone[0].at[:10]} isn't in the journal any more"
    return f"{len(gone)} changes up to {gone[0].at[:10]} aren't in the journal any more"


def _pruned(journal: Journal, selector: Selector, gone: Sequence[Pruned]) -> NotFound | ConflictError:
    details = {"pruned": [one.id for one in gone[:_SHOWN]]}
    said = f"{told(gone)}, so that this can't be taken back"
    if isinstance(selector, One) or not _found(journal, selector, _every):
        return NotFound(said, hint=_LIMITS, code="pruned", details=details)
    hint = f"a partial undo takes back the rest; {_LIMITS}"
    return ConflictError(f"{said} as a whole; nothing was done", hint=hint, code="pruned", details=details)


def _found(journal: Journal, selector: Selector, sees: Callable[[Change], bool]) -> list[Change]:
    match selector:
        case Last():
            return list(islice(filter(sees, _backwards(journal)), 1))
        case One():
            return [_one(journal, selector.change_id, sees)]
        case OfProposal():
            found = journal.select(f"proposal = :proposal AND {_MINE}", {"proposal": selector.proposal})
        case OfRun():
            found = journal.select(f"run = :run AND {_MINE}", {"run": selector.run})
        case Since():
            found = _since(journal, selector.at)
    return list(filter(sees, found))


def _backwards(journal: Journal) -> Iterator[Change]:
    offset, limit = 0, 1  # nearly always the first is meant
    while found := journal.select(f"{_MINE} LIMIT :limit OFFSET :offset", {"limit": limit, "offset": offset}):
        yield from found
        offset, limit = offset + limit, _STRETCH


def _one(journal: Journal, change_id: str, sees: Callable[[Change], bool]) -> Change:
    change = journal.show(change_id)
    if not sees(change):
        raise journal.missing(change_id)
    if change.undone:
        later = journal.select(f"id IN {_UNDOS} AND {_HOLDS} {_BACKWARDS}", {"id": change_id})
        hint = f"to have it again, undo {later[0].id}" if later else "list the journal for what took it back"
        raise BadInput(f"change '{change_id}' was undone already", code="already_undone", hint=hint)
    return change


def _since(journal: Journal, at: datetime) -> list[Change]:
    """Leave pairs out of which both halves are new: an undone change, and the undo that took it back."""
    found = journal.select(f"phase IN ('applied', 'done') AND at >= :at {_BACKWARDS}", {"at": history.moment(at)})
    new = {change.id for change in found}
    return [change for change in found if not change.undone and not (change.undoes and new.issuperset(change.undoes))]
