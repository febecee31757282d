"""Bring the index up to date: compare the vault with what is stored, and read; one process at a time."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG
from typing import Final, Literal, Protocol

from knapper.errors import ConflictError, KnapError, StorageError
from knapper.index.documents import FileRows, FileState
from knapper.index.store import IndexStore
from knapper.system import private
from knapper.vault.access import Policy
from knapper.vault.obsidian import APP_FILE
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from knapper.vault.walk import IGNORE_FILE, FileStat, IsUnchanged, Skipped

RULE_FILES: Final = (IGNORE_FILE, APP_FILE)
"""Files with ignore rules; after a change of one, the whole vault is compared."""
SIGNAL_FOLDER: Final = "watch"
"""The folder below the index's own for files that only cause reports."""
SYNC_PREFIX: Final = "sync-"
"""Begins the names of files by which readers in the watcher's own process find out whether all reports were read."""
ASK_PREFIX: Final = "ask-"
"""Begins the names of files that readers in other processes make, and the watcher removes as its answer."""
WRITE_LOCK_FILE: Final = "index.lock"
_ASK_WAIT_S: Final = 0.3
"""How long a reader waits for the answer of a watcher in another process, which looks every 20 or 50 ms."""


def make_signal(file: Path) -> bool:
    """Make a signal file; return whether that was possible: the disk may be full, or the folder gone."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def remove_signal(file: Path) -> None:
    """Remove a signal file, where that is possible; an old one does no harm."""
    with suppress(OSError):
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


HEARTBEAT_FILE: Final = "watch.beat"
_HEARTBEAT_TIMEOUT_S = 10.0
"""A watcher whose last heartbeat is older than this counts as ended."""


class WriteLock:
    """A lock of one index, among the threads of this process and among processes."""

    def __init__(self, folder: Path, name: str = WRITE_LOCK_FILE) -> None:
        """Use the file *name* in the index's *folder*: by itself the lock for writing."""
        self._folder = folder
        self._name = name
        self._thread_lock = threading.Lock()
        self._owner = 0  # the thread that holds it

    @contextmanager
    def acquire(self, *, wait_s: float) -> Generator[bool]:
        """Hold the lock for the block; within it, the same thread gets it again at once.

        Args:
            wait_s: How long to wait for another thread or process, in seconds; negative waits without limit.

        Yields:
            Whether the lock was acquired.

        Raises:
            StorageError: The folder can't be written.
        """
        if self._owner == threading.get_ident():
            yield True
            return
        deadline = time.monotonic() + wait_s
        # Threads first, then processes: only one thread of this process competes for the file lock.
        if not self._thread_lock.acquire(timeout=wait_s if wait_s >= 0 else -1):
            yield False
            return
        try:
            # Both waits share one deadline.
            with acquire_process_lock(
                self._folder, self._name, wait_s=max(deadline - time.monotonic(), 0) if wait_s >= 0 else -1
            ) as is_acquired:
                self._owner = threading.get_ident() if is_acquired else 0
                yield is_acquired
        finally:
            self._owner = 0
            self._thread_lock.release()

    @contextmanager
    def hold(self, *, wait_s: float) -> Generator[None]:
        """Hold the lock for the block, as `acquire` does.

        Raises:
            ConflictError: Others held it for all of this time.
            StorageError: The folder can't be written.
        """
        with self.acquire(wait_s=wait_s) as is_acquired:
            if not is_acquired:
                raise ConflictError(
                    f"another process is writing the index {self._folder}",
                    hint="wait for it to end; `knap status` shows how far it is",
                )
            yield

    @property
    def is_held(self) -> bool:
        """Return whether the lock is held right now; false where the folder can't be locked."""
        if self._owner:
            return True
        try:
            with self.acquire(wait_s=0) as is_acquired:
                return not is_acquired
        except StorageError:
            return False


