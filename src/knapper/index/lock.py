"""Let one process at a time bring the index up to date; the others read what is there."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from knapper.errors import StorageError

_HEARTBEAT_TIMEOUT_S = 10.0
"""A watcher whose sign of life is older than this counts as gone."""


class WriteLock:
    """Stand in line for the right to write one index: the threads of a process first, then the processes."""

    def __init__(self, folder: Path) -> None:
        """Stand in line for the index in *folder*."""
        self._folder = folder
        self._thread_lock = threading.Lock()

    @contextmanager
    def acquire(self, *, wait_s: float) -> Generator[bool]:
        """Take the turn to write for the time of the block.

        Args:
            wait_s: How long to wait for another thread or process, in seconds; negative waits for ever.

        Yields:
            Whether the turn is this thread's.

        Raises:
            StorageError: The folder can't be written.
        """
        deadline = time.monotonic() + wait_s
        if not self._thread_lock.acquire(timeout=wait_s if wait_s >= 0 else -1):
            yield False
            return
        try:
            with acquire_process_lock(
                self._folder, wait_s=max(deadline - time.monotonic(), 0) if wait_s >= 0 else -1
            ) as is_acquired:
                yield is_acquired
        finally:
            self._thread_lock.release()

    @property
    def is_held(self) -> bool:
        """Return whether somebody has the turn right now; an index that can't be locked is nobody's."""
        try:
            with self.acquire(wait_s=0) as is_acquired:
                return not is_acquired
        except StorageError:
            return False


@contextmanager
def acquire_process_lock(folder: Path, *, wait_s: float) -> Generator[bool]:
    """Take the turn from all other processes for the time of the block.

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


def write_heartbeat(folder: Path) -> None:
    """Leave a watcher's sign of life; where the index is just being deleted, there is none until it is back."""
    with suppress(FileNotFoundError):
        (folder / "watch.beat").touch()


def remove_heartbeat(folder: Path) -> None:
    """Take the sign of life away."""
    (folder / "watch.beat").unlink(missing_ok=True)


def is_watched(folder: Path) -> bool:
    """Return whether some process follows the vault's changes right now."""
    try:
        # A clock may be set back
        return abs(time.time() - (folder / "watch.beat").stat().st_mtime) < _HEARTBEAT_TIMEOUT_S
    except FileNotFoundError:
        return False
