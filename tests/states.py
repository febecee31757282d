"""Look for what in a program's state others could read, by a way of its own."""

import os
import stat
from pathlib import Path

KNOWN_NAMES = {
    *("vaults", "models", "server", "sandbox", "eval", "told-variables", "set-aside"),
    *("taint", "taint.db", "taint.db-wal", "taint.db-shm", "write.lock", "write.lock.pid", "write.next.lock"),
}


def open_to_others(state: Path) -> list[str]:
    """Name all files and folders that the group or others may use, with their modes, and names nobody foresaw."""
    found = [_mode(state)] if state.exists() else []
    for folder, folders, files in os.walk(state):
        found += [_mode(Path(folder, name)) for name in (*folders, *files)]
    names = {path.name for path in state.iterdir()} if state.exists() else set[str]()
    return [text for text in found if text] + [f"{name}: unforeseen" for name in sorted(names - KNOWN_NAMES)]


def _mode(path: Path) -> str:
    if os.name == "nt":  # where the folder's access list decides
        return ""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # SQLite removes its files when the last connection closes
        return ""
    is_right = stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600)
    return "" if is_right or stat.S_ISLNK(mode) else f"{path}: {stat.S_IMODE(mode):o}"