@contextmanager
def acquire_process_lock(folder: Path, name: str = WRITE_LOCK_FILE, *, wait_s: float) -> Generator[bool]:
    """Hold the lock among processes for the block, as `WriteLock.acquire` does.

    Raises:
        StorageError: The folder can't be written.
    """
    from filelock import Timeout  # noqa: PLC0415 - 15 ms that only a write should cost

    lock = private.file_lock(folder / name)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise StorageError(
            f"the index {folder} can't be locked: {error.strerror}",
            hint="check the folder's permissions and free space",
        ) from error
    try:
        yield True
    finally:
        lock.release()


def is_watched(folder: Path) -> bool:
    """Return whether a watcher is running for the vault, in any process."""
    try:
        # The absolute value, as the clock may have been set back.
        return abs(time.time() - (folder / HEARTBEAT_FILE).stat().st_mtime) < _HEARTBEAT_TIMEOUT_S
    except FileNotFoundError:
        return False


RefreshPhase = Literal["scan", "read", "embed", "publish"]
_LOOKS_PER_CLOCK = 256
_BATCH_FILES = 256
_BATCH_BYTES = 4_000_000
"""Files in one transaction, so that other writers can write in between."""


class Progress(Protocol):
    """A callback for the progress of a long operation."""

    def __call__(self, phase: RefreshPhase, done: int, total: int) -> None:
        """Report a step; *total* is 0 where it isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Whether results may be incomplete, and why."""

    stale: int = 0
    """Files that are known to differ from the index."""
    unchecked: bool = False
    """The time of a search was too short to check every file for changes, and no watcher is running."""
    incomplete: bool = False
    """The whole vault hasn't been read yet, or the index is damaged."""
    damaged: bool = False
    """The index has to be rebuilt, and answers may be wrong until then."""
    filling: bool = False
    """A process is indexing the missing files right now."""
    emptied: bool = False
    """The vault's folder is empty, but the index has many of its files: its disk may not be mounted."""
    pending: int = 0
    """Chunks without a vector, which search by meaning can't find yet."""
    deriving: bool = False
    """A process is computing vectors right now."""
    as_of: str = ""
    """ISO time with zone until when all saved changes are in the index; empty where nothing is."""
    notices: tuple[str, ...] = ()
    """What the client should know of the vault itself."""
    is_published: bool = False
    """Another machine has the vault's files, and indexes, embeds and publishes them."""

    @property
    def is_current(self) -> bool:
        """Return whether all that was saved before the check is in the index."""
        return not (self.stale or self.unchecked or self.incomplete)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPlan:
    """The differences between the disk and the index."""

    changed: tuple[FileStat, ...] = ()
    """New files, and files with another size or time."""
    doubtful: tuple[FileStat, ...] = ()
    """Files of the same size and time of which only the hash can tell whether they changed, or that couldn't be read
    the last time."""
    gone: tuple[NotePath, ...] = ()
    settled: tuple[FileStat, ...] = ()
    """Doubtful files with the same hash, whose time or inode will change at the next save."""
    unchanged: int = 0

    @property
    def is_due(self) -> bool:
        """Return whether anything has to be done."""
        return bool(self.changed or self.doubtful or self.gone or self.settled)

    @property
    def is_small(self) -> bool:
        """Return whether the plan fits into one transaction."""
        size = sum(stat.size for stat in self.changed)
        return 0 < self.stale <= _BATCH_FILES and size <= _BATCH_BYTES

    @property
    def stale(self) -> int:
        """Return the number of files that are outdated or missing in the index."""
        return len(self.changed) + len(self.gone)

    def fits(self, files: int, text_bytes: int) -> bool:
        """Return whether at most so many files are stale, with at most so many bytes to read; attachments aren't."""
        size = sum(stat.size for stat in self.changed if stat.kind != "attachment")
        return self.stale <= files and size <= text_bytes

    def without_large(self, max_bytes: int) -> RefreshPlan:
        """Return the plan without changed files of more bytes; attachments aren't read."""
        changed = tuple(stat for stat in self.changed if stat.kind == "attachment" or stat.size <= max_bytes)
        return replace(self, changed=changed)

    def count_visible_to(self, policy: Policy | None) -> int:
        """Return the number of stale files that a client may see; None sees all."""
        if policy is None:
            return self.stale
        path_pairs = [(file.path, file.target or file.path) for file in self.changed] + [
            (path, path) for path in self.gone
        ]
        return sum(policy.visible(path) and policy.visible(target) for path, target in path_pairs)


