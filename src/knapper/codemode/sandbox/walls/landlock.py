"""Deny this process all files and the network, with Linux's Landlock.

Source: the kernel's documentation, userspace-api/landlock; a ruleset that handles a right and has no rule denies it.
"""

import ctypes
import errno
import os
from typing import Final

_CREATE: Final = 444
_RESTRICT: Final = 446
_ASK_VERSION: Final = 1
_FILES: Final = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""Rights over files that each version knows; those from 5 on know the same."""
_NETWORK_SINCE: Final = 4
_SCOPES_SINCE: Final = 6
_ALL_TCP: Final = 0x3
_ALL_SCOPES: Final = 0x3
"""Abstract sockets and signals to processes outside."""


class Ruleset(ctypes.Structure):
    """The kernel's ``struct landlock_ruleset_attr``."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


def ruleset_for(version: int) -> Ruleset:
    """Return the ruleset that denies all rights, as far as the kernel's version of Landlock knows them."""
    return Ruleset(
        files=_FILES[min(version, max(_FILES))],
        network=_ALL_TCP if version >= _NETWORK_SINCE else 0,
        scopes=_ALL_SCOPES if version >= _SCOPES_SINCE else 0,
    )


def restrict(libc: ctypes.CDLL) -> str:
    """Deny the rights to this thread and those that it starts; no_new_privs must be set already.

    Returns:
        ``on``, or why not.
    """
    version = libc.syscall(_CREATE, None, 0, _ASK_VERSION)
    if version < 1:
        return f"this kernel has no Landlock: {_errno_name()}"
    # The kernel refuses a ruleset with rights that its version doesn't know.
    rules = ruleset_for(version)
    descriptor = libc.syscall(_CREATE, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    if descriptor < 0:
        return f"Landlock has no ruleset: {_errno_name()}"
    try:
        return "on" if libc.syscall(_RESTRICT, descriptor, 0) == 0 else f"Landlock doesn't restrict: {_errno_name()}"
    finally:
        os.close(descriptor)


def _errno_name() -> str:
    return errno.errorcode.get(ctypes.get_errno(), "unknown")
