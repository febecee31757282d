"""Watch a vault's files, and keep the index up to date."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import watchfiles

from knapper.errors import ConflictError
from knapper.index import refresh
from knapper.index.engine import Engine
from knapper.index.refresh import Progress, RefreshOutcome
from knapper.vault.obsidian import APP_FILE
from knapper.vault.walk import IGNORE_FILE

_DEBOUNCE_MS = 60
"""How long changes are collected: editors save a file in several steps."""
_POLL_MS = 20
_LISTEN_MS = 100
"""How long to wait for changes between the other duties."""
_NEW_FOLDER_RECHECK_S = 0.5
"""When a new folder is scanned again."""
_HEARTBEAT_INTERVAL_S = 0.5
"""Interval of heartbeats; the first one follows the first full comparison."""
_LOCK_WAIT_S = 1.0
"""How long to wait for another process's write before the next attempt."""
_FileChanges = set[tuple[watchfiles.Change, str]]
_RULE_FILES = (IGNORE_FILE, APP_FILE)
"""Files with ignore rules."""


def follow_vault(
    engine: Engine,
    stop: threading.Event,
    on_change: Callable[[RefreshOutcome], None],
    *,
    progress: Progress | None = None,
) -> None:
    """Index every change until *stop* is set.

    The whole vault is compared first, so that earlier changes aren't missed, and then at intervals, because
    systems lose change events, and don't report all of network drives.

    Args:
        engine: The index to update.
        stop: Ends the watch.
        on_change: Called after each indexed change, the first comparison included.
        progress: Called after each step of the first comparison, which may read the whole vault.
    """
    changes = watchfiles.watch(
        engine.view.root,
        watch_filter=None,
        debounce=_DEBOUNCE_MS,
        step=_POLL_MS,
        stop_event=stop,
        rust_timeout=_LISTEN_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        ignore_permission_denied=True,
    )
    try:
        # Events are collected from here on, before the comparison, so that no change falls between the two.
        file_changes = next(changes, None)
    except (OSError, RuntimeError):
        # Such as too many folders to watch; the existing files are still indexed.
        _ = engine.refresh(progress=progress), engine.embed(stop=stop)
        raise
    outcome = engine.refresh(progress=progress)
    _ = engine.embed(stop=stop)
    # The comparison may have taken minutes: index the changes since before the heartbeat says that all is current.
    if file_changes is not None:
        file_changes = file_changes.union(*itertools.islice(changes, 1))
        _ = _index_paths(engine, _paths(file_changes), on_change, stop)
    try:
        # Not earlier: while there is a heartbeat, searches trust the index without scanning the vault.
        refresh.write_heartbeat(engine.folder)
        on_change(outcome)
        _follow_changes(engine, file_changes, changes, on_change, stop)
    finally:
        refresh.remove_heartbeat(engine.folder)


def _follow_changes(
    engine: Engine,
    file_changes: _FileChanges | None,
    changes: Iterator[_FileChanges],
    on_change: Callable[[RefreshOutcome], None],
    stop: threading.Event,
) -> None:
    """Index reported changes, and write heartbeats."""
    waiting: set[Path] = set()
    folders: set[Path] = set()
    recheck_at = 0.0
    compare_at, heartbeat_at = time.monotonic() + engine.compare_every_s, 0.0
    while file_changes is not None:
        now = time.monotonic()
        if now >= heartbeat_at:
            heartbeat_at = now + _HEARTBEAT_INTERVAL_S
            refresh.write_heartbeat(engine.folder)
        changed_paths = _paths(file_changes)
        waiting |= changed_paths
        if folders and now >= recheck_at:
            waiting |= folders
            folders = set()
        if now >= compare_at:
            compare_at = now + engine.compare_every_s
            # As if the rules had changed, which leads to a full comparison.
            waiting |= {engine.view.root / rules for rules in _RULE_FILES}
        if (waiting or not engine.is_complete) and _index_paths(engine, waiting, on_change, stop):
            waiting = set()
        # Files put into a new folder before the system watches it cause no events, so new folders are scanned twice.
        if new_folders := {path for path in changed_paths if path.is_dir()}:
            folders, recheck_at = folders | new_folders, now + _NEW_FOLDER_RECHECK_S
        file_changes = next(changes, None)


def _paths(file_changes: _FileChanges) -> set[Path]:
    return {Path(path) for _, path in file_changes}


def _index_paths(
    engine: Engine, touched: set[Path], on_change: Callable[[RefreshOutcome], None], stop: threading.Event
) -> bool:
    """Index some files; return False where another process is writing, so that they have to wait."""
    try:
        outcome = _refresh_paths(engine, touched)
    except ConflictError:
        return False
    if outcome is not None:
        on_change(outcome)
    # Also for files that other processes indexed.
    _ = engine.embed(stop=stop)
    return True


def _refresh_paths(engine: Engine, touched: set[Path]) -> RefreshOutcome | None:
    """Index some files, or all where the rules changed; return None where nothing had to be done."""
    if not engine.is_complete or any(engine.view.root / rules in touched for rules in _RULE_FILES):
        engine.read_rules()
        return engine.refresh(wait_s=_LOCK_WAIT_S)
    if engine.is_up_to_date(touched):
        return None
    outcome = engine.refresh_paths(touched)
    return outcome if outcome.indexed or outcome.removed else None
