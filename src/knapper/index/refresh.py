"""Bring the index up to date: compare the vault with what is stored, read, and derive vectors and files from that."""

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

from knapper.errors import KnapError, StorageError
from knapper.index.database import DAMAGE_ERRORS
from knapper.index.documents import FileRows, FileState
from knapper.index.models.base import Embedder, EmbedderError, EmbedderStopped, learn_floor
from knapper.index.store import IndexStore, floor_key
from knapper.system import private
from knapper.system.private import FolderLock
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
"""Held by the one process that writes the index's rows."""
DERIVING_LOCK_FILE: Final = "deriving.lock"
"""Held by the one process that computes vectors or derives a file; others write rows meanwhile."""
_ASK_WAIT_S: Final = 0.3
"""How long a reader waits for the answer of a watcher in another process, which looks every 20 or 50 ms."""


def ask_watcher(folder: Path, wait_s: float = _ASK_WAIT_S) -> bool:
    """Ask the watcher of another process to index what it was told before this call.

    Args:
        folder: The index's own folder.
        wait_s: How long to wait for the answer, in seconds.

    Returns:
        Whether it has; otherwise the watcher is busy, has ended, or belongs to an older version.
    """
    ask = folder / SIGNAL_FOLDER / f"{ASK_PREFIX}{secrets.token_hex(8)}"
    if not private.make_signal(ask):
        return False
    deadline = time.monotonic() + wait_s
    try:
        while ask.exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
    finally:
        private.remove_signal(ask)
    return True


HEARTBEAT_FILE: Final = "watch.beat"
_HEARTBEAT_TIMEOUT_S = 10.0
"""A watcher whose last heartbeat is older than this counts as ended."""


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


LOCK_WAIT_S: Final = 0.5
"""How long to wait for another process that derives, which then does all that is to be done."""
_STORE_WAIT_S: Final = 60.0
"""How long a batch of vectors waits while another process writes; it is computed again later if that takes longer."""
_QUICK_WAIT_S: Final = 0.2
"""The same, where somebody waits for an answer."""
_STOP_LOOK_S: Final = 0.5
"""How often whoever waits looks whether it is to stop."""
_INSTANT_BATCH_CHUNKS: Final = 512
_BATCH_CHUNKS: Final = 128
"""Of an embedder that takes seconds for so many: what is saved meanwhile is indexed between two batches."""
_MAX_INLINE_CHUNKS: Final = 500
"""How many chunks a search embeds itself, where that needs no network."""