@dataclass(slots=True, kw_only=True)
class RefreshOutcome:
    """The counts and problems of a refresh."""

    indexed: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: list[str] = field(default_factory=list[str])
    was_damaged: bool = False
    """The index was damaged, and has been rebuilt."""


class VaultScan:
    """An iteration over the vault's files that records what can't be read."""

    def __init__(self, view: View, *, is_unchanged: IsUnchanged | None = None) -> None:
        """Prepare a scan of *view*; *is_unchanged* is passed to `knapper.vault.walk.list_files`."""
        self._view = view
        self._is_unchanged = is_unchanged
        self.skipped: list[Skipped] = []
        """Files that aren't listed although no rule ignores them."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Return the files and folders that can't be read right now, whose rows in the index are kept."""
        return tuple(skipped.path for skipped in self.skipped if skipped.code == "unreadable")

    def __iter__(self) -> Iterator[FileStat]:
        """Yield the files in the order of the walk."""
        return self._view.list_files(on_problem=self.skipped.append, is_unchanged=self._is_unchanged)


EMPTIED_HINT = "mount its disk; if you deleted the notes, `knap index --full` empties the index too"
_MANY_FILES = 10
"""From how many files on an empty folder is more likely a disk that isn't mounted."""


def is_emptied(root: Path, count_missing: Callable[[], int]) -> bool:
    """Return whether a vault's folder is empty, but many of its files indexed; arguments as for `check_not_emptied`."""
    try:
        with os.scandir(root) as entries:
            is_empty = next(entries, None) is None
    except OSError:
        # The walk over the folder reports why it can't be read.
        return False
    return is_empty and count_missing() >= _MANY_FILES


def check_not_emptied(root: Path, count_missing: Callable[[], int]) -> None:
    """Refuse to take an empty folder for a vault of which every note was deleted: its disk may not be mounted.

    Args:
        root: The vault's folder.
        count_missing: Counts the indexed files that would count as deleted.

    Raises:
        StorageError: The folder is empty, and had many files (code ``vault_empty``).
    """
    if is_emptied(root, count_missing):
        raise StorageError(
            f"the vault's folder is empty, but {count_missing()} of its files are in the index",
            code="vault_empty",
            hint=EMPTIED_HINT,
        )


class _BriefLook:
    """Tells files apart that are as the index knows them, by one look at each, until the time is over."""

    def __init__(self, times: dict[str, tuple[int, int, int]], deadline: float) -> None:
        self.left = times
        """The files that weren't found unchanged."""
        self.is_cut = False
        """The time was over before all files were looked at."""
        self._deadline = deadline
        self._looks = 0

    def is_unchanged(self, path: str, entry: os.DirEntry[str]) -> bool:
        self._looks += 1
        if self._looks % _LOOKS_PER_CLOCK == 0 and time.monotonic() > self._deadline:
            self.is_cut = True
        known = self.left.get(path)
        if self.is_cut or known is None:
            # Where the time is over, all that is left is passed over, folders too.
            return self.is_cut
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        now = status.st_size, status.st_mtime_ns, status.st_ctime_ns
        if now != known or not S_ISREG(status.st_mode):
            return False
        del self.left[path]
        return True


