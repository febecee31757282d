"""multilingual-e5-small for a vault: where it is kept, how long the vault would take, and making it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.config import Settings
    from knapper.index.models.e5 import ModelRecord
    from knapper.index.store import IndexStore

_FOLDER: Final = "models"
"""In the state folder."""
_NAME: Final = "multilingual-e5-small"
_SAMPLE: Final = 48
"""Passages, from all over the vault, by which the time is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedTime:
    """How long a vault's passages take with the model."""

    passages: int
    per_second: float
    is_measured: bool
    """Whether the model itself was run; otherwise the machine only multiplied matrices of the same sizes."""

    @property
    def seconds(self) -> float:
        """Return the time for all of them."""
        return self.passages / self.per_second

    def as_dict(self) -> dict[str, object]:
        """Return it to a program."""
        return {
            "passages": self.passages,
            "per_second": round(self.per_second, 2),
            "seconds": round(self.seconds),
            "measured": self.is_measured,
        }


def model_folder(settings: Settings) -> Path:
    """Return where the model is, or would be made: `embeddings.folder`, or a folder of the state."""
    is_own = settings.embeddings.kind == "e5" and settings.embeddings.folder
    return Path(settings.embeddings.folder) if is_own else settings.state_dir / _FOLDER / _NAME


def make_model(settings: Settings, *, anew: bool = False) -> tuple[ModelRecord, bool]:
    """Make the model where it is missing.

    Args:
        settings: Where to.
        anew: Make it also where there is one.

    Returns:
        What its record says, and whether it was made now.

    Raises:
        EmbedderError: The extra isn't installed, or what was made doesn't pass its check.
        StorageError: The folder can't be written.
    """
    from knapper.index.models import e5, e5_maker  # noqa: PLC0415 - numpy, which `knap setup` may do without

    folder = model_folder(settings)
    if not anew and (folder / e5.RECORD_FILE).is_file():
        return e5.read_record(folder), False
    return e5_maker.make(folder), True


def read_record(folder: Path) -> ModelRecord:
    """Return what the record of a made model says.

    Raises:
        EmbedderError: There is none, or it can't be read.
    """
    from knapper.index.models import e5  # noqa: PLC0415 - as above

    return e5.read_record(folder)


def _sample_texts(store: IndexStore, limit: int) -> tuple[int, Sequence[str]]:
    """Return how many chunks there are, and what is embedded of some of them, evenly spread."""
    from knapper.index.chunker import embedding_text  # noqa: PLC0415 - 60 ms for the parser

    connection = store.database.reader()
    ids = [int(i) for (i,) in connection.execute("SELECT id FROM chunks ORDER BY id")]
    chosen = [ids[place * len(ids) // limit] for place in range(limit)] if len(ids) > limit else ids
    rows = store.rows(chosen)
    return len(ids), [embedding_text(row.title, row.path, row.text) for row in rows]


def measure_time(store: IndexStore, folder: Path) -> EmbedTime | None:
    """Embed some passages with a model that is made, and return the time for all; None where there are none.

    Raises:
        EmbedderError: The model can't be run.
    """
    from knapper.index.models import e5  # noqa: PLC0415 - as above

    count, texts = _sample_texts(store, _SAMPLE)
    if not texts:
        return None
    embedder = e5.E5Embedder(folder)
    _ = embedder.query("loads the model")
    began = time.perf_counter()
    _ = embedder.passages(texts)
    per_second = len(texts) / (time.perf_counter() - began)
    embedder.close()
    return EmbedTime(passages=count, per_second=per_second, is_measured=True)


def estimate_time(store: IndexStore) -> EmbedTime | None:
    """Return about how long all passages would take, before anything is installed; None where there are none.

    The machine multiplies matrices as large as the model's, for as many tokens as the passages have.
    """
    from knapper.index.models.e5 import count_tokens, tokens_per_second  # noqa: PLC0415 - as above

    count, texts = _sample_texts(store, _SAMPLE)
    if not texts:
        return None
    per_second = tokens_per_second() * len(texts) / sum(map(count_tokens, texts))
    return EmbedTime(passages=count, per_second=per_second, is_measured=False)
