"""Exchange the names of two files, or give a file a name that nothing has, in one step of the system.

Linux has ``renameat2``, macOS ``renamex_np``, Windows ``ReplaceFileW``; where a file system (or system) lacks the
call, a fallback replaces after a last look, and keeps what it displaced all the same. The macOS and Windows branches
were written from their documentation and have run only against stand-ins for the system's library.
"""

import contextlib
import ctypes
import errno
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

Manner = Literal["swap", "noreplace"]
Native: TypeAlias = Callable[[Path, Path, Manner], None]
"""Rename in a manner, or raise OSError: of ``UNSUPPORTED`` where the file system can't."""

UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP})
OLD = "-old"
"""Added to a temp file's name while a replaced file has no other."""

_AT_FDCWD = -100
_LINUX_FLAGS = {"noreplace": 1, "swap": 2}
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}
_MACOS_FLAGS = {"swap": 2, "noreplace": 4}
_WINDOWS_IGNORE_MERGE_ERRORS = 2
_WINDOWS_UNSUPPORTED = frozenset({1, 50})
_WINDOWS_HALF_DONE = 1177


def native(system: str = sys.platform) -> Native | None:
    """Find this system's call; None where it has none."""
    if system == "linux":
        return linux(ctypes.CDLL(None, use_errno=True), machine=platform.machine())
    if system == "darwin":
        return macos(ctypes.CDLL(None, use_errno=True))
    if system == "win32":
        return windows(ctypes.WinDLL("kernel32", use_last_error=True), last_error=ctypes.get_last_error)
    return None


def linux(libc: Any, *, machine: str) -> Native | None:  # noqa: ANN401 (a loaded library has no type)
    """Rename with ``renameat2``, by number where the C library has no such function."""
    if hasattr(libc, "renameat2"):
        call = libc.renameat2
    elif machine in _RENAMEAT2:

        def call(*arguments: object) -> int:
            return libc.syscall(_RENAMEAT2[machine], *arguments)

    else:
        return None

    def rename(source: Path, target: Path, manner: Manner) -> None:
        if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _LINUX_FLAGS[manner]):
            raise _last(source, target)

    return rename


def macos(libc: Any) -> Native | None:  # noqa: ANN401 (a loaded library has no type)
    """Rename with ``renamex_np``; never run on macOS itself."""
    if not hasattr(libc, "renamex_np"):
        return None

    def rename(source: Path, target: Path, manner: Manner) -> None:
        if libc.renamex_np(os.fsencode(source), os.fsencode(target), _MACOS_FLAGS[manner]):
            raise _last(source, target)

    return rename


def windows(kernel32: Any, *, last_error: Callable[[], int]) -> Native:  # noqa: ANN401 (a loaded library has no type)
    """Rename with ``ReplaceFileW``, which keeps the replaced file's rights and dates; never run on Windows itself."""

    def rename(source: Path, target: Path, manner: Manner) -> None:
        if manner == "noreplace":
            source.rename(target)  # Windows refuses an existing target
            return
        old = _old(source)
        done = kernel32.ReplaceFileW(str(target), str(source), str(old), _WINDOWS_IGNORE_MERGE_ERRORS, None, None)
        if not done:
            code = last_error()
            if code == _WINDOWS_HALF_DONE:  # the target has the old name already
                old.rename(target)
            number = errno.ENOTSUP if code in _WINDOWS_UNSUPPORTED else errno.EACCES
            raise OSError(number, f"ReplaceFile failed with {code}", str(source), None, str(target))
        old.rename(source)

    return rename


def swap(temp: Path, target: Path, how: Native | None) -> None:
    """Let *temp* and *target* change contents: afterwards *temp* has what was displaced.

    Without the system's help a save by renaming over *target*, within the microseconds between the last look and the
    replacement, would be lost; a save into the file isn't, since the displaced file itself is kept.

    Raises:
        OSError: Nothing happened.
    """
    if how and _supported(how, temp, target, "swap"):
        return
    old = _old(temp)
    try:
        while _second_name(target, old) != _mark(target):
            old.unlink()
        temp.replace(target)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            old.unlink()
        raise
    old.rename(temp)


def place(source: Path, target: Path, how: Native | None) -> None:
    """Rename *source* to a name that nothing has.

    Raises:
        FileExistsError: Something has it.
        OSError: Nothing happened.
    """
    if how and _supported(how, source, target, "noreplace"):
        return
    if source.is_dir() and not source.is_symlink():
        target.mkdir()  # reserves the name; a folder may be renamed over an empty one
        try:
            source.rename(target)
        except OSError:
            target.rmdir()
            raise
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in UNSUPPORTED | {errno.EMLINK}:
            raise
        _reserve_and_replace(source, target)
        return
    source.unlink()


def mend(temp: Path) -> None:
    """Finish a replacement that a kill cut in two: what was displaced goes to *temp*."""
    old = _old(temp)
    if not os.path.lexists(old):
        return
    if os.path.lexists(temp):
        old.unlink()  # the target was not yet replaced, and is this same file
    else:
        old.rename(temp)


def _supported(how: Native, source: Path, target: Path, manner: Manner) -> bool:
    try:
        how(source, target, manner)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def _reserve_and_replace(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    try:
        source.replace(target)
    except OSError:
        target.unlink()
        raise


def _second_name(target: Path, old: Path) -> tuple[int, int, int]:
    try:
        os.link(target, old)
    except OSError as error:
        if error.errno not in UNSUPPORTED | {errno.EMLINK}:
            raise
        seen = _mark(target)
        shutil.copy2(target, old)
        return seen
    return _mark(old)


def _mark(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _old(temp: Path) -> Path:
    return temp.with_name(temp.name + OLD)


def _last(source: Path, target: Path) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(source), None, str(target))
