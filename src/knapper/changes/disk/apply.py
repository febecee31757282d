"""Apply effects to a vault: all of them or none, durably, and written down."""

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from knapper.changes.disk import ids, lock, plan, recover, steps, transaction
from knapper.changes.disk.effects import Effect, Meta
from knapper.changes.disk.plan import Plan
from knapper.changes.disk.planner import Planner
from knapper.changes.disk.state import State
from knapper.changes.disk.steps import FileResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Say what was done."""

    change_id: str
    """Empty if the files were as wanted already, so that nothing was done."""
    files: tuple[FileResult, ...]
    notices: tuple[str, ...]
    """What a person should know: a file that went to another trash, what an editor saved meanwhile, what became of a
    change that an earlier process had left unfinished."""


def apply(state: State, effects: Sequence[Effect], meta: Meta) -> Applied:
    """Do effects in order, as one change.

    Args:
        state: The vault's.
        effects: Each is read against what those before it leave.
        meta: Who and why.

    Raises:
        BadInput: An effect makes no sense.
        ConflictError: A file isn't what an effect was made against (``details["conflicts"]`` has each with its current
            hash), an editor saved meanwhile, or another process writes.
        RefusedError: A symbolic link leads out of the vault.
        StorageError: The disk refused, or a file is read-only. Nothing was changed.
    """
    with hold(state) if not state.is_held else contextlib.nullcontext():
        earlier = [notice for one in recover.unfinished(state) for notice in (one.told, *one.notices)]
        change_id = ids.make()
        planned = check(state, effects, change_id=change_id)
        plan.check(planned)
        if not planned.steps:
            return Applied(change_id="", files=(), notices=(*earlier, *planned.notices))
        notices = transaction.commit(state, planned, meta, change_id=change_id)
    return Applied(change_id=change_id, files=steps.results(planned.steps), notices=(*earlier, *notices))


@contextlib.contextmanager
def hold(state: State) -> Generator[State]:
    """Keep all others from writing until the block ends, so that what is read in it is so when it is written.

    Yields:
        The state to write with meanwhile.

    Raises:
        ConflictError: Another writer has the vault's lock all the time.
        StorageError: The lock's file can't be made.
    """
    with lock.hold(state.folder, timeout_s=state.lock_timeout_s):
        yield replace(state, is_held=True)


def check(state: State, effects: Sequence[Effect], *, change_id: str = "") -> Plan:
    """Plan effects without doing anything; conflicts are listed in the plan.

    Raises:
        BadInput: An effect makes no sense.
        RefusedError: A symbolic link leads out of the vault.
        StorageError: A file can't be read, or is read-only.
    """
    planner = Planner(state.root, state.files, change_id=change_id, trash_limit=state.trash_limit)
    return planner.read(effects)
