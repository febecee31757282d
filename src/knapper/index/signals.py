"""Signal files, by which readers and a watcher of the same index tell each other that reports were read."""

import contextlib
import os
import secrets
import time
from pathlib import Path
from typing import Final

from knapper.vault.obsidian import APP_FILE
from knapper.vault.walk import IGNORE_FILE

RULE_FILES: Final = (IGNORE_FILE, APP_FILE)
"""Files with ignore rules; after a change of one, the whole vault is compared."""
SIGNAL_FOLDER: Final = "watch"
"""The folder below the index's own for files that only cause reports."""
SYNC_PREFIX: Final = "sync-"
"""Begins the names of files by which readers in the watcher's own process find out whether all reports were read."""
ASK_PREFIX: Final = "ask-"
"""Begins the names of files that readers in other processes make, and the watcher removes as its answer."""
_ASK_WAIT_S: Final = 0.3
"""How long a reader waits for the answer of a watcher in another process, which looks every 20 ms."""


def make_signal(file: Path) -> bool:
    """Make a signal file; return whether that was possible: the disk may be full, or the folder gone."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def remove_signal(file: Path) -> None:
    """Remove a signal file, where that is possible; an old one does no harm."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


def ask_watcher(folder: Path, wait_s: float = _ASK_WAIT_S) -> bool:
    """Ask the watcher of another process to index what it was told before this call.

    Args:
        folder: The index's own folder.
        wait_s: How long to wait for the answer, in seconds.

    Returns:
        Whether it has; otherwise the watcher is busy, has ended, or belongs to an older version.
    """
    ask = folder / SIGNAL_FOLDER / f"{ASK_PREFIX}{secrets.token_hex(8)}"
    if not make_signal(ask):
        return False
    deadline = time.monotonic() + wait_s
    try:
        while ask.exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
    finally:
        remove_signal(ask)
    return True
