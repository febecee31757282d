"""Tell whether a note is one that had another name before."""

import os
from dataclasses import dataclass
from typing import Final

from knapper.changes.disk import history
from knapper.changes.disk.history import Wanted
from knapper.errors import KnapError
from knapper.tools.context import Context
from knapper.vault.view import View

_MOST_CHANGES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Hold by what a file is known again."""

    path: str
    """As the vault has it; as given, where there is no such file."""
    hash: str = ""
    node: str = ""
    """Device and number of the file on its disk, which a rename leaves; empty where the system has none."""


def traits(view: View, path: str) -> Traits:
    """Look at a file as it is now; one that can't be read has its path only."""
    try:
        note = view.read(path)
        status = os.stat(view.root / note.path)  # noqa: PTH116 - one call, on a path that the view checked
    except (KnapError, OSError):
        return Traits(path=path)
    return Traits(path=note.path, hash=note.hash, node=f"{status.st_dev}:{status.st_ino}" if status.st_ino else "")


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
    changes = history.list_changes(journal, Wanted(path=path), limit=_MOST_CHANGES).changes
    found: list[str] = []
    for change in changes:
        for file in change.files:
            if file.after_path == path and file.before_path and file.before_path != path:
                path = file.before_path
                found.append(path)
    return tuple(found)
