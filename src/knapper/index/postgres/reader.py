"""Search, list and read a published vault without its files: from a copy of its records, and bytes of the database."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from knapper.errors import Ambiguous, BadInput, ConflictError, KnapError, NotFound, RefusedError, StorageError
from knapper.index import database
from knapper.index.catalog import Catalog
from knapper.index.documents import Filter
from knapper.index.engine import USUAL_FUSION, Engine, RankFusion
from knapper.index.postgres import rows, schema
from knapper.index.postgres.connection import UNREACHABLE, PostgresServer
from knapper.index.postgres.rows import decode_chunk
from knapper.index.postgres.schema import TableState
from knapper.index.postgres.snapshot import PublishedSnapshots, PublishedState
from knapper.index.refresh import LOCK_WAIT_S, Freshness, Progress, RefreshOutcome
from knapper.index.status import IndexStatus
from knapper.vault import files as vault_files
from knapper.vault import paths, walk
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from knapper.vault.walk import FileStat, IgnoreRules, Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from knapper.index.models.base import Embedder
    from knapper.index.postgres.connection import Session
    from knapper.index.snapshot import SnapshotCache
    from knapper.index.store import IndexStore
    from knapper.system.private import FolderLock
    from knapper.vault.access import Policy
    from knapper.vault.parser import Note


_LOCK_WAIT_S: Final = 60.0
_BATCH_RECORDS: Final = 1_000
_MANY_RECORDS: Final = 10_000
"""From so many new ones on, a question that brought them has waited long enough for their names to be derived, too."""


def no_files_error(vault: str, writer: str = "") -> RefusedError:
    """Return the error for what only a machine with the vault's files can do."""
    return RefusedError(
        f"this machine has none of the files of the vault '{vault}': it reads what another one has published",
        code="no_files",
        hint=f"do that on {writer}" if writer else "do that on the machine with the files",
    )


class Mirror:
    """The records of a published vault in a local index; safe to use from any thread and several processes."""

    def __init__(self, server: PostgresServer, store: IndexStore, lock: FolderLock) -> None:
        """Mirror *server* in *store*, whose write lock is *lock*."""
        self.server = server
        self.store = store
        self._lock = lock
        self.pending = 0
        """Chunks without a vector, in the state that `sync` brought the mirror up to."""

    @contextmanager
    def open_state(self) -> Generator[PublishedState]:
        """Open one state of the database, with the mirror brought up to it.

        Raises:
            StorageError: The server doesn't answer, or doesn't hold the vault.
            ConflictError: Another process has been writing the mirror for a minute.
        """
        with self.server.snapshot() as session:
            meta, target = schema.read_state(session)
            _ = self._follow(session, meta, target)
            with self.store.database.snapshot() as connection:
                yield PublishedState(session=session, meta=meta, at=target, mirror=connection)

    def sync(self, *, full: bool = False, progress: Progress | None = None) -> RefreshOutcome:
        """Bring the mirror up to the database.

        Raises:
            StorageError: As for `open_state`.
            ConflictError: The same.
        """
        with self.server.snapshot() as session:
            meta, target = schema.read_state(session)
            # None where the writer has no model, or an older version wrote.
            self.pending = (
                int(meta.get("chunks", "0")) - int(meta["vectors"]) if meta.get("model") and "vectors" in meta else 0
            )
            return self._follow(session, meta, target, full=full, progress=progress)

    def content(self, path: NotePath) -> bytes:
        """Read a file's bytes as they were published.

        Raises:
            NotFound: The database doesn't have the file, or not for this role.
            RefusedError: Only its name was published.
            StorageError: The server doesn't answer.
        """
        with self.server.snapshot() as session:
            row = session.execute("SELECT content FROM files WHERE path = %s", (path,), binary=True).fetchone()
            writer = schema.read_meta(session).get("writer", "").partition("#")[0]
        if row is None:
            raise vault_files.missing_file_error(path, ())
        if row[0] is None:
            raise no_files_error(self.server.vault, writer)
        return bytes(row[0])

    def _follow(
        self,
        session: Session,
        meta: Mapping[str, str],
        target: TableState,
        *,
        full: bool = False,
        progress: Progress | None = None,
    ) -> RefreshOutcome:
        """Take in what the database has changed since the mirror's state."""
        from knapper.index.refresh import RefreshOutcome  # noqa: PLC0415 - shared with the engine, which imports it late

        if not full and TableState.read(self.store) == target:
            return RefreshOutcome()
        with self._lock.acquire(wait_s=_LOCK_WAIT_S) as is_acquired:
            if not is_acquired:
                raise ConflictError(
                    f"another process is copying the vault '{self.server.vault}' from {self.server.shown}",
                    hint="wait for it to end; `knap status` shows how far it is",
                )
            known = TableState.read(self.store)
            is_same = (known.vault_id, known.rules) == (target.vault_id, target.rules)
            if not full and is_same and known.generation >= target.generation:
                # Another process was quicker, unless an older state of the database came back.
                with self.server.snapshot() as later:
                    if known.is_in(later):
                        return RefreshOutcome()
            if full or not is_same or not known.is_in(session):
                self.store.clear()
                known = TableState()
            outcome = RefreshOutcome()
            self._remove(session, known, outcome)
            last = -1
            while batch := session.execute(
                "SELECT id, record FROM files WHERE generation > %s AND id > %s ORDER BY id LIMIT %s",
                (known.generation, last, _BATCH_RECORDS),
            ).fetchall():
                with self.store.batch():
                    for i, record in batch:
                        self.store.apply(rows.decode_record(record, int(i)), ())
                last = batch[-1][0]
                outcome.indexed += len(batch)
                if progress:
                    progress("read", outcome.indexed, 0)
            with self.store.batch():
                self.store.set_meta("complete", "1")
                self.store.set_meta("built", meta.get("built", ""))
                self.store.forget()
                self.store.set_meta(schema.STATE_META, str(target))
            return outcome

    def _remove(self, session: Session, known: TableState, outcome: RefreshOutcome) -> None:
        if known.generation < 0:
            return
        gone = {
            int(i) for (i,) in session.execute("SELECT file FROM removed WHERE generation > %s", (known.generation,))
        }
        if not gone:
            return
        listed = self.store.database.reader().execute("SELECT inode, path FROM files")
        removed = [NotePath(path) for stored, path in listed if stored in gone]
        self.store.remove(removed)
        outcome.removed = len(removed)


