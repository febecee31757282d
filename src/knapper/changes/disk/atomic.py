"""Write a temp file that is ready to take another file's name."""

import contextlib
import ctypes
import os
import stat
import sys
from pathlib import Path

PREFIX = ".knap-tmp-"
"""Begins the name of every temp file; the change's id follows, then the step's number."""

_MACOS_ACL_AND_XATTR = 1 << 0 | 1 << 2


def name(change_id: str, number: int) -> str:
    """Name a temp file: ``.knap-tmp-0m3k9x2a1b-7h2mq9xw-0``."""
    return f"{PREFIX}{change_id}-{number}"


def stage(temp: Path, content: bytes, *, like: Path | None = None, mode: int | None = None) -> None:
    """Write *content* to a new file *temp*, not yet synced.

    Args:
        temp: Must not exist.
        content: All of it.
        like: The file whose mode, owner, attributes and (on macOS) birth time it gets, as far as the system permits.
        mode: Permission bits where there is no such file; None for the system's default.

    Raises:
        OSError: A part may have been written.
    """
    handle = os.open(temp, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    with os.fdopen(handle, "wb", buffering=0) as file:
        rest = memoryview(content)
        while rest:
            rest = rest[file.write(rest) :]
    if like is not None:
        copy_metadata(like, temp)
    elif mode is not None:
        temp.chmod(mode)


def copy_metadata(source: Path, target: Path) -> None:
    """Give *target* what *source* has besides content; what the system forbids is left out."""
    status = source.stat()
    made = target.stat()
    if (status.st_uid, status.st_gid) != (made.st_uid, made.st_gid) and hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(target, status.st_uid, status.st_gid)
    _copy_attributes(source, target)
    target.chmod(stat.S_IMODE(status.st_mode))
    _copy_birth(status, made, target)


def sync(path: Path) -> None:
    """Force a file's content to the disk."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Force a folder's names to the disk, where the system can."""
    if os.name == "nt":
        return  # NTFS journals names, and a folder can't be opened for it
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy_attributes(source: Path, target: Path) -> None:
    if sys.platform == "darwin":
        libc = ctypes.CDLL(None)
        libc.copyfile(os.fsencode(source), os.fsencode(target), None, _MACOS_ACL_AND_XATTR)
        return
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):  # a file system without attributes
        for attribute in os.listxattr(source):
            with contextlib.suppress(OSError):  # such as a security label that only the system sets
                os.setxattr(target, attribute, os.getxattr(source, attribute))


def _copy_birth(status: os.stat_result, made: os.stat_result, target: Path) -> None:
    if sys.platform == "darwin":  # setting an earlier modification time moves the birth time with it
        os.utime(target, (status.st_birthtime, status.st_birthtime))
        os.utime(target, (made.st_atime, made.st_mtime))
