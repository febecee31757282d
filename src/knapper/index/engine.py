"""One vault's index: bring it up to date, search it and report its status."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, cast

from knapper.errors import ConflictError, StorageError
from knapper.index import database, refresh, status
from knapper.index.catalog import Catalog
from knapper.index.database import DAMAGE_ERRORS
from knapper.index.documents import Filter, FilterMasks
from knapper.index.graph import Graph
from knapper.index.models.base import Embedder, EmbedderError
from knapper.index.refresh import LOCK_WAIT_S, Deriver, Freshness, Publishing, RefreshOutcome, RefreshPlan
from knapper.index.status import IndexStatus
from knapper.index.store import IndexStore
from knapper.system import arrays
from knapper.system.private import FolderLock
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View

if TYPE_CHECKING:
    from knapper.index.feed import ChangeFeed
    from knapper.index.models.base import Reranking
    from knapper.index.refresh import IndexPublisher, Progress
    from knapper.index.search import OpenNote, Searcher, SearchRequest, SearchResult
    from knapper.index.snapshot import Fusion, SnapshotCache
    from knapper.index.tokenizer import Query


_SCAN_BUDGET_S = 0.6
"""How long a search may look for changed files before it answers from the index as it is."""
_MAX_INLINE_FILES = 200
MAX_INLINE_BYTES = 4_000_000
"""How many changed files, and of what size together, a search indexes itself: about a second's work."""
_MAX_INLINE_REPORTS = 1_000
"""How many reported files and folders a search looks at itself."""
_MAX_INLINE_CHECK_BYTES = 100_000_000
"""Size of an index that a search checks itself, which takes 2 s of processor time for that."""
_CHANGED_NOTICE = "something else has changed the index's file, so answers may be wrong: `knap index` checks it"
_REPORTS_LOCK_WAIT_S = 0.2
"""How long a search waits for a current writer, which may be the watcher with the same files."""
_RULES_META = "rules"
_NAMES_LOCK_WAIT_S = 5.0
"""How long a change by a note's name waits while another process writes the index."""
_NAMES_PAUSE = 9.0
"""How many times as long as looking for changed files took, names are taken from the index as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFusion:
    """How rankings by words and by meaning are joined, where a request doesn't say."""

    method: Fusion = "convex"
    meaning: float | None = None
    """Weight of meaning beside words, 0 to 1; None takes what suits the embedder."""
    reranking: Reranking | None = None
    """What puts the best passages into a better order; None for nothing."""


USUAL_FUSION: Final = RankFusion()


