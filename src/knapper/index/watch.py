"""Watch a vault's files, and keep the index up to date."""

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from knapper.errors import ConflictError
from knapper.index import status
from knapper.index.engine import Engine
from knapper.index.feed import ChangeFeed
from knapper.index.refresh import HEARTBEAT_FILE, RULE_FILES, Progress, RefreshOutcome
from knapper.system import private

_DEBOUNCE_S = 0.2
"""How long changes are collected while they keep coming: editors save a file in several steps, and each time new chunks
are embedded takes as long as an edit. Readers don't wait for that."""
_POLL_S = 0.02
_QUIET_POLL_S = 0.05
"""Between looks after nothing has come for a while: each wakes the processor, which a laptop's battery pays for."""
_QUIET_AFTER_S = 3.0
_HEARTBEAT_INTERVAL_S = 0.5
"""Interval of heartbeats; the first one follows the first full comparison."""
_DOUBT_INTERVAL_S = 10.0
"""How often at most all files are compared because reports may be lost."""
_RESTART_PAUSE_S = 1.0
"""Pause before the watch starts over after its reports failed; it doubles while they fail again and again."""
_MAX_RESTART_PAUSE_S = 300.0
_FAILS_AGAIN_S = 60.0
"""Reports that fail this soon after their start will do so again: watching a vault lists its folders, and the report of
that fails at a folder whose name isn't valid Unicode."""
_LOCK_WAIT_S = 1.0
"""How long to wait for another process's write before the next attempt."""
_TAKE_OVER_INTERVAL_S = 5.0
"""How often a watcher looks whether another process has ended before all vectors were computed."""


def write_heartbeat(folder: Path) -> None:
    """Write a watcher's heartbeat; does nothing while the index's folder is deleted."""
    with suppress(FileNotFoundError):
        private.touch(folder / HEARTBEAT_FILE)


def remove_heartbeat(folder: Path) -> None:
    """Remove the heartbeat."""
    (folder / HEARTBEAT_FILE).unlink(missing_ok=True)


def follow_vault(
    engine: Engine,
    stop: threading.Event,
    on_change: Callable[[RefreshOutcome], None],
    *,
    progress: Progress | None = None,
) -> None:
    """Index every change until *stop* is set.

    The whole vault is compared first, so that earlier changes aren't missed, and then at intervals, because
    systems lose change events, and don't report all of network drives. A failure is recorded beside the index until
    the vault is followed again; whoever gives up has to clear that.

    Args:
        engine: The index to update.
        stop: Ends the watch.
        on_change: Called after each indexed change, the first comparison included.
        progress: Called after each step of the first comparison, which may read the whole vault.
    """

    def tell_source(outcome: RefreshOutcome) -> None:
        status.clear_watch_failure(engine.folder)
        on_change(outcome)

    try:
        if not engine.follow_source(stop, tell_source, progress):
            _follow_files(engine, stop, on_change, progress)
    except Exception as error:
        if not stop.is_set():
            status.record_watch_failure(engine.folder, error)
        raise
    status.clear_watch_failure(engine.folder)


def _follow_files(
    engine: Engine, stop: threading.Event, on_change: Callable[[RefreshOutcome], None], progress: Progress | None
) -> None:
    """Follow the changes of the vault's own files."""
    pause = 0.0
    while not stop.is_set():
        # Until *stop* is set, reports fail, or the index's folder is deleted.
        try:
            # Events are collected from here on, before the comparison, so that no change falls between the two.
            feed = ChangeFeed(engine.view.root, engine.folder)
        except (OSError, RuntimeError):
            # Such as too many folders to watch; the existing files are still indexed.
            _ = engine.refresh(progress=progress), engine.embed(stop=stop)
            raise
        with feed:
            outcome = engine.refresh(progress=progress)
            # The comparison may have taken minutes: what changed meanwhile is indexed before the heartbeat says that
            # all is current.
            _ = feed.sync()
            taken = feed.waiting()
            if taken and _index_paths(engine, taken, on_change):
                feed.settle(taken)
            began, has_failed = time.monotonic(), False
            try:
                with engine.followed_by(feed):
                    # Not earlier: while there is a heartbeat, searches rely on the watcher without scanning the vault.
                    write_heartbeat(engine.folder)
                    on_change(outcome)
                    _follow_changes(engine, feed, on_change, stop)
            except _ReportsFailed:
                has_failed = True
            finally:
                remove_heartbeat(engine.folder)
        if has_failed:
            is_repeated = time.monotonic() - began < _FAILS_AGAIN_S
            pause = min(2 * pause, _MAX_RESTART_PAUSE_S) if pause and is_repeated else _RESTART_PAUSE_S
            status.record_watch_failure(engine.folder, None)
            _ = stop.wait(pause)


