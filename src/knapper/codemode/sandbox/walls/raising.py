"""Raise the second wall around this process, and report its parts; the first wall is the WebAssembly sandbox itself."""

import ctypes
import platform
import sys
from typing import Final

from knapper.codemode.sandbox.walls import linux

_NO_NEW_PRIVILEGES: Final = 38
STANDS: Final = "on"
_SPARE_MB: Final = 320
"""For the interpreter around the script: its own memory, and copies of inputs and results."""


def before_threads() -> dict[str, str]:
    """Deny files and the network; threads that start later are bound as well.

    Returns:
        ``on`` or why not, for each part of the wall.
    """
    if sys.platform != "linux":
        return {}
    libc = ctypes.CDLL(None, use_errno=True)
    # Both Landlock and seccomp require it of a process without privileges.
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return {"landlock": "new privileges can't be given up"}
    return {"landlock": linux.restrict_files(libc)}


def after_threads() -> dict[str, str]:
    """Deny every thread all system calls except those that a running script needs."""
    if sys.platform != "linux":
        return {}
    return {"seccomp": linux.restrict_calls(ctypes.CDLL(None, use_errno=True), platform.machine())}


def limit(memory_mb: int) -> dict[str, str]:
    """Limit this process's memory, and deny it to write files; this isn't part of the second wall.

    Args:
        memory_mb: Of a script at most; what the interpreter needs beyond that is added.
    """
    if sys.platform == "win32":
        # A job object limits the memory there.
        return {}
    import resource  # noqa: PLC0415 - there is none on Windows

    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_DATA: (memory_mb + _SPARE_MB) << 20,
    }
    for name, most in limits.items():
        try:
            resource.setrlimit(name, (most, most))
        except (OSError, ValueError) as error:
            return {"limits": f"a limit can't be set: {error}"}
    return {"limits": STANDS}
