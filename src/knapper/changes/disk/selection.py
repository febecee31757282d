"""Choose the changes that an undo takes back."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from knapper.changes.disk import history
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.records import Change
from knapper.errors import BadInput, NotFound

_HOLDS = "phase IN ('applied', 'done') AND undone = 0"
_NO_UNDO = "NOT EXISTS (SELECT 1 FROM undoes WHERE undoes.change = changes.id)"
_BACKWARDS = "ORDER BY seq DESC"
_UNDOS = "(SELECT change FROM undoes WHERE undone = :id)"
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


def changes(journal: Journal, selector: Selector) -> list[Change]:
    """Give the changes that a selector means and that still hold, newest first.

    Raises:
        NotFound: There is none.
        BadInput: The one change was undone already.
    """
    found = _found(journal, selector)
    if not found:
        raise NotFound("there is nothing to undo", hint="list the journal for what was changed")
    return found


def _found(journal: Journal, selector: Selector) -> list[Change]:
    match selector:
        case Last():
            return journal.select(f"{_MINE} LIMIT 1")
        case One():
            return [_one(journal, selector.change_id)]
        case OfProposal():
            return journal.select(f"proposal = :proposal AND {_MINE}", {"proposal": selector.proposal})
        case OfRun():
            return journal.select(f"run = :run AND {_MINE}", {"run": selector.run})
        case Since():
            return _since(journal, selector.at)


def _one(journal: Journal, change_id: str) -> Change:
    change = journal.show(change_id)
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