def _follow_changes(
    engine: Engine, feed: ChangeFeed, on_change: Callable[[RefreshOutcome], None], stop: threading.Event
) -> None:
    """Index reported changes, compute their vectors, answer other processes' readers, and write heartbeats.

    Raises:
        _ReportsFailed: All files have to be compared again.
    """
    compare_at, heartbeat_at, take_over_at = time.monotonic() + engine.compare_every_s, 0.0, 0.0
    collected_since, doubt_at, quiet_at, pause = 0.0, 0.0, 0.0, _POLL_S
    is_embedding = True
    while not stop.wait(pause):
        now = time.monotonic()
        pause = _POLL_S if now < quiet_at else _QUIET_POLL_S
        is_beat = now >= heartbeat_at
        if is_beat:
            heartbeat_at = now + _HEARTBEAT_INTERVAL_S
            if not feed.is_intact:
                return
            write_heartbeat(engine.folder)
            if engine.publishing.is_due_again:
                engine.publish(stop=stop)
            if now >= take_over_at:
                take_over_at = now + _TAKE_OVER_INTERVAL_S
                is_embedding = is_embedding or _are_vectors_left(engine)
        is_growing = bool(_collect(feed))
        if is_growing and not feed.asks() and now < (collected_since or now) + _DEBOUNCE_S:
            collected_since, pause = collected_since or now, _POLL_S
            continue
        collected_since = 0.0
        if now >= compare_at or (feed.is_doubtful and now >= doubt_at):
            compare_at, doubt_at = now + engine.compare_every_s, now + _DOUBT_INTERVAL_S
            # As if the rules had changed, which leads to a full comparison.
            feed.add(engine.view.root / rules for rules in RULE_FILES)
        if not feed.is_idle:
            quiet_at, pause = now + _QUIET_AFTER_S, _POLL_S
        elif not (is_beat or is_embedding):
            continue  # looking whether the index is whole takes longer than all else
        is_embedding = _index_waiting(engine, feed, on_change, stop, is_embedding=is_embedding)


def _are_vectors_left(engine: Engine) -> bool:
    """Return whether chunks lack a vector and no process computes it, such as after `knap index` was interrupted."""
    model = engine.model
    # Never those that another process has replaced by its own model's: each would replace the other's without end.
    is_own = bool(model) and engine.store.meta("model") == model
    return is_own and engine.store.count_pending(model) > 0 and not engine.is_deriving


class _ReportsFailed(Exception):
    """The reports have failed, such as at a file's name that isn't valid Unicode: all files are compared again."""


def _collect(feed: ChangeFeed) -> int:
    """Read the reports that have come; return how many concern the vault.

    Raises:
        _ReportsFailed: They have failed.
    """
    try:
        return feed.collect()
    except RuntimeError as error:
        raise _ReportsFailed from error


def _index_waiting(
    engine: Engine,
    feed: ChangeFeed,
    on_change: Callable[[RefreshOutcome], None],
    stop: threading.Event,
    *,
    is_embedding: bool,
) -> bool:
    """Index what waits, if anything does; where another process is writing, it waits for the next time.

    Args:
        engine: The index.
        feed: What was reported.
        on_change: Called after it was indexed.
        stop: Ends the watch.
        is_embedding: Whether vectors are to be computed even where nothing has changed.

    Returns:
        Whether vectors remain to be computed.

    Raises:
        _ReportsFailed: All files have to be compared again.
    """
    feed.add_due_folders()
    # Read before the changes: all that was reported before a question waits already.
    asks, doubts = feed.asks(), feed.doubts
    taken = feed.waiting()
    is_due = any(taken.values()) or bool(asks and taken) or not engine.is_complete
    if is_due and not _index_paths(engine, taken, on_change):
        return is_embedding
    feed.settle(taken)
    feed.answer(asks)
    if is_due and _has_rules(engine, taken):
        feed.trust(doubts)
    # Also for files that other processes indexed.
    return (is_due or is_embedding) and _embed(engine, feed, stop)


def _embed(engine: Engine, feed: ChangeFeed, stop: threading.Event) -> bool:
    """Compute vectors, until something is reported at the latest; return whether that was so.

    Raises:
        _ReportsFailed: All files have to be compared again.
    """
    is_reported = False

    def look() -> bool:
        nonlocal is_reported
        status.clear_watch_failure(engine.folder)
        _ = _collect(feed)
        is_reported = not feed.is_idle
        return is_reported

    _ = engine.embed(stop=stop, pauses=look)
    # Not when files are followed again: that an embedder doesn't answer ends the watch, too.
    status.clear_watch_failure(engine.folder)
    return is_reported


def _index_paths(engine: Engine, touched: Collection[Path], on_change: Callable[[RefreshOutcome], None]) -> bool:
    """Index some files; return False where another process is writing, so that they have to wait."""
    try:
        is_whole = not engine.is_complete or _has_rules(engine, touched)
        if is_whole:
            engine.read_rules()
            outcome = engine.refresh(wait_s=_LOCK_WAIT_S)
        elif engine.is_up_to_date(touched):
            return True
        else:
            outcome = engine.refresh_paths(touched)
    except ConflictError:
        return False
    if is_whole or outcome.indexed or outcome.removed:
        on_change(outcome)
    return True


def _has_rules(engine: Engine, touched: Collection[Path]) -> bool:
    return any(engine.view.root / rules in touched for rules in RULE_FILES)
