"""Open a vault's state, and bring what a kill cut short to its end or back to its beginning."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from knapper.changes.disk import acts, atomic, journal, lock, transaction
from knapper.changes.disk.files import Files
from knapper.changes.disk.records import Change
from knapper.changes.disk.site import Site
from knapper.changes.disk.state import LOCK_TIMEOUT_S, TRASH_LIMIT_BYTES, State
from knapper.errors import ConflictError, StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Say what became of a change that a kill or a failure had cut short."""

    change_id: str
    outcome: Literal["finished", "taken back"]
    paths: tuple[str, ...]
    notices: tuple[str, ...]
    """What an editor had saved meanwhile, and where it is."""

    @property
    def told(self) -> str:
        """Tell it in a sentence."""
        return f"change {self.change_id}, which was cut short, is {self.outcome}: {', '.join(self.paths)}"


def open_state(
    root: Path,
    folder: Path,
    *,
    files: Files | None = None,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    trash_limit: int = TRASH_LIMIT_BYTES,
) -> tuple[State, list[Recovered]]:
    """Open what writes to a vault need, and recover unless another process is writing right now.

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
        folder.mkdir(parents=True, exist_ok=True)
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
        return state, _recover_if_free(state)
    except BaseException:
        state.journal.shut()
        raise


def unfinished(state: State) -> list[Recovered]:
    """Finish or take back what was cut short; the caller holds the lock, so whoever began it is dead or gave up.

    Raises:
        StorageError: The disk refuses; nothing else may be written until it doesn't.
    """
    return [_recover(state, change) for change in state.journal.unfinished()]


def strays(state: State) -> list[Path]:
    """List temp files that no change of this journal explains: another machine's, or left by a power cut.

    Nobody but a person can tell which, so they are only listed.
    """
    known = {Path(step.temp).name for change in state.journal.unfinished() for step in change.steps}
    return sorted(path for path in state.root.rglob(f"{atomic.PREFIX}*") if path.name not in known)


def _recover_if_free(state: State) -> list[Recovered]:
    if not state.journal.unfinished():
        return []
    try:
        with lock.hold(state.folder, timeout_s=0):
            return unfinished(state)
    except ConflictError:
        return []  # its writer is alive


def _recover(state: State, change: Change) -> Recovered:
    here = transaction.site(state)
    try:
        outcome = _settle(state, here, change)
    except OSError as error:
        raise StorageError(
            f"change {change.id} was cut short and can't be taken back: {error}",
            code="unfinished",
            hint="mend the cause, then start again",
        ) from error
    paths = tuple(dict.fromkeys(step.path for step in change.steps))
    return Recovered(change_id=change.id, outcome=outcome, paths=paths, notices=tuple(here.notices))


def _settle(state: State, here: Site, change: Change) -> Literal["finished", "taken back"]:
    for step in change.steps:
        if step.temp:
            here.files.mend(here.at(step.temp))  # before all of them are looked at
    if change.phase == "ready" and all(acts.is_done(here, step) for step in change.steps):
        transaction.sync_folders(here, change.steps)
        state.journal.applied(change.id)
    elif change.phase != "applied":
        transaction.roll_back(here, change.steps, tried=len(change.steps) if change.phase == "ready" else 0)
        state.journal.forget(change.id)
        return "taken back"
    for step in change.steps:
        acts.finish(here, step)
    state.journal.close(change.id)
    return "finished"