def compare_briefly(store: IndexStore, view: View, *, budget_s: float, has_rules: bool) -> tuple[RefreshPlan, bool]:
    """Compare the disk with the index for a limited time; files that have the indexed times are looked at once.

    Args:
        store: The index.
        view: The vault as its owner sees it.
        budget_s: How long the look at all files may take, and then the comparison of doubtful ones, in seconds.
        has_rules: Whether the index was built by the vault's current rules, so that what it knows isn't ignored now.

    Returns:
        How the files that were looked at differ, none of them doubtful, and whether the time was too short for others.
    """
    times, others = store.settled_times()
    # On Windows a folder's listing may have an outdated size, so that each file has to be opened.
    is_quick = has_rules and view.policy.sees_all and sys.platform != "win32"
    look = _BriefLook(dict(times) if is_quick else {}, time.monotonic() + budget_s)
    scan = VaultScan(view, is_unchanged=look.is_unchanged)
    files = list(scan)
    # What wasn't looked at isn't gone.
    looked_at = [file.path for file in files] if look.is_cut else [*others, *(look.left if is_quick else times)]
    plan = compare_files(store.states_of(looked_at), files, unreadable=scan.unreadable)
    unchanged = len(times) - len(look.left) if is_quick else 0
    plan = resolve_doubtful(store, view, plan, budget_s=budget_s)
    is_cut = look.is_cut or bool(plan.doubtful)
    return replace(plan, doubtful=(), unchanged=plan.unchanged + unchanged), is_cut


def compare_files(
    known: dict[NotePath, FileState],
    files: Iterable[FileStat],
    *,
    unreadable: Sequence[str] = (),
    retry_failed: bool = False,
) -> RefreshPlan:
    """Compare the disk with the index by size and times.

    A file with another inode, or another time of its last change of any kind, may have been saved with its old time.

    Args:
        known: The indexed states by path; emptied by the comparison.
        files: The files on disk.
        unreadable: Files and folders that can't be read now, whose rows are kept.
        retry_failed: Try again to read files that couldn't be read, although they haven't changed.
    """
    changed: list[FileStat] = []
    doubtful: list[FileStat] = []
    unchanged = 0
    for stat in files:
        known_state = known.pop(stat.path, None)
        if known_state is None or not known_state.fits(stat):
            changed.append(stat)
        elif known_state.is_doubtful(stat) or (retry_failed and known_state.failed_ns):
            doubtful.append(stat)
        else:
            unchanged += 1
    gone = tuple(path for path in known if not any(path == c or path.startswith(f"{c}/") for c in unreadable))
    return RefreshPlan(changed=tuple(changed), doubtful=tuple(doubtful), gone=gone, unchanged=unchanged)


def compare_paths(store: IndexStore, view: View, touched: Iterable[Path]) -> RefreshPlan:
    """Compare just these files, and those below these folders, with the index."""
    places = view.paths_inside(touched)
    files_by_path = {stat.path: stat for files in view.list_places(places) for stat in files}
    return compare_files(store.states_below(places), files_by_path.values())


def resolve_doubtful(store: IndexStore, view: View, plan: RefreshPlan, *, budget_s: float | None = None) -> RefreshPlan:
    """Compare the doubtful files by hash; only those with another one are indexed again.

    Args:
        store: The index.
        view: The vault as its owner sees it.
        plan: The differences that are known so far.
        budget_s: How long this may take, in seconds; what is left then stays doubtful. None compares all.
    """
    if not plan.doubtful:
        return plan
    deadline = None if budget_s is None else time.monotonic() + budget_s
    from knapper.index import chunker  # noqa: PLC0415 - as in `apply_plan`

    changed: list[FileStat] = []
    settled_files: list[FileStat] = []
    compared = 0
    for stat in plan.doubtful:
        if deadline is not None and time.monotonic() > deadline:
            break
        compared += 1
        # Checked before reading: the hash covers only saves before this moment.
        racy = chunker.is_racy(stat)
        # Of an attachment, the index knows size and time alone.
        if stat.kind != "attachment" and not chunker.has_hash(view, stat, store.hash_of(stat.path)):
            changed.append(stat)
        elif not racy:
            settled_files.append(stat)
    return replace(
        plan,
        changed=(*plan.changed, *changed),
        doubtful=plan.doubtful[compared:],
        settled=(*plan.settled, *settled_files),
        unchanged=plan.unchanged + compared - len(changed),
    )


