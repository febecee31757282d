"""Make small vaults, and indexes over them whose embedder is a plain fake."""

import re
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knapper.index import tokenizer
from knapper.index.engine import Engine
from knapper.index.models.base import Embedder
from knapper.vault.access import Policy
from knapper.vault.view import View


class WordEmbedder:
    """Put each word with a meaning on an axis of its own, so that texts are near where they share such words."""

    def __init__(self, model_id: str = "words", *, error: Exception | None = None) -> None:
        self.model_id = model_id
        self.dimensions = 4096
        self.instant = True
        self.error = error
        self.asked: list[str] = []
        self.is_closed = False

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        del stop
        if self.error:
            raise self.error
        self.asked.extend(texts)
        return np.stack([self._vector(text) for text in texts])

    def query(self, text: str) -> NDArray[np.float32]:
        if self.error:
            raise self.error
        return self._vector(text)

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        del words
        return ()

    def close(self) -> None:
        self.is_closed = True

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimensions, np.float32)
        words = re.findall(r"\w+", text.lower())
        stops = tokenizer.find_stop_words(words)
        for word in (word for word in words if word not in stops):
            vector[zlib.crc32(word.encode()) % self.dimensions] += 1
        return vector / max(float(np.linalg.norm(vector)), 1e-9)


def fill(root: Path, notes: dict[str, str]) -> Path:
    """Write notes below *root*."""
    for name, text in notes.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return root


def engine(root: Path, state: Path, embedder: Embedder | None = None) -> Engine:
    """Open an index of *root* in *state*."""
    root.mkdir(parents=True, exist_ok=True)
    return Engine(state, View.open(root, Policy(client="owner")), open_embedder=lambda: embedder)


def damage(database: Path) -> None:
    """Overwrite the second half of a database; the first holds what is read when it is opened."""
    raw = database.read_bytes()
    half = len(raw) // 2
    database.write_bytes(raw[:half] + b"\xa5" * half)