NO_FOLDER: Final = "\x01"
"""A name that no folder has: a reader takes no rules from a folder that happens to lie where the vault would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredView(View):
    """A published vault as one client may see it; its root is a folder that need not be there, and is never read."""

    mirror: Mirror

    def new_path(self, raw: str) -> NotePath:
        """Refuse: there is no folder for a new file.

        Raises:
            RefusedError: Always.
        """
        del raw
        raise no_files_error(self.mirror.server.vault)

    def read(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> Note:
        """Read a note as it was published; errors are those of `View.read`, and that the server doesn't answer."""
        from knapper.vault import parser  # noqa: PLC0415 - as in `View`

        path = self._resolve(raw).path
        return parser.make_note(path, self._content(path, max_bytes))

    def read_head(self, raw: str) -> Note:
        """Read a note of which only the properties matter."""
        from knapper.vault import parser  # noqa: PLC0415 - the same

        path = self._resolve(raw).path
        content = self._content(path, vault_files.DEFAULT_MAX_BYTES)
        return parser.make_note(path, content, read=parser.parse_head)

    def read_bytes(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> bytes:
        """Read any published file."""
        return self._content(self._resolve(raw).path, max_bytes)

    @contextmanager
    def open_bytes(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> Generator[BinaryIO]:
        """Open any published file."""
        yield io.BytesIO(self.read_bytes(raw, max_bytes=max_bytes))

    def list_files(
        self, *, on_problem: Callable[[Skipped], None] = lambda _: None, is_unchanged: walk.IsUnchanged | None = None
    ) -> Iterator[FileStat]:
        """List the visible files by path; there are no entries of folders that could be unchanged."""
        del on_problem, is_unchanged
        return self._list("")

    def list_files_at(self, path: Path) -> tuple[NotePath | None, list[FileStat]]:
        """List the visible files that a path refers to: one, all below a folder, or none."""
        try:
            inside = paths.parse(str(path), root=self.root)
        except KnapError:
            return None, []
        return inside, list(self._list(inside))

    def _content(self, path: NotePath, max_bytes: int) -> bytes:
        raw = self.mirror.content(path)
        if len(raw) > max_bytes:
            msg = f"{paths.quote_path(path)} is larger than {max_bytes} bytes"
            raise BadInput(msg, code="too_large", hint="split it into several notes")
        return raw

    def _list(self, below: str) -> Iterator[FileStat]:
        sql = "SELECT path, kind, size, mtime_ns, ctime_ns, inode, target FROM files"
        condition = " WHERE path = ?1 OR (path >= ?1 || '/' AND path < ?1 || '0')" if below else ""
        rows_found = self.mirror.store.database.reader().execute(
            f"{sql}{condition} ORDER BY path", (below,) if below else ()
        )
        for path, kind, size, mtime_ns, ctime_ns, inode, target in rows_found.fetchall():
            stat = FileStat(
                path=NotePath(path),
                kind=kind,
                size=size,
                mtime_ns=mtime_ns,
                ctime_ns=ctime_ns,
                inode=inode,
                target=NotePath(target) if target else None,
            )
            if self._is_file_visible(stat):
                yield stat

    def _find(self, path: NotePath) -> vault_files.ResolvedFile:
        """Find a visible file by its path, in any case and Unicode form where the form itself isn't there."""
        found = self.mirror.store.database.reader().execute(
            "SELECT path, kind, target FROM files WHERE path_key = ? ORDER BY path", (paths.name_key(path),)
        )
        spellings = [
            NotePath(each)
            for each, _, target in found.fetchall()
            if self.visible(NotePath(each)) and (not target or self.visible(NotePath(target)))
        ]
        if path not in spellings and len(spellings) > 1:
            raise Ambiguous(
                f"several files are spelled like {paths.quote_path(path)}", hint="name one: " + ", ".join(spellings)
            )
        if spellings:
            match = path if path in spellings else spellings[0]
            return vault_files.ResolvedFile(path=match, target=match, root=str(self.root))
        if next(self._list(path), None) is not None:
            raise self._folder_error(path, "name a file in it")
        raise vault_files.missing_file_error(path, ())

    def find_folder(self, path: NotePath) -> None:
        """Return None: folders without files aren't published."""
        del path

    def _resolve_absolute(self, raw: str) -> vault_files.ResolvedFile:
        with contextlib.suppress(KnapError):
            return self._find(paths.parse(raw, root=self.root))
        raise paths.unknown_place_error()

    def _visible_path(self, path: NotePath) -> NotePath | None:
        with contextlib.suppress(NotFound, Ambiguous):
            return self._find(path).path
        return None


_POLL_S: Final = 0.5
"""How long a listener waits before it looks whether the server stops."""
_LATE_S: Final = 30.0
"""How often a listener looks by itself, should a notice have been lost."""


class StoredCatalog(Catalog):
    """Listings from the mirror; what needs texts is read from the database."""

    mirror: Mirror

    def first_texts(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the first text of files, after their properties."""
        rows = self.mirror.store.database.reader().execute("SELECT id, inode FROM files").fetchall()
        wanted = {*ids}
        stored = {int(inode): int(i) for i, inode in rows if i in wanted}
        sql = (
            f"SELECT DISTINCT ON (c.id >> {database.CHUNK_BITS}) c.id, c.row"
            " FROM unnest(%s::bigint[], %s::bigint[]) AS r(a, b) JOIN chunks c ON c.id >= r.a AND c.id < r.b"
            f" WHERE c.kind NOT IN ('frontmatter', 'log') ORDER BY c.id >> {database.CHUNK_BITS}, c.position"
        )
        ranges = [database.chunk_range(file) for file in stored]
        with self.mirror.server.snapshot() as session:
            found = session.execute(sql, ([a for a, _ in ranges], [b for _, b in ranges])).fetchall()
        return {stored[database.file_of(int(i))]: decode_chunk(int(i), row).text for i, row in found}


class ReaderEngine(Engine):
    """The index of a vault whose files are on another machine; it writes nothing but its own mirror."""

    def __init__(
        self,
        folder: Path,
        root: Path,
        policy: Policy,
        server: PostgresServer,
        *,
        open_embedder: Callable[[], Embedder | None],
        fusion: RankFusion = USUAL_FUSION,
    ) -> None:
        """Open the mirror in *folder*; the server is asked at the first question.

        Args:
            folder: The mirror's own folder.
            root: The folder that the vault would have here.
            policy: What the owner of this machine may see.
            server: The team's.
            open_embedder: As for `Engine`; it has to be the model of the machine with the files.
            fusion: How rankings are joined.
        """
        ignore = IgnoreRules.load(root / NO_FOLDER, ObsidianSettings())
        bare = View(root=root, policy=policy, ignore=ignore, settings=ObsidianSettings())
        super().__init__(folder, bare, open_embedder=open_embedder, fusion=fusion)
        self._server = server
        self.mirror = Mirror(server, self.store, self._write_lock)
        view = StoredView(root=root, policy=policy, ignore=ignore, settings=ObsidianSettings(), mirror=self.mirror)
        self.view = replace(view, alike=self._similar_paths, named=self._find_named)

    @cached_property
    def catalog(self) -> StoredCatalog:
        """Return the listings, from the mirror and the database."""
        catalog = StoredCatalog(self.store, self.graph, self._allowed, self._with_current_rules)
        catalog.mirror = self.mirror
        return catalog

    def _make_snapshots(self) -> SnapshotCache:
        return PublishedSnapshots(self._allowed, self.mirror.open_state, self.folder)

    def refresh(
        self, *, full: bool = False, check: bool = True, progress: Progress | None = None, wait_s: float = 60.0
    ) -> RefreshOutcome:
        """Bring the mirror up to the database; *full* reads all records again.

        Raises:
            ConflictError: Another process has been writing the mirror for a minute.
            StorageError: The server doesn't answer, or doesn't hold the vault.
        """
        del check, wait_s
        is_damaged = bool(self.damage)
        outcome = self.mirror.sync(full=full or is_damaged, progress=progress)
        database.remove_damage_mark(self.folder)
        if outcome.indexed >= _MANY_RECORDS:
            self._deriver.derive_due_files()
        return outcome

    def embed(
        self,
        *,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
        pauses: Callable[[], bool] | None = None,
        publishes: bool = True,
        wait_s: float = LOCK_WAIT_S,
    ) -> int:
        """Compute no vectors, as the machine with the files does; derive the file of a large vault's names."""
        del progress, stop, pauses, publishes, wait_s
        self._deriver.derive_due_files()
        return 0

    def freshen(self, *, meaning: bool = True, policy: Policy | None = None) -> Freshness:
        """Bring the mirror up to the database; where the server doesn't answer, say of when the answers are."""
        del policy
        try:
            _ = self.refresh()
        except StorageError as error:
            if error.code != UNREACHABLE or not self.is_complete:
                raise
            built = self.store.meta("built")
            told = f"{error.message}; what is listed is of {built}, and search doesn't work until it answers"
            return Freshness(unchecked=True, as_of=built, notices=(told,), is_published=True)
        return Freshness(
            is_published=True,
            incomplete=not self.is_complete,
            pending=self.mirror.pending if meaning else 0,
            as_of=self.store.meta("built"),
        )

    def check_freshness(self, policy: Policy | None = None) -> Freshness:
        """Bring the mirror up to the database, as each question does."""
        return self.freshen(meaning=False, policy=policy)

    def catch_up(self) -> None:
        """Bring the mirror up to the database."""
        _ = self.refresh()

    def refresh_paths(self, touched: Iterable[Path]) -> RefreshOutcome:
        """Bring the mirror up to the database."""
        del touched
        return self.refresh()

    def is_up_to_date(self, touched: Iterable[Path]) -> bool:
        """Return whether the mirror needn't be looked at for these files: they aren't here."""
        del touched
        return True

    def read_rules(self) -> None:
        """Keep the rules: those of the vault apply on the machine with the files."""

    @property
    def is_followed(self) -> bool:
        """Return whether a listener keeps the mirror up to date; each question asks the database all the same."""
        return True

    @property
    def _has_current_rules(self) -> bool:
        return True

    def status(self, where: Filter | None = None) -> IndexStatus:
        """Return counts of the published files that match *where*, or of all."""
        effective = where or Filter()
        known = super().status(effective)
        counts = cast("PublishedSnapshots", self.open_snapshots())
        model = self.model
        with counts.snapshot(model) as snapshot:
            chunks, embedded = snapshot.count(effective)
        return replace(
            known, chunks=chunks, embedded=embedded if model else 0, pending=chunks - embedded if model else 0
        )

    def check_source(self) -> str:
        """Say which machine publishes what is read here, and when it last did.

        Raises:
            StorageError: The server doesn't answer, or doesn't hold the vault.
            SetupError: It is too old, or the extra isn't installed.
        """
        with self._server.snapshot() as session:
            schema.check_server(session)
            meta = schema.read_meta(session)
            schema.check_meta(meta)
        writer = meta.get("writer", "").partition("#")[0]
        built = meta.get("built", "")
        when = f" at {dt.datetime.fromisoformat(built).astimezone():%Y-%m-%d %H:%M}" if built else ""
        return f"read from {self._server.shown}, published by {writer}{when}; no files are here"

    def close(self) -> None:
        """Close the mirror and the connections."""
        super().close()
        self._server.close()

    def follow_source(
        self, stop: threading.Event, on_change: Callable[[RefreshOutcome], None], progress: Progress | None = None
    ) -> bool:
        """Take in what is published, as the database tells of it, until *stop* is set.

        Raises:
            StorageError: The server doesn't answer any more; the caller may retry.
        """
        session = self._server.connect()
        try:
            session.execute(f"LISTEN {schema.CHANNEL}")
            # After the listening has begun, so that nothing falls between the two.
            on_change(self.refresh(progress=progress))
            looked_at = time.monotonic()
            while not stop.is_set():
                told = [notice.payload for notice in session.notifies(timeout=_POLL_S, stop_after=1)]
                is_meant = any(payload.partition(" ")[0] == self._server.schema for payload in told)
                if is_meant or time.monotonic() > looked_at + _LATE_S:
                    looked_at = time.monotonic()
                    outcome = self.refresh()
                    if outcome.indexed or outcome.removed:
                        on_change(outcome)
        except Exception as error:
            explained = self._server.explain(error)
            if explained is None:
                raise
            raise explained from error
        finally:
            session.close()
        return True
