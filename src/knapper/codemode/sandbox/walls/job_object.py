"""Confine a worker on Windows to a job object: one process, bounded memory, ended with its owner.

Source: Microsoft's reference of JOBOBJECT_EXTENDED_LIMIT_INFORMATION and JOBOBJECT_BASIC_UI_RESTRICTIONS.
"""

import ctypes
from typing import Final, Protocol

_ONE_PROCESS: Final = 0x0008
_PROCESS_MEMORY: Final = 0x0100
_DIES_ON_ERROR: Final = 0x0400
_ENDS_WITH_OWNER: Final = 0x2000
FLAGS: Final = _ONE_PROCESS | _PROCESS_MEMORY | _DIES_ON_ERROR | _ENDS_WITH_OWNER
NO_DESKTOP: Final = 0x00FF
"""No clipboard, no global atoms, no windows of others, no change of settings, no log-off."""
_EXTENDED: Final = 9
_UI: Final = 4


class BasicLimits(ctypes.Structure):
    """The structure JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """The structure JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", BasicLimits),
        ("counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class Kernel32(Protocol):
    """The part of kernel32 that is used."""

    def CreateJobObjectW(self, security: None, name: None) -> int:  # noqa: N802 - its name
        """Create a job object."""
        ...

    def SetInformationJobObject(self, job: int, kind: int, data: object, size: int) -> int:  # noqa: N802 - its name
        """Set limits."""
        ...

    def AssignProcessToJobObject(self, job: int, process: int) -> int:  # noqa: N802 - its name
        """Assign a process to a job object."""
        ...


def assign_process(kernel: Kernel32, process: int, memory_mb: int) -> str:
    """Assign a process to a job object of its own.

    Returns:
        ``on``, or why not.
    """
    # The handle is never closed: the worker ends with its last handle, and so with this program.
    job = kernel.CreateJobObjectW(None, None)
    if not job:
        return "a job object can't be created"
    limits = ExtendedLimits(process_memory=memory_mb << 20)
    limits.basic.flags = FLAGS
    limits.basic.active_processes = 1
    desktop = ctypes.c_uint32(NO_DESKTOP)
    steps = (
        lambda: kernel.SetInformationJobObject(job, _EXTENDED, ctypes.byref(limits), ctypes.sizeof(limits)),
        lambda: kernel.SetInformationJobObject(job, _UI, ctypes.byref(desktop), ctypes.sizeof(desktop)),
        lambda: kernel.AssignProcessToJobObject(job, process),
    )
    return "on" if all(step() for step in steps) else "a job object can't hold the process"
