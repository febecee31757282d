"""Hold one vault's index open: bring it up to date, search it, say how it stands."""

import contextlib
import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from knapper.errors import ConflictError, StorageError
from knapper.index import lock, refresh, status
from knapper.index.catalog import Catalog
from knapper.index.embedders.base import Embedder, EmbedderError
from knapper.index.filters import Filter
from knapper.index.graph import Graph
from knapper.index.lock import WriteLock
from knapper.index.refresh import Progress, RefreshOutcome, RefreshPlan
from knapper.index.search import Fusion, OpenNote, Searcher, SearchRequest, SearchResult
from knapper.index.snapshot import SqliteSnapshotCache
from knapper.index.status import Freshness, IndexStatus
from knapper.index.store import IndexStore
from knapper.vault.access import Policy
from knapper.vault.view import View
from knapper.vault.walk import FileStat

_SCAN_BUDGET_S = 0.3
"""How long a search may spend on looking for changed files before it answers from what it has."""
_MAX_INLINE_FILES = 200
"""How many changed files a search takes in by itself."""
_EMBED_LOCK_WAIT_S = 0.5
"""How long an embedding waits for who is just writing, such as a search that embeds a few chunks by itself."""
_COMPARE_INTERVAL_S = 3_600.0
"""Where nobody says another time."""
_RULES_META = "rules"


