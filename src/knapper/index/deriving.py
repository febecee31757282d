"""Derive what search needs beside an index's rows, while others write them: vectors, and files of large indexes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from knapper.errors import StorageError
from knapper.index.database import DAMAGE_ERRORS
from knapper.index.models.base import Embedder, EmbedderError, EmbedderStopped, learn_floor
from knapper.index.refresh import Progress, WriteLock
from knapper.index.store import IndexStore, floor_key

LOCK_FILE: Final = "deriving.lock"
"""Held by the one process that derives; others write to the index meanwhile."""
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

    def __init__(self, store: IndexStore, folder: Path, write_lock: WriteLock) -> None:
        """Derive from a store.

        Args:
            store: The index.
            folder: Its folder.
            write_lock: Its lock, held only while a batch is stored.
        """
        self.lock = WriteLock(folder, LOCK_FILE)
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
        with _holding(self.lock, wait_s, stop) as is_acquired:
            if not is_acquired:
                return 0
            return self._embed(embedder, _STORE_WAIT_S, progress=progress, stop=stop, pauses=pauses)

    def embed_quickly(self, embedder: Embedder) -> int:
        """Embed a few chunks where that takes only a moment; return how many still lack a vector."""
        due, pending = self._count_due(embedder), self._store.count_pending(embedder.model_id)
        if embedder.instant and 0 < due <= _MAX_INLINE_CHUNKS:
            with suppress(EmbedderError, StorageError), self.lock.acquire(wait_s=0) as is_acquired:
                pending -= self._embed(embedder, _QUICK_WAIT_S) if is_acquired else 0
        return pending

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
            uid = self._store.meta("uid")
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
            with _holding(self._write_lock, wait_s, stop) as may_store:
                if not may_store:
                    return embedded
                is_replaced = _has_other_length(self._store, embedder.model_id, vectors.shape[1])
                is_stored = self._store.add_vectors(embedder.model_id, [row.id for row in batch], vectors, uid=uid)
            # All chunks wait again where the vectors were replaced or the index was begun anew, also earlier ones.
            last_id = batch[-1].id if is_stored and not is_replaced else 0
            embedded += len(batch) if is_stored else 0
            if progress:
                progress("embed", embedded, max(total, embedded))
            if pauses and pauses():
                return embedded
        # After the vectors: those of a model that was changed behind its name remove the floor that was learnt before.
        with suppress(EmbedderStopped):
            _ensure_floor(self._store, embedder, stop=stop)
        return embedded


@contextmanager
def _holding(lock: WriteLock, wait_s: float, stop: threading.Event | None) -> Generator[bool]:
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


def sample_texts(store: IndexStore, limit: int) -> tuple[int, Sequence[str]]:
    """Return how many chunks there are, and what is embedded of some of them, evenly spread."""
    from knapper.index.chunker import embedding_text  # noqa: PLC0415 - as above

    connection = store.database.reader()
    ids = [int(i) for (i,) in connection.execute("SELECT id FROM chunks ORDER BY id")]
    chosen = [ids[place * len(ids) // limit] for place in range(limit)] if len(ids) > limit else ids
    rows = store.rows(chosen)
    return len(ids), [embedding_text(row.title, row.path, row.text) for row in rows]


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
