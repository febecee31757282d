"""Application of effects to a vault as one change, and recovery after a kill."""

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from knapper.changes.disk import files, journal, marker, plan, storage, transaction
from knapper.changes.disk.files import Files
from knapper.changes.disk.journal import Change
from knapper.changes.disk.plan import ChangeMeta, ChangePlan, Effect, FileResult
from knapper.changes.disk.planner import Planner
from knapper.changes.disk.transaction import LOCK_TIMEOUT_S, TRASH_LIMIT_BYTES, ExecutionContext, State
from knapper.errors import ConflictError, StorageError
from knapper.system import private


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Outcome of recovering a change that a kill or a failure had interrupted."""

    change_id: str
    outcome: Literal["finished", "taken back"]
    paths: tuple[str, ...]
    notices: tuple[str, ...]
    """What an editor saved meanwhile, and where it is kept."""

    @property
    def summary(self) -> str:
        """Return the outcome in one sentence."""
        return f"change {self.change_id}, which was cut short, is {self.outcome}: {', '.join(self.paths)}"


def open_state(
    root: Path,
    folder: Path,
    *,
    files: Files | None = None,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    trash_limit: int = TRASH_LIMIT_BYTES,
) -> tuple[State, list[Recovered]]:
    """Open the state that writing to a vault needs, and recover unless another process is writing right now.

    Args:
        root: The vault's folder.
        folder: Its state folder, outside the vault; made if missing.
        files: The file operations; None for the real ones.
        lock_timeout_s: Seconds that a write waits for another one.
        trash_limit: Bytes above which a file goes to the vault's trash even if the system's is asked for.

    Raises:
        StorageError: The state can't be opened, or an unfinished change can't be taken back.
    """
    try:
        private.make_folder(folder)
        real = root.resolve(strict=True)
    except OSError as error:
        raise StorageError(f"'{error.filename}' can't be opened: {error.strerror}", hint="check the path") from error
    state = State(
        root=real,
        folder=folder,
        journal=journal.open_journal(folder),
        files=files or Files(),
        lock_timeout_s=lock_timeout_s,
        trash_limit=trash_limit,
    )
    try:
        return state, recover_if_free(state)
    except BaseException:
        state.journal.shut()
        raise


def recover_unfinished(state: State) -> list[Recovered]:
    """Finish or take back interrupted changes; the caller holds the lock, so their writers are dead or gave up.

    Raises:
        StorageError: The disk refuses; nothing else may be written until this succeeds.
    """
    recovered = [_recover(state, change) for change in state.journal.unfinished()]
    if marker.is_set(state.folder):
        try:
            marker.remove(state.folder)
        except OSError as error:
            raise files.storage_error(error, marker.MARKER_FILE) from error
    return recovered


def find_stray_temp_files(state: State) -> list[Path]:
    """Return temp files that no change of this journal explains: another machine's, or left by a power cut.

    Only a person can tell which, so they are only listed.
    """
    known = {Path(step.temp).name for change in state.journal.unfinished() for step in change.steps}
    return sorted(path for path in state.root.rglob(f"{files.TEMP_PREFIX}*") if path.name not in known)


def recover_if_free(state: State) -> list[Recovered]:
    """Finish or take back interrupted changes, unless another process or thread is writing right now.

    Raises:
        StorageError: The disk refuses.
    """
    # What can't be recorded can't be settled either; readers are told so by the marker.
    if state.journal.is_read_only or not (marker.is_set(state.folder) or state.journal.unfinished()):
        return []
    try:
        with storage.hold_write_lock(state.folder, timeout_s=0):
            return recover_unfinished(state)
    except ConflictError:
        # The lock is held, so the writer of the unfinished change is alive.
        return []


def _recover(state: State, change: Change) -> Recovered:
    context = transaction.make_context(state)
    try:
        outcome = _finish_or_take_back(state, context, change)
    except OSError as error:
        raise StorageError(
            f"change {change.id} was cut short and can't be taken back: {error}",
            code="unfinished",
            hint="mend the cause, then start again",
        ) from error
    paths = tuple(dict.fromkeys(step.path for step in change.steps))
    return Recovered(change_id=change.id, outcome=outcome, paths=paths, notices=tuple(context.notices))


def _finish_or_take_back(state: State, context: ExecutionContext, change: Change) -> Literal["finished", "taken back"]:
    # Interrupted exchanges are completed first: `is_step_done` expects each file under its own name or its temp name.
    for step in change.steps:
        if step.temp:
            context.files.mend(context.at(step.temp))
    if change.phase == "ready" and all(transaction.is_step_done(context, step) for step in change.steps):
        transaction.sync_folders(context, change.steps)
        state.journal.applied(change.id)
    elif change.phase != "applied":
        transaction.roll_back(context, change.steps, tried=len(change.steps) if change.phase == "ready" else 0)
        state.journal.forget(change.id)
        return "taken back"
    for step in change.steps:
        transaction.finish_step(context, step)
    state.journal.close(change.id)
    return "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Result of an applied change."""

    change_id: str
    """Empty if the files were as wanted already, so that nothing was written."""
    files: tuple[FileResult, ...]
    notices: tuple[str, ...]
    """What a person should know: a file that went to another trash, what an editor saved meanwhile, the outcome of a
    change that an earlier process left unfinished."""


def apply_effects(state: State, effects: Sequence[Effect], meta: ChangeMeta) -> Applied:
    """Apply effects in order, as one change.

    Args:
        state: The vault's.
        effects: Each is planned against the result of those before it.
        meta: Who and why.

    Raises:
        BadInput: An effect makes no sense.
        ConflictError: A file isn't what an effect was made against (``details["conflicts"]`` has each with its current
            hash), an editor saved meanwhile, or another process writes.
        RefusedError: A symbolic link leads out of the vault.
        StorageError: The disk refused, or a file is read-only. Nothing was changed.
    """
    with hold_lock(state) if not state.is_locked else contextlib.nullcontext():
        # An interrupted change comes first: the plan has to see its final files.
        earlier = [notice for one in recover_unfinished(state) for notice in (one.summary, *one.notices)]
        change_id = plan.make_id()
        planned = plan_effects(state, effects, change_id=change_id)
        plan.check_conflicts(planned)
        if not planned.steps:
            return Applied(change_id="", files=(), notices=(*earlier, *planned.notices))
        notices = transaction.commit(state, planned, meta, change_id=change_id)
    return Applied(change_id=change_id, files=plan.file_results(planned.steps), notices=(*earlier, *notices))


@contextlib.contextmanager
def hold_lock(state: State) -> Generator[State]:
    """Acquire the vault's write lock until the block ends, so that what it reads is current when it writes.

    Yields:
        The state to write with inside the block.

    Raises:
        ConflictError: Another writer held the vault's lock until the time-out.
        StorageError: The lock's file can't be made.
    """
    with storage.hold_write_lock(state.folder, timeout_s=state.lock_timeout_s):
        yield replace(state, is_locked=True)


def plan_effects(state: State, effects: Sequence[Effect], *, change_id: str = "") -> ChangePlan:
    """Return the plan for effects, without writing anything; conflicts are listed in the plan.

    Raises:
        BadInput: An effect makes no sense.
        RefusedError: A symbolic link leads out of the vault.
        StorageError: A file can't be read, or is read-only.
    """
    planner = Planner(state.root, state.files, change_id=change_id, trash_limit=state.trash_limit)
    return planner.read(effects)