class Engine:
    """Join the store, the vault's view and the embedder of one index.

    Any thread may use it; several processes may have the same index open.
    """

    def __init__(
        self,
        folder: Path,
        view: View,
        *,
        open_embedder: Callable[[], Embedder | None],
        fusion: Fusion = "convex",
        compare_every_s: float = _COMPARE_INTERVAL_S,
    ) -> None:
        """Open the index in *folder*, and make it where there is none.

        Args:
            folder: The index's own folder, outside the vault.
            view: The vault as its owner sees it.
            open_embedder: Makes the embedder when it is first needed; None stands for search by words only.
            fusion: How rankings are joined where a question doesn't say.
            compare_every_s: How often a watcher compares the whole vault, for what the system didn't tell it.
        """
        self.folder = folder
        self.compare_every_s = compare_every_s
        self.store = IndexStore(folder / "index.db")
        self.graph = Graph(self.store)
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._embedder_asked = False
        self._snapshots = SqliteSnapshotCache(self.store)
        self.catalog = Catalog(self.store, self.graph, self._snapshots.allowed, self._with_current_rules)
        self.view = replace(view, alike=self.catalog.similar_paths)
        self._searcher = Searcher(self._snapshots, lambda: self.embedder, fusion=fusion)
        self._lock = threading.Lock()
        self._inline_refresh_lock = threading.Lock()
        self._write_lock = WriteLock(folder)

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder; None where search goes by words only."""
        with self._lock:
            if not self._embedder_asked:
                self._embedder = self._open_embedder()
                self._embedder_asked = True
            return self._embedder

    @property
    def model(self) -> str:
        """Return the embedder's id; empty where there is none."""
        return self.embedder.model_id if self.embedder else ""

    def refresh(self, *, full: bool = False, progress: Progress | None = None, wait_s: float = 60.0) -> RefreshOutcome:
        """Bring the words up to what lies on disk; vectors come with ``embed``.

        Args:
            full: Forget all first.
            progress: Hears of each batch of files.
            wait_s: How long to wait while another process writes.

        Raises:
            ConflictError: Another process has been writing all that time.
            StorageError: The index can't be written.
        """
        with self._write_lock.acquire(wait_s=wait_s) as is_acquired:
            if not is_acquired:
                raise ConflictError(
                    f"another process is writing the index {self.folder}",
                    hint="wait for it to end; `knap status` shows how far it is",
                )
            if full:
                self.store.clear()
            scan = refresh.VaultScan(self.view)
            files = list(scan)
            plan = refresh.compare_files(self.store.file_states(), files, unreadable=scan.unreadable, retry_failed=True)
            outcome = self._carry_out(plan, progress, whole=True)
            outcome.problems += status.store_skipped(self.store, scan.skipped)
            return outcome

    def embed(self, *, progress: Progress | None = None, stop: threading.Event | None = None) -> int:
        """Return every chunk that waits for it its vector; returns how many got one."""
        embedder = self.embedder
        if embedder is None or not self.store.count_pending(embedder.model_id):
            return 0
        with self._write_lock.acquire(wait_s=_EMBED_LOCK_WAIT_S) as is_acquired:
            return refresh.embed_pending(self.store, embedder, progress=progress, stop=stop) if is_acquired else 0

    def freshen(self, *, meaning: bool = True, policy: Policy | None = None) -> Freshness:
        """Take in what changed since the last look, where that is quick; say what is missing otherwise.

        Args:
            meaning: Vectors are wanted too.
            policy: The asker's; files that it hides are taken in, and not counted.
        """
        has_watcher = lock.is_watched(self.folder)
        generation_before = self.store.generation()
        plan, unchecked = (RefreshPlan(), False) if has_watcher else self._scan_briefly()
        stale = plan.stale if policy is None else plan.count_visible_to(policy)
        changed_count = plan.stale + len(plan.doubtful)
        complete = self.store.meta("complete") == "1"
        is_refresh_due = changed_count or not complete or not self._has_current_rules
        if (
            not (has_watcher or unchecked)
            and is_refresh_due
            and changed_count <= _MAX_INLINE_FILES
            and self._refresh_inline(plan, generation_before)
        ):
            stale, complete = 0, True
        pending = self._embed_inline() if meaning else 0
        if pending and policy is not None and not policy.sees_all:
            pending = self.status(Filter(policy=policy)).pending
        is_filling = (bool(stale) or not complete) and self.is_being_filled
        return Freshness(stale=stale, unchecked=unchecked, incomplete=not complete, filling=is_filling, pending=pending)

    @property
    def is_being_filled(self) -> bool:
        """Return whether somebody, in whichever process, is just taking files in or giving chunks their vectors."""
        return self._write_lock.is_held

    def search(self, question: SearchRequest) -> SearchResult:
        """Answer from the index as it stands; what the vault's rules hide by now isn't there."""
        return self._searcher.search(replace(question, where=self._with_current_rules(question.where)))

    def related(self, question: SearchRequest, beside: OpenNote | None) -> SearchResult:
        """Answer as `knapper.index.search.Searcher.related` does, by the vault's rules of now."""
        return self._searcher.related(replace(question, where=self._with_current_rules(question.where)), beside)

    def status(self, where: Filter | None = None) -> IndexStatus:
        """Count what the index holds of the files that pass *where*, or of all."""
        with self.store.database.snapshot() as connection:
            effective_filter = self._with_current_rules(where or Filter())
            allowed = self._snapshots.allowed.mask(connection, effective_filter)
            return status.read_status(
                self.store, connection, model=self.model, allowed=allowed, policy=effective_filter.policy
            )

    def close(self) -> None:
        """Close the index, and its embedder."""
        self._snapshots.close()
        with self._lock:
            if self._embedder is not None:
                self._embedder.close()
        self.store.close()

    def __enter__(self) -> Self:
        """Use the engine as a context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def catch_up(self) -> None:
        """Take in all that changed, however long that takes, before something relies on the whole vault's links.

        Raises:
            ConflictError: Another process has been writing the index for a minute.
        """
        if self.store.meta("complete") == "1" and lock.is_watched(self.folder):
            return
        _ = self.refresh()

    def refresh_paths(self, touched: Iterable[Path]) -> RefreshOutcome:
        """Take in just these files and folders; others stay as they are.

        Raises:
            ConflictError: Another process is writing.
        """
        with self._write_lock.acquire(wait_s=1.0) as is_acquired:
            if not is_acquired:
                raise ConflictError(f"another process is writing the index {self.folder}")
            plan = self._plan(touched)  # now: while it waited, files may have come and gone
            return self._carry_out(plan, None, whole=False) if plan.is_due else RefreshOutcome(unchanged=plan.unchanged)

    def is_up_to_date(self, touched: Iterable[Path]) -> bool:
        """Return whether the index has all there is to say of files and folders, and nobody writes by an older look."""
        return not (self.is_being_filled or self._plan(touched).is_due)

    def read_rules(self) -> None:
        """Read again what the vault itself says of what isn't part of it.

        Raises:
            SetupError: It can't be read.
        """
        self.view = replace(View.open(self.view.root, self.view.policy), alike=self.view.alike)

    @property
    def _has_current_rules(self) -> bool:
        """Return whether all that the index holds was taken in by the rules of today."""
        return self.store.meta(_RULES_META) == self.view.ignore.fingerprint

    def _with_current_rules(self, where: Filter) -> Filter:
        return where if self._has_current_rules else replace(where, ignore=self.view.ignore)

    def _scan_briefly(self) -> tuple[RefreshPlan, bool]:
        """Compare the disk with the index for a short while; tell also whether that wasn't enough."""
        deadline = time.monotonic() + _SCAN_BUDGET_S
        files: list[FileStat] = []
        scan = refresh.VaultScan(self.view)
        for stat in scan:
            files.append(stat)
            if len(files) % 256 == 0 and time.monotonic() > deadline:
                return RefreshPlan(), True
        return refresh.compare_files(self.store.file_states(), files, unreadable=scan.unreadable), False

    def _refresh_inline(self, plan: RefreshPlan, generation_before: int) -> bool:
        """Carry a small plan out; tell whether that was possible, since what is there is searched all the same.

        Args:
            plan: How the disk differs from the index.
            generation_before: The index's generation when that was read; another process may have refreshed it since.
        """
        try:
            with self._inline_refresh_lock, self._write_lock.acquire(wait_s=0) as is_acquired:
                if is_acquired and self.store.generation() != generation_before:
                    plan, unchecked = self._scan_briefly()
                    is_acquired = not unchecked
                if is_acquired:
                    self._carry_out(plan, None, whole=True)
                return is_acquired
        except StorageError:  # a full disk, a folder that can only be read
            return False

    def _embed_inline(self) -> int:
        """Embed what is quickly embedded here, and count what still waits."""
        try:
            embedder = self.embedder
            pending = self.store.count_pending(embedder.model_id) if embedder else 0
        except EmbedderError:  # the search itself says what is wrong with the embedder
            return 0
        if embedder and refresh.is_quick_to_embed(embedder, pending):
            with contextlib.suppress(EmbedderError, StorageError), self._write_lock.acquire(wait_s=0) as is_acquired:
                pending -= refresh.embed_pending(self.store, embedder) if is_acquired else 0
        return pending

    def _plan(self, touched: Iterable[Path]) -> RefreshPlan:
        """Return how some files and folders differ from the index."""
        plan = refresh.compare_paths(self.store, self.view, touched)
        return refresh.resolve_doubtful(self.store, self.view, plan)

    def _carry_out(self, plan: RefreshPlan, progress: Progress | None, *, whole: bool) -> RefreshOutcome:
        """Carry a plan out, and note by whose rules; *whole* says that the plan is about all files."""
        plan = refresh.resolve_doubtful(self.store, self.view, plan)
        if not self._has_current_rules:
            self.store.set_meta(_RULES_META, "")  # until all is done, and after a part of it: nobody's alone
        with self.store.batch() if plan.is_small else contextlib.nullcontext():
            outcome = refresh.apply_plan(self.store, self.view, plan, progress=progress)
            is_first_complete = whole and self.store.meta("complete") != "1"
            if outcome.indexed or outcome.removed or is_first_complete:
                with self.store.batch():
                    if is_first_complete:
                        self.store.set_meta("complete", "1")
                    self.store.forget()
                    self.store.set_meta("built", dt.datetime.now(dt.UTC).isoformat(timespec="seconds"))
        if whole and not self._has_current_rules:
            self.store.set_meta(_RULES_META, self.view.ignore.fingerprint)
        return outcome
