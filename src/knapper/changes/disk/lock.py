"""Let one process at a time write to a vault."""

import contextlib
import os
import time
from collections.abc import Generator
from pathlib import Path

import filelock

from knapper.errors import ConflictError, StorageError

LOCK_FILE = "write.lock"
HOLDER_FILE = "write.lock.pid"
NEXT_FILE = "write.next.lock"
"""Is held by who is next: whoever has just written can't come in again before those who waited meanwhile."""
_POLL_S = 0.005
_PID_DIGITS = 12


@contextlib.contextmanager
def hold(folder: Path, *, timeout_s: float) -> Generator[None]:
    """Keep every other process and thread from writing until the block ends.

    The system frees the lock of a process that dies.

    Args:
        folder: The vault's state folder.
        timeout_s: Seconds to wait for another writer; 0 asks once.

    Raises:
        ConflictError: Another writer still has it; ``details["pid"]`` names its process.
        StorageError: The lock's file can't be made.
    """
    holder = folder / HOLDER_FILE
    try:
        guard = _taken(folder, timeout_s)
    except filelock.Timeout as error:
        raise _held(holder) from error
    except OSError as error:
        msg = f"the vault's lock in '{folder}' can't be taken: {error.strerror}"
        raise StorageError(msg, hint="check that the folder is there and can be written") from error
    try:
        with contextlib.suppress(OSError):  # a full disk; who holds the lock is only told, and must not matter
            _sign(holder)
        yield
    finally:
        guard.release()


def _taken(folder: Path, timeout_s: float) -> filelock.BaseFileLock:
    """Wait to be next, and then for the one who writes; who asks only once doesn't queue."""
    guard = filelock.FileLock(folder / LOCK_FILE, poll_interval=_POLL_S, thread_local=False)
    if timeout_s <= 0:
        guard.acquire(timeout=0)
        return guard
    deadline = time.monotonic() + timeout_s
    turn = filelock.FileLock(folder / NEXT_FILE, poll_interval=_POLL_S, thread_local=False)
    with turn.acquire(timeout=timeout_s):
        guard.acquire(timeout=max(deadline - time.monotonic(), 0))
    return guard


def _sign(holder: Path) -> None:
    """Write this process's id over the last one's; cutting the file first would make some file systems flush it."""
    handle = os.open(holder, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{os.getpid():<{_PID_DIGITS}}".encode("ascii"))
    finally:
        os.close(handle)


def _held(holder: Path) -> ConflictError:
    try:
        pid = int(holder.read_text(encoding="ascii"))
    except (OSError, ValueError):
        pid = 0
    who = f"process {pid}" if pid else "another process"
    return ConflictError(
        f"{who} is writing to this vault",
        code="locked",
        hint="try again when it has finished",
        details={"pid": pid or None},
    )