class Deriver:
    """Derives what search needs beside an index's rows: one process at a time, while others write to the index."""

    def __init__(self, store: IndexStore, folder: Path, write_lock: FolderLock) -> None:
        """Derive from a store.

        Args:
            store: The index.
            folder: Its folder.
            write_lock: Its lock, held only while a batch is stored.
        """
        self.lock = FolderLock(folder, DERIVING_LOCK_FILE)
        self._store, self._write_lock = store, write_lock

    def embed(
        self,
        embedder: Embedder,
        *,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
        pauses: Callable[[], bool] | None = None,
        wait_s: float = LOCK_WAIT_S,
    ) -> int:
        """Embed all chunks without a vector of this model; nothing where another process does.

        Args:
            embedder: Computes the vectors.
            progress: Called after each batch.
            stop: Ends the work after the running batch, or at once while waiting for a server.
            pauses: Asked after each batch whether the work should end, to be continued by another call.
            wait_s: How long to wait for another process, in seconds.

        Returns:
            The number of new vectors.

        Raises:
            KnapError: The embedder failed, or another process embeds with vectors of another length; those stored
                before are kept.
        """
        if not self._count_due(embedder):
            return 0
        with holding(self.lock, wait_s, stop) as is_acquired:
            if not is_acquired:
                return 0
            return self._embed(embedder, _STORE_WAIT_S, progress=progress, stop=stop, pauses=pauses)

    def embed_quickly(self, embedder: Embedder) -> int:
        """Embed a few chunks where that takes only a moment; return how many still lack a vector."""
        due = self._count_due(embedder)
        if embedder.instant and 0 < due <= _MAX_INLINE_CHUNKS:
            with suppress(EmbedderError, StorageError), self.lock.acquire(wait_s=0) as is_acquired:
                if is_acquired:
                    _ = self._embed(embedder, _QUICK_WAIT_S)
        return self._store.count_pending(embedder.model_id)

    def derive_due_files(self, model: str = "") -> None:
        """Derive the file of postings, and with *model* that of its vectors, where that is due."""
        from knapper.index import vectors  # noqa: PLC0415 - only a writer needs them
        from knapper.index.words import postings  # noqa: PLC0415 - the same

        stored = self._store.database
        with suppress(OSError, StorageError, *DAMAGE_ERRORS):
            if postings.is_due(stored):
                self.derive_postings(wait_s=LOCK_WAIT_S)
            if model and vectors.is_due(stored, model):
                with self.lock.acquire(wait_s=LOCK_WAIT_S) as is_acquired:
                    if is_acquired:
                        vectors.build(stored, model)

    def derive_postings(self, *, wait_s: float = 0) -> None:
        """Derive the file of postings where that is due, and remove old files; nothing where another process derives.

        Without it, searches take longer, with the same answers.
        """
        from knapper.index import vectors  # noqa: PLC0415 - as above
        from knapper.index.words import postings  # noqa: PLC0415 - the same

        with suppress(OSError, StorageError, *DAMAGE_ERRORS), self.lock.acquire(wait_s=wait_s) as is_acquired:
            if not is_acquired:
                return
            vectors.remove_stray_files(self._store.database)
            if postings.is_due(self._store.database):
                postings.build(self._store.database)
            else:
                postings.remove_stray_files(self._store.database)

    def _count_due(self, embedder: Embedder) -> int:
        """Count the chunks without a vector of this model; 1 where only its floor isn't known yet."""
        return self._store.count_pending(embedder.model_id) or int(not _has_floor(self._store, embedder))

    def _embed(
        self,
        embedder: Embedder,
        wait_s: float,
        *,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
        pauses: Callable[[], bool] | None = None,
    ) -> int:
        """Embed all chunks, also those that come meanwhile; a batch waits *wait_s* seconds to be stored."""
        from knapper.index.chunker import embedding_text  # noqa: PLC0415 - 60 ms for the parser, only for new text

        limit = _INSTANT_BATCH_CHUNKS if embedder.instant else _BATCH_CHUNKS
        total, embedded, last_id = self._store.count_pending(embedder.model_id), 0, 0
        while not (stop and stop.is_set()):
            batch = self._store.pending(embedder.model_id, after=last_id, limit=limit)
            if not batch and not last_id:
                break
            if not batch:
                last_id = 0  # once more from the beginning, as chunks of earlier files may have come
                continue
            try:
                vectors = embedder.passages([embedding_text(row.title, row.path, row.text) for row in batch], stop=stop)
            except EmbedderStopped:
                return embedded
            with holding(self._write_lock, wait_s, stop) as may_store:
                if not may_store:
                    return embedded
                is_replaced = _has_other_length(self._store, embedder.model_id, vectors.shape[1])
                stored = self._store.add_vectors(embedder.model_id, batch, vectors)
            # All chunks wait again where the vectors were replaced or the index was begun anew, also earlier ones.
            last_id = batch[-1].id if stored and not is_replaced else 0
            embedded += stored
            if progress:
                progress("embed", embedded, max(total, embedded))
            if pauses and pauses():
                return embedded
        # After the vectors: those of a model that was changed behind its name remove the floor that was learnt before.
        with suppress(EmbedderStopped):
            _ensure_floor(self._store, embedder, stop=stop)
        return embedded


@contextmanager
def holding(lock: FolderLock, wait_s: float, stop: threading.Event | None) -> Generator[bool]:
    """Hold a lock for the block; false where others held it for *wait_s* seconds, or until *stop* was set."""
    deadline = time.monotonic() + wait_s
    while True:
        left_s = deadline - time.monotonic()
        with lock.acquire(wait_s=max(min(left_s, _STOP_LOOK_S), 0)) as is_acquired:
            if is_acquired or left_s <= 0 or (stop and stop.is_set()):
                yield is_acquired
                return


def _has_other_length(store: IndexStore, model: str, length: int) -> bool:
    """Return whether the stored vectors have another length than new ones, which then replace them all.

    Raises:
        EmbedderError: This process has stored vectors of this length before, so another one has replaced them: each
            would go on removing the other's.
    """
    stored = store.vector_length(model)
    if stored in {0, length}:
        store.own_lengths[model] = length
        return False
    if store.own_lengths.get(model) == length:
        raise EmbedderError(
            f"another process has stored vectors of {stored} numbers under the model name '{model}', and this one makes"
            f" vectors of {length}",
            hint="use the same model in both, and start this process anew",
            code="embedder_changed",
        )
    store.own_lengths[model] = length
    return True


def _has_floor(store: IndexStore, embedder: Embedder) -> bool:
    """Return whether the index knows the model's floor; nothing needs one where no chunk is stored."""
    return bool(store.meta(floor_key(embedder.model_id))) or store.is_empty


def _ensure_floor(store: IndexStore, embedder: Embedder, *, stop: threading.Event | None = None) -> None:
    """Learn and store the model's floor where the index has none yet.

    Raises:
        EmbedderError: The embedder failed.
    """
    if not _has_floor(store, embedder):
        store.set_meta(floor_key(embedder.model_id), f"{learn_floor(embedder, stop=stop):.4f}", counts=False)
