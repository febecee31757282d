"""Propose, accept and look, as the one door of writing does it."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from knapper.changes.disk import apply
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Cause, Draft, FileDraft
from knapper.changes.proposals.model import Proposal
from knapper.changes.proposals.parts import Selection
from knapper.changes.proposals.store import Proposals
from knapper.errors import KnapError
from knapper.vault.paths import NotePath

META = ChangeMeta(client="agent", run="run-1", reason="tidy up")


class Clock:
    """Tells a time that a test moves on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)


def edit(path: str, before: bytes, after: bytes, *, cause: Cause = "asked", requests: Iterable[int] = ()) -> FileDraft:
    return FileDraft(
        path=NotePath(path),
        base=hash_content(before),
        before=before,
        after=after,
        needs=frozenset({"add", "delete"}),
        cause=cause,
        requests=frozenset(requests),
    )


def create(path: str, content: bytes) -> FileDraft:
    return FileDraft(path=NotePath(path), base=None, after=content, needs=frozenset({"create"}))


def move(path: str, target: str, before: bytes, after: bytes | None = None, *, request: int = 0) -> FileDraft:
    return FileDraft(
        path=NotePath(path),
        base=hash_content(before),
        before=before,
        after=before if after is None else after,
        target=NotePath(target),
        needs=frozenset({"move"}),
        requests=frozenset({request}),
    )


def trash(path: str, before: bytes) -> FileDraft:
    return FileDraft(
        path=NotePath(path), base=hash_content(before), before=before, trash="vault", needs=frozenset({"delete"})
    )


def propose(store: Proposals, *files: FileDraft) -> Proposal:
    return store.save(Draft(files=files), META)


def look(root: Path, proposal: Proposal) -> dict[NotePath, bytes | None]:
    """Read all that a proposal is about."""
    places = [place for file in proposal.files for place in (file.path, file.place)]
    return {place: (root / place).read_bytes() if (root / place).is_file() else None for place in places}


def do(state: State, selection: Selection) -> str:
    """Apply a selection, and give the change's id."""
    meta = ChangeMeta(client="cli", proposal=selection.proposal)
    return apply.apply_effects(state, list(selection.draft.effects()), meta).change_id


def accept(
    state: State,
    store: Proposals,
    proposal: Proposal,
    *,
    files: Collection[str] = (),
    hunks: Collection[str] = (),
) -> Proposal:
    """Fit, select, apply and mark."""
    now = store.rebase(proposal.id, look(state.root, proposal))
    selection = store.select(proposal.id, now.digest, files=files, hunks=hunks)
    try:
        change = do(state, selection)
    except KnapError:
        store.abandon(selection)
        raise
    return store.mark_accepted(selection, change)