class Engine:
    """An open index with its store, the vault's view and the embedder.

    Thread-safe; several processes may have the same index open.
    """

    def __init__(
        self,
        folder: Path,
        view: View,
        *,
        open_embedder: Callable[[], Embedder | None],
        fusion: RankFusion = USUAL_FUSION,
        compare_every_s: float = 3_600.0,
        publisher: IndexPublisher | None = None,
    ) -> None:
        """Open the index in *folder*; create it where there is none.

        Args:
            folder: The index's own folder, outside the vault.
            view: The vault as its owner sees it.
            open_embedder: Opens the embedder when it is first needed; returns None for search by words only.
            fusion: How rankings are joined.
            compare_every_s: How often a watcher compares the whole vault, for changes that the system didn't report.
            publisher: Copies to a team's database what the index holds; None for an index of this machine alone.
        """
        self.folder = folder
        self.publishing = Publishing(publisher)
        self.compare_every_s = compare_every_s
        self.store = IndexStore(folder / database.INDEX_FILE)
        if self.store.database.replaced:
            database.mark_damage(folder, self.store.database.replaced)
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._embedder_asked = False
        self._allowed = FilterMasks()
        self.view = replace(view, alike=self._similar_paths, named=self._find_named)
        self._fusion = fusion
        self._snapshots: SnapshotCache | None = None
        self._searcher: Searcher | None = None
        self._lock = threading.Lock()
        self._inline_refresh_lock = threading.Lock()
        self._write_lock = FolderLock(folder, refresh.WRITE_LOCK_FILE)
        self._deriver = Deriver(self.store, folder, self._write_lock)
        self._names_valid_until = 0.0
        self._feed: ChangeFeed | None = None
        self._current_at: dt.datetime | None = None
        """Until when all changes are known to be in the index; None where this process hasn't checked."""

    @cached_property
    def graph(self) -> Graph:
        """Return the links between files; opened when they are first asked for, as most questions are about texts."""
        return Graph(self.store)

    @cached_property
    def catalog(self) -> Catalog:
        """Return the listings of files, folders and tags; opened when one is first asked for."""
        return Catalog(self.store, self.graph, self._allowed, self._with_current_rules)

    def _open_searcher(self) -> Searcher:
        """Return what ranks; made at the first question, since reading and editing do without what it loads."""
        from knapper.index.search import Searcher  # noqa: PLC0415 - 0.1 s, numpy not counted

        with self._lock:
            if self._searcher is None:
                self._snapshots = self._make_snapshots()
                self._searcher = Searcher(
                    self._snapshots,
                    lambda: self.embedder,
                    fusion=self._fusion.method,
                    meaning=self._fusion.meaning,
                    reranking=self._fusion.reranking,
                )
            return self._searcher

    def _make_snapshots(self) -> SnapshotCache:
        from knapper.index.snapshot import SqliteSnapshotCache  # noqa: PLC0415 - as above

        return SqliteSnapshotCache(self.store, self._allowed)

    def open_snapshots(self) -> SnapshotCache:
        """Return what opens states of the index."""
        _ = self._open_searcher()
        return cast("SnapshotCache", self._snapshots)

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder; None for search by words only."""
        with self._lock:
            if not self._embedder_asked:
                self._embedder = self._open_embedder()
                self._embedder_asked = True
            return self._embedder

    @property
    def model(self) -> str:
        """Return the embedder's id; empty where there is none."""
        return self.embedder.model_id if self.embedder else ""

    def refresh(
        self, *, full: bool = False, check: bool = True, progress: Progress | None = None, wait_s: float = 60.0
    ) -> RefreshOutcome:
        """Index all changed files; their vectors are computed by ``embed``.

        An index that is found damaged is rebuilt; the outcome's problems say so.

        Args:
            full: Clear the index first.
            check: Check the whole index first, which takes about 1.5 s for 30,000 chunks.
            progress: Called after each batch of files.
            wait_s: How long to wait while another process writes.

        Raises:
            ConflictError: Another process was writing for all of this time.
            StorageError: The index can't be written.
        """
        with self._write_lock.hold(wait_s=wait_s):
            if full:
                self.publishing.takes_over = True
                outcome = self._rebuild(progress)
            else:
                refresh.check_not_emptied(self.view.root, self.store.count_files)
                outcome = self._refresh_or_rebuild(self.damage or (self._find_damage() if check else ""), progress)
        # Not under the lock, as edits would wait for it.
        self._deriver.derive_postings()
        return outcome

    def _refresh_or_rebuild(self, damage: str, progress: Progress | None) -> RefreshOutcome:
        """Index all changed files, or the whole vault anew where the index is damaged; under the write lock."""
        if not damage:
            try:
                outcome = self._refresh_all(progress)
            except (*DAMAGE_ERRORS, StorageError) as error:
                is_known = database.is_damage(error)
                damage = database.describe_damage(error) if is_known else self._damage_behind(error)
                if not damage:
                    raise
            else:
                if not (damage := self.damage):
                    return outcome
        outcome = self._rebuild(progress)
        outcome.was_damaged = True
        outcome.problems.insert(0, f"the index was damaged ({damage}), and has been rebuilt")
        return outcome

    def filling(self, *, wait_s: float = 60.0, stop: threading.Event | None = None) -> AbstractContextManager[bool]:
        """Keep others from filling the index for a block, in which this thread may call `refresh` and `embed`.

        Edits and searches go on, and index what they need. Where another process computes vectors for longer than
        *wait_s*, or until *stop* is set, the block begins all the same, with False: that process goes on with what is
        then in the index.
        """
        return refresh.holding(self._deriver.lock, wait_s, stop)

    def _find_damage(self) -> str:
        damage = status.find_damage(self.store.database)
        arrays.return_free_memory()
        if not damage:
            self.store.database.trust()
        return damage

    @property
    def _is_changed_by_others(self) -> bool:
        """Return whether something else has changed the index's files, and no watcher or writer checks it anyway."""
        return not (self.store.database.is_trusted or self.damage or self.is_followed or self.is_being_filled)

    def _find_foreign_damage(self) -> str:
        """Check the whole index once where something else has changed its files; mark a damaged one."""
        stored = self.store.database
        # In this order: asking whether another process writes takes half a millisecond.
        if stored.is_trusted or stored.is_larger(_MAX_INLINE_CHECK_BYTES) or not self._is_changed_by_others:
            return ""
        with self._inline_refresh_lock:
            damage = "" if stored.is_trusted or self.damage else self._find_damage()
            if damage:
                database.mark_damage(self.folder, damage)
            return damage

    def _rebuild(self, progress: Progress | None) -> RefreshOutcome:
        """Clear the index, and read the whole vault."""
        self.store.clear()
        database.remove_damage_mark(self.folder)
        self.store.database.trust()
        return self._refresh_all(progress)

    def _refresh_all(self, progress: Progress | None) -> RefreshOutcome:
        """Compare the whole vault with the index, and take in what changed."""
        scan = refresh.VaultScan(self.view)
        files = list(scan)
        plan = refresh.compare_files(self.store.file_states(), files, unreadable=scan.unreadable, retry_failed=True)
        outcome = self._carry_out(plan, progress, whole=True)
        outcome.problems += status.store_skipped(self.store, scan.skipped)
        return outcome

    @property
    def damage(self) -> str:
        """Return why the index has to be rebuilt; empty where nothing is known of any damage."""
        return database.read_damage_mark(self.folder)

    @property
    def is_complete(self) -> bool:
        """Return whether the whole vault was read since the index was created, and no damage is known."""
        return self.store.meta("complete") == "1" and not self.damage

    def explain(self, error: Exception) -> StorageError | None:
        """Return the error for a damaged index where that caused *error*, and mark the index; None for other causes.

        A damaged value raises anything, and another database may be the damaged one, so the whole index is checked.
        """
        damage = status.find_damage(self.store.database, words_too=False) if isinstance(error, DAMAGE_ERRORS) else ""
        return self._report_damage(damage) if damage else None

    def _report_damage(self, damage: str) -> StorageError:
        """Mark the index as damaged, and return the error that says so."""
        database.mark_damage(self.folder, damage)
        return StorageError(
            f"the index is damaged: {damage}", code="index_damaged", hint="`knap index` rebuilds it from the notes"
        )

    def embed(
        self,
        *,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
        pauses: Callable[[], bool] | None = None,
        publishes: bool = True,
        wait_s: float = LOCK_WAIT_S,
    ) -> int:
        """Compute the missing vectors of all chunks, with *publishes* publish them; return how many were added.

        Derives the files that large indexes are searched with, where that is due: work for the time after a save.
        *stop* and *pauses* end it as in `Deriver.embed`, and *wait_s* is how long it waits for another process.
        """
        self._deriver.derive_due_files()
        embedder, embedded = self.embedder, 0
        if embedder is not None:
            embedded = self._deriver.embed(embedder, progress=progress, stop=stop, pauses=pauses, wait_s=wait_s)
            if not (stop and stop.is_set()):
                # That of postings once more: whoever found it due meanwhile has left it to this process.
                self._deriver.derive_due_files(embedder.model_id)
        if publishes:
            self.publish(progress=progress, stop=stop)
        return embedded

    def publish(self, *, progress: Progress | None = None, stop: threading.Event | None = None) -> None:
        """Copy what the index holds to the team's database, if there is one; ``publishing`` says why that failed."""
        if self.is_complete:
            self.publishing.run(self.store, self.view, self.model, progress=progress, stop=stop)

    def check_source(self) -> str:
        """Say what of the index is shared with other machines; empty where nothing is.

        Raises:
            KnapError: Where it is shared can't be reached or used.
        """
        return self.publishing.describe(self.store)

    def follow_source(
        self, stop: threading.Event, on_change: Callable[[RefreshOutcome], None], progress: Progress | None = None
    ) -> bool:
        """Follow what the index is a copy of; return False where that is the vault's own files."""
        del stop, on_change, progress
        return False

    def freshen(self, *, meaning: bool = True, policy: Policy | None = None) -> Freshness:
        """Index recent changes where that is quick; report what is missing otherwise.

        Args:
            meaning: Whether vectors are needed, too.
            policy: The client's policy; hidden files are indexed but not counted.

        Raises:
            StorageError: The index is damaged, as was found on the way.
        """
        _ = self._find_foreign_damage()
        with self._explained():
            began = dt.datetime.now().astimezone()
            checked = self._check_events(policy, began) or self._check_files(policy, began)
            pending = self._embed_inline() if meaning else 0
            if pending and policy is not None and not policy.sees_all:
                pending = self.status(Filter(policy=policy)).pending
            is_filling = (bool(checked.stale) or checked.incomplete) and self.is_being_written
            # A file that is hidden from the client, and that the index lacks, has no part in its answer.
            as_of: dt.datetime | None = began
            if not checked.is_current:
                built = self.store.meta("built")
                as_of = self._current_at or (dt.datetime.fromisoformat(built).astimezone() if built else None)
            shown = as_of.isoformat(timespec="milliseconds") if as_of else ""
            notices = (_CHANGED_NOTICE,) if self._is_changed_by_others else ()
            is_deriving = bool(pending) and self.is_deriving
            return replace(
                checked, filling=is_filling, pending=pending, deriving=is_deriving, as_of=shown, notices=notices
            )

    def _all_current(self, since: dt.datetime) -> Freshness:
        """Record that all that was saved before a time is in the index, unless that was never filled."""
        freshness = self._freshness(0)
        if freshness.is_current:
            self._current_at = max(self._current_at or since, since)
        return freshness

    def _check_events(self, policy: Policy | None, began: dt.datetime) -> Freshness | None:
        """Index what a watcher was told of until now; return None where no watcher can say, so that files are compared.

        In another process, the watcher itself is asked to.
        """
        feed = self._feed
        if feed is None:
            if not (refresh.is_watched(self.folder) and refresh.ask_watcher(self.folder)):
                return None
            return self._all_current(began)
        if not feed.sync():
            return None
        taken = feed.waiting()
        if any(self.view.root / rules in taken for rules in refresh.RULE_FILES):
            self.read_rules()
            return None
        if not taken or self._index_reported(taken):
            feed.settle(taken)
            return self._all_current(began)
        inside = (path.relative_to(self.view.root) for path in taken if path.is_relative_to(self.view.root))
        return self._freshness(sum(policy is None or policy.visible(NotePath(path.as_posix())) for path in inside))

    def _index_reported(self, touched: Collection[Path]) -> bool:
        """Index a few reported files; return whether that was possible at once."""
        if len(touched) > _MAX_INLINE_REPORTS:
            return False
        try:
            with self._write_lock.acquire(wait_s=_REPORTS_LOCK_WAIT_S) as is_acquired:
                if is_acquired:
                    plan = self._plan(touched)
                    is_acquired = plan.fits(_MAX_INLINE_FILES, MAX_INLINE_BYTES)
                    if is_acquired and plan.is_due:
                        self._carry_out(plan, None, whole=False)
                return is_acquired
        except StorageError:
            # Such as a full disk: the search answers from the index as it is.
            return False

    def _check_files(self, policy: Policy | None, began: dt.datetime) -> Freshness:
        """Compare the vault's files with the index for a limited time, and index a few changes."""
        generation = self.store.generation()
        plan, unchecked = self._scan_briefly()
        stale = plan.count_visible_to(policy)
        is_due = plan.is_due or not self.is_complete or not self._has_current_rules
        is_small = plan.fits(_MAX_INLINE_FILES, MAX_INLINE_BYTES)
        quick = plan.without_large(MAX_INLINE_BYTES)
        is_quick = quick.is_due and quick.fits(_MAX_INLINE_FILES, MAX_INLINE_BYTES)
        if (unchecked or not is_small) and is_quick and self._refresh_inline(quick, generation, whole=False):
            # What was found in time, and isn't large, is indexed; the answer says that this isn't all.
            stale -= quick.count_visible_to(policy)
        if not unchecked and (not is_due or (is_small and self._refresh_inline(plan, generation, whole=True))):
            return self._all_current(began)
        return self._freshness(stale, unchecked=unchecked)

    def check_freshness(self, policy: Policy | None = None) -> Freshness:
        """Report what the index lacks of a client's files, in a search's time; only a watcher's reports are indexed."""
        if not self.is_complete:
            return self._freshness(0, unchecked=True)
        if checked := self._check_events(policy, dt.datetime.now().astimezone()):
            return checked
        plan, unchecked = self._scan_briefly()
        return self._freshness(plan.count_visible_to(policy), unchecked=unchecked)

    def _freshness(self, stale: int, *, unchecked: bool = False) -> Freshness:
        return Freshness(
            stale=stale,
            unchecked=unchecked,
            incomplete=not self.is_complete,
            damaged=bool(self.damage),
            emptied=bool(stale) and refresh.is_emptied(self.view.root, self.store.count_files),
        )

    @contextlib.contextmanager
    def followed_by(self, feed: ChangeFeed) -> Generator[None]:
        """Take changes from a watcher's feed within the block: readers look at no files, and wait for no debounce."""
        self._feed = feed
        try:
            yield
        finally:
            self._feed = None

    @property
    def is_followed(self) -> bool:
        """Return whether a watcher keeps the index up to date, in this process or another."""
        return self._feed is not None or refresh.is_watched(self.folder)

    @property
    def is_being_filled(self) -> bool:
        """Return whether any process is writing the index right now, or computing vectors for it."""
        return self.is_being_written or self.is_deriving

    @property
    def is_deriving(self) -> bool:
        """Return whether any process is computing vectors right now."""
        return self._deriver.lock.is_held

    @property
    def is_being_written(self) -> bool:
        """Return whether any process is writing the index right now, so that other writers wait for it."""
        return self._write_lock.is_held

    def search(self, question: SearchRequest) -> SearchResult:
        """Search the index as it is, without files that the vault's current rules hide."""
        with self._explained():
            where = self._with_current_rules(question.where)
            return self._open_searcher().search(question if where is question.where else replace(question, where=where))

    def _damage_behind(self, error: Exception) -> str:
        """Return which damage of the index an error comes from; empty where it has another cause."""
        if database.is_certain_damage(error):
            return database.describe_damage(error)
        return status.find_damage(self.store.database, words_too=False)

    @contextlib.contextmanager
    def _explained(self) -> Generator[None]:
        """Raise the error for a damaged index instead of whatever a damaged value causes."""
        if damage := self._find_foreign_damage():
            raise self._report_damage(damage)
        try:
            yield
        except DAMAGE_ERRORS as error:
            if not (damage := self._damage_behind(error)):
                raise
            raise self._report_damage(damage) from error

    def related(self, question: SearchRequest, beside: OpenNote | None) -> SearchResult:
        """Return related notes like `knapper.index.search.Searcher.related`, by the vault's current rules."""
        with self._explained():
            ruled_question = replace(question, where=self._with_current_rules(question.where))
            return self._open_searcher().related(ruled_question, beside)

    def find_matches(self, query: Query, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Find in each text the words by which a query finds it; see `knapper.index.tokenizer.find_matches`."""
        from knapper.index import tokenizer  # noqa: PLC0415 - as for the searcher

        with self._explained():
            stemmer = self.open_snapshots().stemmer
            return [tokenizer.find_matches(query, text, stemmer) for text in texts]

    def near_notes(self, path: NotePath, where: Filter, *, limit: int) -> list[tuple[NotePath, float]]:
        """Return the notes nearest to one in meaning, by the vault's current rules, each with its cosine."""
        with self._explained():
            return self._open_searcher().near_notes(path, self._with_current_rules(where), limit=limit)

    def status(self, where: Filter | None = None) -> IndexStatus:
        """Return counts of the indexed files that match *where*, or of all."""
        with self.store.database.snapshot() as connection:
            ruled = self._with_current_rules(where or Filter())
            allowed = self._allowed.mask(connection, ruled)
            found = status.read_status(self.store, connection, model=self.model, allowed=allowed, policy=ruled.policy)
        return replace(found, complete=found.complete and not self.damage)

    def close(self) -> None:
        """Close the index, its embedder and its reranker."""
        with self._lock:
            opened = (self._searcher, self._snapshots, self.publishing, self._embedder, self.store)
        for each in opened:
            if each is not None:
                each.close()

    def __enter__(self) -> Self:
        """Return the engine as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def catch_up(self) -> None:
        """Index all changes, however long that takes, for callers that rely on the whole vault's links.

        Raises:
            ConflictError: Another process has been writing the index for a minute.
        """
        checked = None if self.damage else self._check_events(None, dt.datetime.now().astimezone())
        # Beside a watcher, a few files may be missing while it embeds, which can take minutes; nobody waits for that.
        if checked is None or checked.incomplete:
            _ = self.refresh(check=False)

    def refresh_paths(self, touched: Iterable[Path]) -> RefreshOutcome:
        """Index just these files and folders; nothing where the index turns out to be damaged, which is marked.

        Raises:
            ConflictError: Another process is writing.
        """
        with self._write_lock.hold(wait_s=1.0):
            # Planned under the lock: files may have changed during the wait.
            plan = self._plan(touched)
            if not plan.is_due:
                return RefreshOutcome(unchanged=plan.unchanged)
            try:
                return self._carry_out(plan, None, whole=False)
            except StorageError as error:
                if not database.is_certain_damage(error):
                    raise
                return RefreshOutcome(problems=[f"the index is damaged: {self.damage}"])

    def is_up_to_date(self, touched: Iterable[Path]) -> bool:
        """Return whether the index is current for files and folders, and no other writer works from an older scan."""
        return not (self.is_being_written or self._plan(touched).is_due)

    def read_rules(self) -> None:
        """Reload the vault's ignore rules.

        Raises:
            SetupError: They can't be read.
        """
        self.view = replace(View.open(self.view.root, self.view.policy), alike=self.view.alike, named=self.view.named)

    def _similar_paths(self, path: NotePath) -> Iterable[NotePath] | None:
        return self.catalog.similar_paths(path)

    def _find_named(self, name: str, policy: Policy, *, certain: bool) -> Sequence[NotePath]:
        """Return the files that a name may mean; none where the index can't be read.

        Raises:
            ConflictError: The name must be *certain*, and another process has been writing the index for a minute.
            StorageError: The name must be *certain*, and the index can't be written.
        """
        if certain:
            # All changes are indexed, so that no file is missing among those of a name.
            checked = self._check_events(None, dt.datetime.now().astimezone())
            if checked is None or not checked.is_current:
                try:
                    _ = self.refresh(check=self._is_changed_by_others, wait_s=_NAMES_LOCK_WAIT_S)
                except ConflictError as error:
                    error.hint = "give the note's path, or wait until the index is written"
                    raise
        elif time.monotonic() >= self._names_valid_until:
            began = time.monotonic()
            _ = self.freshen(meaning=False, policy=policy)
            # A script may ask for a thousand names: looking for changed files takes a tenth of the time at most.
            self._names_valid_until = time.monotonic() + _NAMES_PAUSE * (time.monotonic() - began)
        try:
            return self.catalog.files_named(name, Filter(policy=policy))
        except sqlite3.DatabaseError:
            # Without names, only paths are known; the caller is told that there is no such path.
            return ()

    @property
    def _has_current_rules(self) -> bool:
        """Return whether the whole index was built with the current ignore rules."""
        return self.store.meta(_RULES_META) == self.view.ignore.fingerprint

    def _with_current_rules(self, where: Filter) -> Filter:
        return where if self._has_current_rules else replace(where, ignore=self.view.ignore)

    def _scan_briefly(self) -> tuple[RefreshPlan, bool]:
        """Compare the disk with the index for a limited time; also return whether that time was too short."""
        return refresh.compare_briefly(
            self.store, self.view, budget_s=_SCAN_BUDGET_S, has_rules=self._has_current_rules
        )

    def _refresh_inline(self, plan: RefreshPlan, generation_before: int, *, whole: bool) -> bool:
        """Carry out a small plan; return whether that was possible, as the search goes on without it.

        Args:
            plan: How the disk differs from the index.
            generation_before: The index's generation when the plan was made; another process may have written since.
            whole: Whether the plan covers all files.
        """
        try:
            with self._inline_refresh_lock, self._write_lock.acquire(wait_s=0) as is_acquired:
                if is_acquired and self.store.generation() != generation_before:
                    plan, unchecked = self._scan_briefly()
                    plan = plan if whole else plan.without_large(MAX_INLINE_BYTES)
                    is_acquired = not unchecked or not whole
                if is_acquired and self.damage:
                    refresh.check_not_emptied(self.view.root, self.store.count_files)
                    is_small = self.store.count_files() <= _MAX_INLINE_FILES
                    if is_small:
                        _ = self._rebuild(None)
                        self._deriver.derive_postings()
                    return is_small
                if is_acquired:
                    self._carry_out(plan, None, whole=whole)
                return is_acquired
        except StorageError:
            # Such as a full disk or a read-only folder: the search answers from the index as it is.
            return False

    def _embed_inline(self) -> int:
        """Embed a few chunks where that is quick, and count those that still lack a vector."""
        try:
            return self._deriver.embed_quickly(self.embedder) if self.embedder else 0
        except EmbedderError:
            # The search itself reports the embedder's error.
            return 0

    def _plan(self, touched: Iterable[Path]) -> RefreshPlan:
        """Return how some files and folders differ from the index."""
        plan = refresh.compare_paths(self.store, self.view, touched)
        return refresh.resolve_doubtful(self.store, self.view, plan)

    def _carry_out(self, plan: RefreshPlan, progress: Progress | None, *, whole: bool) -> RefreshOutcome:
        """Carry out a plan, and record its ignore rules; *whole* means that the plan covers all files."""
        if not plan.changed:
            refresh.check_not_emptied(self.view.root, lambda: len(plan.gone))
        plan = refresh.resolve_doubtful(self.store, self.view, plan)
        if not self._has_current_rules:
            # Cleared until all is done: a partly refreshed index was built with no single set of rules.
            self.store.set_meta(_RULES_META, "")
        with database.marking_damage(self.folder), self.store.batch() if plan.is_small else contextlib.nullcontext():
            outcome = refresh.apply_plan(self.store, self.view, plan, progress=progress, whole=whole)
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