def apply_plan(
    store: IndexStore, view: View, plan: RefreshPlan, *, progress: Progress | None = None, whole: bool = True
) -> RefreshOutcome:
    """Index changed files and remove deleted ones, whole files in each transaction; nothing is doubtful in the plan.

    New files are stored before deleted ones are removed, so that a moved note keeps its vectors. Where the plan isn't
    of the *whole* vault, its files were just written, and more of them are read without a second process.
    """
    from knapper.index import chunker  # noqa: PLC0415 - the parser's 60 ms, which only a changed file should cost

    outcome = RefreshOutcome(unchanged=plan.unchanged)
    changed_files = plan.changed
    store.settle(plan.settled)
    min_parallel = chunker.MIN_PARALLEL_FILES if whole else chunker.MIN_PARALLEL_TOUCHED
    batches = list(_split_batches(changed_files))
    for read_batch in chunker.read_batches(view, batches, min_parallel=min_parallel) if batches else ():
        with store.batch():
            changed: list[FileRows] = []
            known = store.hashes_of(rows.path for rows in read_batch)
            for rows in read_batch:
                if rows.hash and rows.hash == known.get(rows.path):
                    store.touch(rows)
                    outcome.unchanged += 1
                else:
                    changed.append(rows)
            store.apply_all(changed)
            outcome.indexed += len(changed)
            outcome.problems.extend(f"{rows.path}: {problem}" for rows in changed for problem in rows.problems)
        if progress:
            progress("read", outcome.indexed + outcome.unchanged - plan.unchanged, len(changed_files))
    # After all new files: the vectors of a moved note are copied from its old chunks.
    store.remove(plan.gone)
    outcome.removed = len(plan.gone)
    return outcome


def _split_batches(files: Sequence[FileStat]) -> Iterator[list[FileStat]]:
    batch: list[FileStat] = []
    size = 0
    for stat in files:
        batch.append(stat)
        size += stat.size
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


_PUBLISH_PAUSE_S = 10.0
"""How long a watcher waits before it publishes again what couldn't be published."""


class IndexPublisher(Protocol):
    """Copies what an index holds to where others read it."""

    def publish(
        self,
        store: IndexStore,
        view: View,
        *,
        model: str,
        take_over: bool,
        stop: threading.Event | None,
        progress: Progress | None,
    ) -> object:
        """Copy what differs; raises a `KnapError` where that fails."""
        ...

    def describe(self, store: IndexStore) -> str:
        """Say how what is published stands beside the index; raises a `KnapError` where that can't be found out."""
        ...

    def close(self) -> None:
        """Close what was opened."""
        ...


class Publishing:
    """Whether and how an index is published, if it is: indexing goes on where that fails."""

    def __init__(self, publisher: IndexPublisher | None) -> None:
        """Publish by *publisher*; None for an index of this machine alone."""
        self._publisher = publisher
        self._again_at = 0.0
        self.takes_over = False
        """Whether the next publishing takes over what another machine has published."""
        self.error: KnapError | None = None
        """Why the last publishing failed; None where it didn't, or nothing is published."""

    def run(
        self,
        store: IndexStore,
        view: View,
        model: str,
        *,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Publish what differs; ``error`` says why that failed."""
        if self._publisher is None:
            return
        try:
            self._publisher.publish(store, view, model=model, take_over=self.takes_over, stop=stop, progress=progress)
        except KnapError as error:
            self.error = error
            self._again_at = time.monotonic() + _PUBLISH_PAUSE_S
        else:
            self.error, self.takes_over = None, False

    def describe(self, store: IndexStore) -> str:
        """Say how what is published stands; empty where nothing is."""
        return self._publisher.describe(store) if self._publisher is not None else ""

    @property
    def is_due_again(self) -> bool:
        """Return whether it is time to try again what failed, such as while the server was down."""
        return self.error is not None and time.monotonic() >= self._again_at

    def close(self) -> None:
        """Close what the publisher has opened."""
        if self._publisher is not None:
            self._publisher.close()
