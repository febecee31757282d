"""The second wall around a worker process, of what its system offers; the first is the WebAssembly sandbox."""

import ctypes
import errno
import json
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

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


def restrict_files(libc: ctypes.CDLL) -> str:
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


_SET_FILTER: Final = 1
_ALL_THREADS: Final = 1
_ALLOW: Final = 0x7FFF0000
_DENY: Final = 0x00050000 | errno.EPERM
_KILL: Final = 0x80000000
_LOAD: Final = 0x20
_IF_EQUAL: Final = 0x15
_IF_SET: Final = 0x45
_RETURN: Final = 0x06
_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4
_FIRST_AT: Final = 16
_THIRD_AT: Final = 32
_EXECUTABLE: Final = 0x4

Instruction = tuple[int, int, int, int]
"""Code, steps over if true, steps over if false, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyscallTable:
    """An architecture's numbers of system calls."""

    architecture: int
    seccomp: int
    read: int
    write: int
    mapping: tuple[int, ...]
    """``mmap`` and ``mprotect``: allowed, but nothing becomes executable."""
    plain: tuple[int, ...]
    """Memory, locks, time, signals to itself, and the end."""


SYSCALL_TABLES: Final[Mapping[str, SyscallTable]] = {
    "x86_64": SyscallTable(
        architecture=0xC000003E,
        seccomp=317,
        read=0,
        write=1,
        mapping=(9, 10),
        plain=(11, 12, 13, 14, 15, 24, 25, 28, 35, 39, 60, 96, 131, 186, 202, 219, 228, 229, 230, 231, 273, 318, 334),
    ),
    "aarch64": SyscallTable(
        architecture=0xC00000B7,
        seccomp=277,
        read=63,
        write=64,
        mapping=(222, 226),
        plain=(
            *(93, 94, 98, 99, 101, 113, 114, 115, 124, 128, 132, 134, 135, 139, 169, 172, 178),
            *(214, 215, 216, 233, 278, 293),
        ),
    ),
}


class FilterProgram(ctypes.Structure):
    """The kernel's ``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def build_filter(machine: SyscallTable) -> list[Instruction]:
    """Build the filter: everything that isn't named is refused."""
    # The architecture comes first: the same number is another call in the 32-bit tables of the same kernel.
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for number in machine.plain:
        program += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for number in machine.mapping:
        program += _allow_call_if(number, _THIRD_AT, (_IF_SET, 1, 0, _EXECUTABLE))
    # Only on the two pipes: standard input is read, standard output is written.
    program += _allow_call_if(machine.read, _FIRST_AT, (_IF_EQUAL, 0, 1, 0))
    program += _allow_call_if(machine.write, _FIRST_AT, (_IF_EQUAL, 0, 1, 1))
    return [*program, (_RETURN, 0, 0, _DENY)]


def restrict_calls(libc: ctypes.CDLL, architecture: str) -> str:
    """Filter the calls of all threads of this process; no_new_privs must be set already.

    Returns:
        ``on``, or why not.
    """
    machine = SYSCALL_TABLES.get(architecture)
    if machine is None or ctypes.sizeof(ctypes.c_void_p) != struct.calcsize("Q"):
        return f"there is no filter for {architecture}"
    code = pack_instructions(build_filter(machine))
    program = FilterProgram(length=len(code) // 8, instructions=code)
    if libc.syscall(machine.seccomp, _SET_FILTER, _ALL_THREADS, ctypes.byref(program)) == 0:
        return "on"
    return f"this kernel takes no filter: {errno.errorcode.get(ctypes.get_errno(), 'unknown')}"


def pack_instructions(code: Iterable[Instruction]) -> bytes:
    """Pack instructions as the kernel's ``struct sock_filter``."""
    return b"".join(struct.pack("<HBBI", *one) for one in code)


def _allow_call_if(number: int, argument_at: int, test: Instruction) -> list[Instruction]:
    """Allow one call if a test of its argument passes, that is, jumps over nothing."""
    return [
        (_IF_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, argument_at),
        test,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]


SEATBELT_TOOL: Final = "/usr/bin/sandbox-exec"
_SEATBELT_RULES: Final = (
    "(version 1)",
    "(allow default)",
    "(deny network*)",
    "(deny file-write*)",
    "(deny process-fork)",
    "(deny mach-lookup)",
    '(deny file-read* (subpath "/Users") (subpath "/Volumes"))',
    '(deny file-read* (subpath "/private/var/folders") (subpath "/private/tmp"))',
)


def seatbelt_prefix(readable: Iterable[str]) -> list[str]:
    """Return what precedes a command to confine it.

    Args:
        readable: Folders that hold what the command loads.
    """
    return [SEATBELT_TOOL, "-p", seatbelt_profile(readable)]


def seatbelt_profile(readable: Iterable[str]) -> str:
    """Return the rules; of two that match, the later one applies."""
    # Last, since the folders that Python is loaded from may be below /Users or a temporary folder.
    places = " ".join(f"(subpath {json.dumps(folder, ensure_ascii=False)})" for folder in dict.fromkeys(readable))
    return "\n".join([*_SEATBELT_RULES, f"(allow file-read* {places})"])


_ONE_PROCESS: Final = 0x0008
_PROCESS_MEMORY: Final = 0x0100
_DIES_ON_ERROR: Final = 0x0400
_ENDS_WITH_OWNER: Final = 0x2000
JOB_FLAGS: Final = _ONE_PROCESS | _PROCESS_MEMORY | _DIES_ON_ERROR | _ENDS_WITH_OWNER
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
    limits.basic.flags = JOB_FLAGS
    limits.basic.active_processes = 1
    desktop = ctypes.c_uint32(NO_DESKTOP)
    steps = (
        lambda: kernel.SetInformationJobObject(job, _EXTENDED, ctypes.byref(limits), ctypes.sizeof(limits)),
        lambda: kernel.SetInformationJobObject(job, _UI, ctypes.byref(desktop), ctypes.sizeof(desktop)),
        lambda: kernel.AssignProcessToJobObject(job, process),
    )
    return "on" if all(step() for step in steps) else "a job object can't hold the process"


_NO_NEW_PRIVILEGES: Final = 38
STANDS: Final = "on"
_SPARE_MB: Final = 320
"""For the interpreter around the script: its own memory, and copies of inputs and results."""


def raise_before_threads() -> dict[str, str]:
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
    return {"landlock": restrict_files(libc)}


def raise_after_threads() -> dict[str, str]:
    """Deny every thread all system calls except those that a running script needs."""
    if sys.platform != "linux":
        return {}
    return {"seccomp": restrict_calls(ctypes.CDLL(None, use_errno=True), platform.machine())}


def limit_resources(memory_mb: int) -> dict[str, str]:
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
