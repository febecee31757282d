"""Give every chunk its vector, after search by words already answers."""

import threading

from knapper.index.embed import Embedder, EmbedderStopped
from knapper.index.refresh import Progress
from knapper.index.store import Store

_BATCH = 512
_FEW = 500
"""How many chunks are embedded by whoever only wants to search, where that needs no network."""


def embed_pending(
    store: Store,
    embedder: Embedder,
    *,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Embed what has no vector of this model yet, a batch a transaction; a batch that is cut short is made again.

    Args:
        store: The index.
        embedder: Makes the vectors.
        progress: Hears of each batch.
        stop: Ends the work after the running batch, or with it where a server is waited for.

    Returns:
        How many chunks got a vector.

    Raises:
        KnapError: The embedder failed; what was stored before stays.
    """
    from knapper.index.chunks import embed_text  # noqa: PLC0415 - the parser's 60 ms, which only new text should cost

    total = store.count_pending(embedder.model_id)
    done, after = 0, 0
    while not (stop and stop.is_set()):
        batch = store.pending(embedder.model_id, after=after, limit=_BATCH)
        if not batch:
            break
        try:
            vectors = embedder.passages([embed_text(row.title, row.path, row.text) for row in batch], stop=stop)
        except EmbedderStopped:
            break
        store.add_vectors(embedder.model_id, [row.id for row in batch], vectors)
        after = batch[-1].id
        done += len(batch)
        if progress:
            progress("embed", done, max(total, done))
    return done


def are_few(embedder: Embedder, pending: int) -> bool:
    """Tell whether to embed so many chunks takes but a moment."""
    return embedder.instant and 0 < pending <= _FEW
