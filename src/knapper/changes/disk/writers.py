"""Tell whether another program still writes a file.

A file that lost its name to an exchange can be written for as long as somebody has it open. Linux grants a read lease
on a file only while nobody has it open for writing, so a lease granted once says that no save can arrive any more.
Other systems have no such call, and some network file systems refuse every lease; there the caller looks at the file
twice.
"""

import contextlib
import errno
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from knapper.changes.disk import atomic

PAUSE_S = 0.001


def gone(path: Path, *, timeout_s: float) -> bool:
    """Wait until nobody has *path* open for writing.

    Returns:
        False if somebody still has; True if nobody has, or if the system can't tell.
    """
    if sys.platform != "linux":
        return True
    until = time.monotonic() + timeout_s
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while not _granted(handle):
            if time.monotonic() > until:
                return not _can_tell(path.parent)
            time.sleep(PAUSE_S)
    finally:
        os.close(handle)
    return True


def _can_tell(folder: Path) -> bool:
    """Try with a file that nobody else knows of whether this file system grants leases at all."""
    handle, name = tempfile.mkstemp(prefix=f"{atomic.PREFIX}probe-", dir=folder)
    os.close(handle)
    probe = Path(name)
    try:
        handle = os.open(probe, os.O_RDONLY)
    finally:
        probe.unlink()
    try:
        return _granted(handle)
    finally:
        os.close(handle)


def _granted(handle: int) -> bool:
    import fcntl  # noqa: PLC0415 (Windows has no such module)

    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)  # a broken lease must not end the process
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN
    with contextlib.suppress(OSError):
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True
