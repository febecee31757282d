"""Search, list and read a published vault on a machine that has none of its files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from knapper.errors import StorageError
from knapper.index import database, integrity
from knapper.index.catalog import Catalog
from knapper.index.engine import USUAL_FUSION, Engine, RankFusion
from knapper.index.filters import Filter
from knapper.index.postgres import schema
from knapper.index.postgres.connection import UNREACHABLE, PostgresServer
from knapper.index.postgres.mirror import NO_FOLDER, Mirror, StoredView
from knapper.index.postgres.rows import decode_chunk
from knapper.index.postgres.snapshot import PublishedSnapshots
from knapper.index.refresh import Progress, RefreshOutcome
from knapper.index.status import Freshness, IndexStatus
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.view import View
from knapper.vault.walk import IgnoreRules

if TYPE_CHECKING:
    from knapper.index.embedders.base import Embedder
    from knapper.index.snapshot import SnapshotCache
    from knapper.vault.access import Policy

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
        self.catalog = StoredCatalog(self.store, self.graph, self._allowed, self._with_current_rules)
        self.catalog.mirror = self.mirror
        view = StoredView(root=root, policy=policy, ignore=ignore, settings=ObsidianSettings(), mirror=self.mirror)
        self.view = replace(view, alike=self.catalog.similar_paths, named=self._find_named)

    def _make_snapshots(self) -> SnapshotCache:
        return PublishedSnapshots(self._allowed, self.mirror.open_state)

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
        integrity.remove_mark(self.folder)
        return outcome

    def embed(self, *, progress: Progress | None = None, stop: threading.Event | None = None) -> int:
        """Compute nothing: the machine with the files embeds what it publishes."""
        del progress, stop
        return 0

    def freshen(self, *, meaning: bool = True, policy: Policy | None = None) -> Freshness:
        """Bring the mirror up to the database; where the server doesn't answer, say of when the answers are."""
        del meaning, policy
        try:
            _ = self.refresh()
        except StorageError as error:
            if error.code != UNREACHABLE or not self.is_complete:
                raise
            built = self.store.meta("built")
            told = f"{error.message}; what is listed is of {built}, and search doesn't work until it answers"
            return Freshness(unchecked=True, as_of=built, notices=(told,))
        return Freshness(incomplete=not self.is_complete, as_of=self.store.meta("built"))

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
        return f"read from {self._server.shown}, published by {writer} at {meta.get('built', '')}; no files are here"

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
