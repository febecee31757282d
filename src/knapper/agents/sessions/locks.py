"""Lock sessions, so that only one turn runs in each at a time, across all processes."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, Timeout

from knapper.errors import ConflictError
from knapper.system import private

LOCK_FOLDER: Final = "sessions"
WAIT_S: Final = 120.0
_POLL_S: Final = 0.05
_PROBE_S: Final = 0.05
_MIN_WAIT_S: Final = 0.3
"""Longer than `is_lock_taken` holds the lock while it probes."""


@asynccontextmanager
async def lock_session(folder: Path, session_id: str, *, wait_s: float = WAIT_S) -> AsyncGenerator[None]:
    """Lock a session for one turn; the system releases the lock where the process ends.

    Args:
        folder: The vault's state folder, which exists.
        session_id: The id of a session that exists.
        wait_s: How long to wait for another turn.

    Raises:
        ConflictError: The other turn is still running (code ``session_busy``).
    """
    lock = private.file_lock(_lock_path(folder, session_id))
    if not await acquire_lock(lock, wait_s=max(wait_s, _MIN_WAIT_S)):
        raise ConflictError(
            "the session is answering another message",
            hint="wait for it, cancel it, or begin another session",
            code="session_busy",
        )
    try:
        yield
    finally:
        lock.release()


async def acquire_lock(lock: BaseFileLock, *, wait_s: float) -> bool:
    """Acquire a lock without blocking the event loop, and return whether that succeeded in time."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            # Polled, since filelock's own waiting would block the event loop.
            lock.acquire(timeout=0)
        except Timeout:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        else:
            return True


def is_session_locked(folder: Path, session_id: str) -> bool:
    """Return whether a turn is running in a session, in any process."""
    place = _lock_path(folder, session_id)
    return place.exists() and is_lock_taken(private.file_lock(place))


def is_lock_taken(lock: BaseFileLock) -> bool:
    """Return whether a lock is held for longer than a probe like this one holds it."""
    # Two probes at once must not take each other for a turn: the second try comes after the other has let go.
    try:
        with lock.acquire(timeout=2 * _PROBE_S, poll_interval=_PROBE_S):
            return False
    except Timeout:
        return True


def remove_lock(folder: Path, session_id: str) -> None:
    """Remove the lock file of a deleted session."""
    _lock_path(folder, session_id).unlink(missing_ok=True)


def _lock_path(folder: Path, session_id: str) -> Path:
    within = folder / LOCK_FOLDER
    private.make_folder(within)
    return within / f"{session_id}.lock"
