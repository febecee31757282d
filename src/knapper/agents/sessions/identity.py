"""Tell whether a note is one that had another name before."""

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from knapper.changes.disk import undo
from knapper.changes.disk.undo import ChangeFilter
from knapper.errors import KnapError
from knapper.tools.context import Context
from knapper.vault.view import View

_MOST_CHANGES: Final = 200
_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_GET_VERSION: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("v") << 8 | 1
"""As most processors have it; elsewhere the answer is an error, and nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Hold by what a file is known again."""

    path: str
    """As the vault has it; as given, where there is no such file."""
    hash: str = ""
    """Empty where the note is: all empty notes are the same."""
    node: str = ""
    """What the disk calls the file, which a rename leaves; empty where the system doesn't tell."""


def traits(view: View, path: str) -> Traits:
    """Look at a file as it is now; one that can't be read has its path only."""
    try:
        note = view.read(path)
        node = _node(view.root / note.path)
    except (KnapError, OSError):
        return Traits(path=path)
    known = note.hash if note.raw.strip() else ""
    return Traits(path=note.path, hash=known, node=node)


def _node(file: Path) -> str:
    """Name a file by device and number, and by what tells it from one that had the same number before.

    Disks give a number to the next new file as soon as the last one of it is deleted.
    """
    descriptor = os.open(file, _OPEN)
    try:
        status = os.fstat(descriptor)
        born = getattr(status, "st_birthtime_ns", 0) or getattr(status, "st_birthtime", 0) or _generation(descriptor)
    finally:
        os.close(descriptor)
    return f"{status.st_dev}:{status.st_ino}:{born}" if status.st_ino else ""


def _generation(descriptor: int) -> int:
    """Ask Linux how often a file's number was given; 0 where that isn't known.

    Source: ioctl_iflags(2) and FS_IOC_GETVERSION in linux/fs.h.
    """
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415 - Windows has no such module

    answer = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _GET_VERSION, answer)
    except OSError:
        return 0
    return int.from_bytes(answer[:4], sys.byteorder)


def is_gone(view: View, path: str) -> bool:
    """Tell whether there is no such file any more."""
    try:
        _ = view.path(path)
    except KnapError:
        return True
    return False


def earlier(context: Context, path: str) -> tuple[str, ...]:
    """Give the paths that a file had before, the latest first, as far as the journal knows."""
    journal = context.writer.state.journal
    changes = undo.list_changes(journal, ChangeFilter(path=path), limit=_MOST_CHANGES).changes
    found: list[str] = []
    for change in changes:
        for file in change.files:
            if file.after_path == path and file.before_path and file.before_path != path:
                path = file.before_path
                found.append(path)
    return tuple(found)
