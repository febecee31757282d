"""Follow a vault's changes and keep the index up to date while it runs."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import watchfiles

from knapper.errors import ConflictError
from knapper.index import turn
from knapper.index.engine import Engine
from knapper.index.refresh import Outcome, Progress
from knapper.vault.obsidian import APP_FILE
from knapper.vault.walk import IGNORE_FILE

_DEBOUNCE_MS = 60
"""How long saves are gathered: editors write a file in several steps."""
_STEP_MS = 20
_LISTEN_MS = 100
"""How long the system is listened to before anything else is looked after."""
_AGAIN_S = 0.5
"""After this a new folder is looked at again."""
_BEAT_S = 0.5
"""How often a sign of life is left; the first comes when the whole vault was compared."""
_GIVE_WAY_S = 1.0
"""How long another process that writes is waited for, before it is tried again."""
_Heard = set[tuple[watchfiles.Change, str]]
_RULES = (IGNORE_FILE, APP_FILE)
"""Files that say what isn't part of the vault."""


def follow(
    engine: Engine, stop: threading.Event, on_change: Callable[[Outcome], None], *, progress: Progress | None = None
) -> None:
    """Take in every change until *stop* is set.

    The whole vault is compared first, so that nothing that happened before is missed, and again every now and then:
    systems lose changes, and don't tell all of network drives.

    Args:
        engine: The index to keep.
        stop: Ends the work.
        on_change: Hears of every change that was taken in, the first comparison included.
        progress: Hears of each step of the first comparison, which may read all there is.
    """
    changes = watchfiles.watch(
        engine.view.root,
        watch_filter=None,
        debounce=_DEBOUNCE_MS,
        step=_STEP_MS,
        stop_event=stop,
        rust_timeout=_LISTEN_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        ignore_permission_denied=True,
    )
    try:
        heard = next(changes, None)  # the system is heard from here on: nothing falls between it and the comparison
    except (OSError, RuntimeError):  # such as too many folders to watch; what is there is found all the same
        _ = engine.refresh(progress=progress), engine.embed(stop=stop)
        raise
    outcome = engine.refresh(progress=progress)
    _ = engine.embed(stop=stop)
    if heard is not None:  # that may have taken minutes
        heard = heard.union(*itertools.islice(changes, 1))
        _ = _take(engine, _paths(heard), on_change, stop)
    try:
        turn.beat(engine.folder)  # not before: who sees it trusts the index without looking at the vault
        on_change(outcome)
        _listen(engine, heard, changes, on_change, stop)
    finally:
        turn.stop_beating(engine.folder)


def _listen(
    engine: Engine,
    heard: _Heard | None,
    changes: Iterator[_Heard],
    on_change: Callable[[Outcome], None],
    stop: threading.Event,
) -> None:
    """Take in what is heard, and leave signs of life."""
    waiting: set[Path] = set()
    folders: set[Path] = set()
    again = 0.0
    due, beat = time.monotonic() + engine.compare_every_s, 0.0
    while heard is not None:
        now = time.monotonic()
        if now >= beat:
            beat = now + _BEAT_S
            turn.beat(engine.folder)
        new = _paths(heard)
        waiting |= new
        if folders and now >= again:
            waiting |= folders
            folders = set()
        if now >= due:
            due = now + engine.compare_every_s
            waiting |= {engine.view.root / rules for rules in _RULES}  # as if they had changed: all is compared
        if (waiting or not engine.graph.is_complete) and _take(engine, waiting, on_change, stop):
            waiting = set()
        # what was put into a new folder before the system watched it tells nobody: such are looked at twice
        if inside := {path for path in new if path.is_dir()}:
            folders, again = folders | inside, now + _AGAIN_S
        heard = next(changes, None)


def _paths(heard: _Heard) -> set[Path]:
    return {Path(path) for _, path in heard}


def _take(engine: Engine, touched: set[Path], on_change: Callable[[Outcome], None], stop: threading.Event) -> bool:
    """Take in some files; False where another process writes right now, so that they have to wait."""
    try:
        outcome = _taken(engine, touched)
    except ConflictError:
        return False
    if outcome is not None:
        on_change(outcome)
    _ = engine.embed(stop=stop)  # of what others have taken in, too
    return True


def _taken(engine: Engine, touched: set[Path]) -> Outcome | None:
    """Take in some files, or all where the rules have changed; None where nothing was to be done."""
    if not engine.graph.is_complete or any(engine.view.root / rules in touched for rules in _RULES):
        engine.read_rules()
        return engine.refresh(wait_s=_GIVE_WAY_S)
    if engine.is_known(touched):
        return None
    outcome = engine.refresh_paths(touched)
    return outcome if outcome.indexed or outcome.removed else None
