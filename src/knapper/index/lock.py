"""The index's write lock, across threads and processes, and the watcher's heartbeat."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from knapper.errors import StorageError

_HEARTBEAT_TIMEOUT_S = 10.0
"""A watcher whose last heartbeat is older than this counts as ended."""


class WriteLock:
    """The lock for writing one index, among the threads of this process and among processes."""

    def __init__(self, folder: Path) -> None:
        """Use the lock of the index in *folder*."""
        self._folder = folder
        self._thread_lock = threading.Lock()

    @contextmanager
    def acquire(self, *, wait_s: float) -> Generator[bool]:
        """Hold the write lock for the block.

        Args:
            wait_s: How long to wait for another thread or process, in seconds; negative waits without limit.

        Yields:
            Whether the lock was acquired.

        Raises:
            StorageError: The folder can't be written.
        """
        deadline = time.monotonic() + wait_s
        # Threads first, then processes: only one thread of this process competes for the file lock.
        if not self._thread_lock.acquire(timeout=wait_s if wait_s >= 0 else -1):
            yield False
            return
        try:
            # Both waits share one deadline.
            with acquire_process_lock(
                self._folder, wait_s=max(deadline - time.monotonic(), 0) if wait_s >= 0 else -1
            ) as is_acquired:
                yield is_acquired
        finally:
            self._thread_lock.release()

    @property
    def is_held(self) -> bool:
        """Return whether the lock is held right now; false where the folder can't be locked."""
        try:
            with self.acquire(wait_s=0) as is_acquired:
                return not is_acquired
        except StorageError:
            return False


@contextmanager
def acquire_process_lock(folder: Path, *, wait_s: float) -> Generator[bool]:
    """Hold the lock among processes for the block.

    Args:
        folder: The index's folder.
        wait_s: How long to wait for another process, in seconds; negative waits without limit.

    Yields:
        Whether the lock was acquired.

    Raises:
        StorageError: The folder can't be written.
    """
    # Imported here, as most commands only read.
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
    """Write a watcher's heartbeat; does nothing while the index's folder is deleted."""
    with suppress(FileNotFoundError):
        (folder / "watch.beat").touch()


def remove_heartbeat(folder: Path) -> None:
    """Remove the heartbeat."""
    (folder / "watch.beat").unlink(missing_ok=True)


def is_watched(folder: Path) -> bool:
    """Return whether a watcher is running for the vault, in any process."""
    try:
        # The absolute value, as the clock may have been set back.
        return abs(time.time() - (folder / "watch.beat").stat().st_mtime) < _HEARTBEAT_TIMEOUT_S
    except FileNotFoundError:
        return False
