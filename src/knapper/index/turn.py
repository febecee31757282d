"""Let one process at a time bring the index up to date; the others read what is there."""

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from knapper.errors import StorageError

_BEAT_S = 10.0
"""A watcher whose sign of life is older than this counts as gone."""


@contextmanager
def take(folder: Path, *, wait_s: float) -> Generator[bool]:
    """Take the turn to write for the time of the block.

    Args:
        folder: The index's folder.
        wait_s: How long to wait for another process, in seconds; negative waits for ever.

    Yields:
        Whether this process has the turn.

    Raises:
        StorageError: The folder can't be written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 15 ms that only a write should cost

    lock = FileLock(folder / "index.lock")
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise StorageError(
            f"the index {folder} can't be locked: {error.strerror}",
            hint="check the folder's permissions and free space",
        ) from error
    try:
        yield True
    finally:
        lock.release()


def is_taken(folder: Path) -> bool:
    """Tell whether somebody has the turn right now; an index that can't be locked is nobody's."""
    try:
        with take(folder, wait_s=0) as mine:
            return not mine
    except StorageError:
        return False


def beat(folder: Path) -> None:
    """Leave a watcher's sign of life; where the index is just being deleted, there is none until it is back."""
    with suppress(FileNotFoundError):
        (folder / "watch.beat").touch()


def stop_beating(folder: Path) -> None:
    """Take the sign of life away."""
    (folder / "watch.beat").unlink(missing_ok=True)


def is_watched(folder: Path) -> bool:
    """Tell whether some process follows the vault's changes right now."""
    try:
        return abs(time.time() - (folder / "watch.beat").stat().st_mtime) < _BEAT_S  # a clock may be set back
    except FileNotFoundError:
        return False
