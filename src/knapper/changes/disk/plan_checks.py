"""Refuse steps that the disk, or a symbolic link, stands in the way of."""

import os
from pathlib import Path

from knapper.changes.disk import effects
from knapper.changes.disk.overlay import Entry
from knapper.errors import BadInput, StorageError
from knapper.vault import paths


def is_renamed_only(effect: effects.Rename, entry: Entry, other: Entry) -> bool:
    """Tell whether only the case or Unicode form of a name changes, on a system that doesn't tell the two apart."""
    if paths.name_key(effect.source) != paths.name_key(effect.target) or entry.stamp is None or other.stamp is None:
        return False
    return entry.stamp.inode == other.stamp.inode


def refuse_read_only(path: str, entry: Entry) -> None:
    """Refuse to replace a file that may not be written.

    Raises:
        StorageError: It may not.
    """
    if entry.stamp is None or entry.disk is None:
        return
    if not entry.stamp.mode & 0o222 or not os.access(entry.disk, os.W_OK):
        raise StorageError(
            f"'{path}' is read-only; nothing was changed",
            code="read_only",
            hint="make the file writable, or edit another one",
            details={"path": path},
        )


def refuse_relative_link(link: Path, source: str, target: str) -> None:
    """Refuse to move a symbolic link to where it would lead elsewhere.

    Raises:
        BadInput: It would.
    """
    if paths.parent_folder(source) != paths.parent_folder(target) and not link.readlink().is_absolute():
        msg = f"'{source}' is a symbolic link that leads elsewhere from '{paths.parent_folder(target) or 'the top'}'"
        raise BadInput(msg, hint="move the file that it leads to, or make the link anew by hand")
