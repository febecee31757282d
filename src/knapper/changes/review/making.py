"""Make proposals of drafts."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from knapper.changes.disk import ids
from knapper.changes.disk.effects import Meta
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.review import hunking, proposal_records
from knapper.changes.review.proposal_records import Proposal
from knapper.vault.access import EMPTY_SCOPE, Scope

DAYS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Say why and how long a draft waits."""

    why: str = ""
    """What the rules said."""
    tainted: bool = False
    """Whether the client has read text that others wrote."""
    days: float = DAYS
    scope: Scope = EMPTY_SCOPE
    """The notes that the client's editable scope comes to."""
    supersedes: str = ""
    """The proposal that this one takes the place of."""
    behalf: str = ""
    """The program for which an agent asks; empty where there is none."""


def make(draft: Draft, meta: Meta, note: Note, now: datetime) -> Proposal:
    """Cut a draft into what can be accepted by itself; files that stay what they are aren't part of it.

    Args:
        draft: What would happen.
        meta: Who wants it, and why.
        note: Why and how long it waits.
        now: From when on it waits.
    """
    name = ids.make()
    created = now.replace(microsecond=now.microsecond // 1000 * 1000)  # as exactly as it is kept
    return proposal_records.sealed(
        Proposal(
            id=name,
            client=meta.client,
            run=meta.run,
            created=created,
            expires=created + timedelta(days=note.days),
            status="open",
            reason=meta.reason,
            why=note.why,
            tainted=note.tainted,
            by_query=draft.by_query,
            files=tuple(hunking.cut(one, number, name) for number, one in enumerate(_changed(draft), start=1)),
            folders=draft.folders,
            notices=draft.notices,
            rewritten=draft.rewritten,
            scope=note.scope,
            behalf=note.behalf,
        )
    )


def _changed(draft: Draft) -> list[FileDraft]:
    return [one for one in draft.files if one.trash or one.target or one.before is None or one.before != one.after]
