"""Let one process at a time carry out a run, and tell whether one does."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from knapper.errors import ConflictError

FOLDER: Final = "runs"
_PATIENCE_S: Final = 0.3
"""Whoever looks whether a run goes on holds it for a moment, too."""
_LOOK_S: Final = 0.02


@contextmanager
def hold(folder: Path, run_id: str, *, wait_s: float = _PATIENCE_S) -> Generator[None]:
    """Hold a run; the system lets go of it where the process ends.

    Args:
        folder: The vault's state folder, which exists.
        run_id: Of a run that exists.
        wait_s: How long to try.

    Raises:
        ConflictError: Somebody carries it out (code ``run_busy``).
    """
    lock = FileLock(_place(folder, run_id), thread_local=False)
    try:
        lock.acquire(timeout=wait_s, poll_interval=_LOOK_S)
    except Timeout:
        raise ConflictError(
            f"the run {run_id} goes on already", hint=f"`knap run cancel {run_id}` ends it", code="run_busy"
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_held(folder: Path, run_id: str) -> bool:
    """Tell whether somebody carries a run out right now."""
    try:
        with hold(folder, run_id, wait_s=2 * _LOOK_S):
            return False
    except ConflictError:
        return True


def _place(folder: Path, run_id: str) -> Path:
    within = folder / FOLDER
    within.mkdir(exist_ok=True)
    return within / f"{run_id}.lock"
