"""Embed with static word vectors: no network, no GPU, thousands of passages a second.

A text's vector is the sum of its tokens' rows, brought to length 1. The package's own table was distilled from a
multilingual model: texts of like meaning are near in any of its languages. A folder may hold another table, of
model2vec or of WordLlama, or name several, whose vectors stand side by side, each with its weight.
"""

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knapper.index.embedders import subwords, tables
from knapper.index.embedders.base import EmbedderError, normalize_rows, replace_surrogates
from knapper.index.embedders.subwords import SubwordTokenizer
from knapper.index.embedders.tables import TokenTable

_POOLED_TEXTS = 256
"""Texts that are pooled at a time, which limits the memory for their tokens."""
_SUMMED_TOKENS = 4_096
"""Tokens of one text that are added up at a time."""
_FEW_TOKENS = 4_096
"""So many are sorted faster than a mark for each token of a table is set."""


class _Part:
    """One table with its tokenizer; both are read on first use, and the table is memory-mapped."""

    def __init__(self, folder: Path, weight: float) -> None:
        """Set the folder, and the weight beside other tables."""
        self.folder = folder
        self.weight = weight
        self._spoken: dict[int, bool] = {}
        self._lock = threading.Lock()

    @cached_property
    def table(self) -> TokenTable:
        """Return the table.

        Raises:
            EmbedderError: It is missing or damaged.
        """
        with self._lock:
            return tables.read_table(self.folder)

    def add_to(self, rows: NDArray[np.float32], texts: Sequence[str]) -> None:
        """Add each text's vector, of the weight's length, to a row of zeros."""
        for at in range(0, len(texts), _POOLED_TEXTS):
            slab = [replace_surrogates(text) for text in texts[at : at + _POOLED_TEXTS]]
            self._pool([self._tokens(ids) for ids in self._tokenizer.tokenize(slab)], rows[at : at + _POOLED_TEXTS])
        if self.folder != tables.FOLDER and not np.isfinite(rows).all():
            raise EmbedderError(f"the table in {self.folder} holds numbers that are none", hint=tables.FOLDER_HINT)
        rows[:] = normalize_rows(rows) * np.float32(self.weight**0.5)

    def _tokens(self, ids: Sequence[int]) -> NDArray[np.intp]:
        tokens = np.asarray(ids, np.intp)
        return tokens if self._unknown is None else tokens[tokens != self._unknown]

    def _pool(self, tokens: Sequence[NDArray[np.intp]], rows: NDArray[np.float32]) -> None:
        """Sum the rows of each text's tokens; only the used rows are converted to float32."""
        used, inverse = _distinct_ids(np.concatenate(tokens), self.table.vocabulary)
        vectors = self.table.vectors(used)
        if not self.table.counts_signs:
            vectors[[not self._speaks(int(token)) for token in used]] = 0
        start = 0
        for row, ids in zip(rows, tokens, strict=True):
            stop = start + len(ids)
            for slab_start in range(start, stop, _SUMMED_TOKENS):
                row += vectors[inverse[slab_start : min(slab_start + _SUMMED_TOKENS, stop)]].sum(axis=0)
            start = stop

    def _speaks(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one."""
        is_spoken = self._spoken.get(token)
        if is_spoken is None:
            is_spoken = self._spoken[token] = self._tokenizer.has_letter(token)
        return is_spoken

    @cached_property
    def _tokenizer(self) -> SubwordTokenizer:
        table = self.table
        with self._lock:
            return subwords.read_tokenizer(table.tokenizer, hint=tables.table_hint(self.folder))

    @cached_property
    def _unknown(self) -> int | None:
        """The token of unknown words, which is left out where signs count; None where there is none."""
        return self._tokenizer.unknown_token() if self.table.counts_signs else None


class StaticEmbedder:
    """An embedder that averages the rows of one or several tables of token vectors.

    Files are read on first use; the tables are memory-mapped.
    """

    instant = True

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder of the files.

        Args:
            folder: Contains ``tokenizer.json`` beside a table, or ``tables.json``; None takes the package's own table.
        """
        self.folder = folder or tables.FOLDER

    @property
    def model_id(self) -> str:
        """Return an id of the tables and their weights; those of another folder are hashes of the content.

        Raises:
            EmbedderError: The other folder has no table.
        """
        return self._name

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions."""
        return sum(part.table.dimensions for part in self._parts)

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; *stop* has no effect, as no server is waited for.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        del stop
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        start = 0
        for part in self._parts:
            stop_column = start + part.table.dimensions
            part.add_to(rows[:, start:stop_column], texts)
            start = stop_column
        # A text may have no token of one of the tables.
        return rows if len(self._parts) == 1 else normalize_rows(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        return self.passages([text])[0]

    def close(self) -> None:
        """Do nothing: there is no connection."""

    @cached_property
    def _parts(self) -> Sequence[_Part]:
        folders = tables.read_folders(self.folder)
        return [_Part(one.path, one.weight if len(folders) > 1 else 1.0) for one in folders]

    @cached_property
    def _name(self) -> str:
        names = [part.table.name for part in self._parts]
        if len(names) == 1:
            return names[0]
        return "+".join(f"{name}*{part.weight:g}" for name, part in zip(names, self._parts, strict=True))


def _distinct_ids(ids: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct ids, and each id's index among them; ids missing in the table become its last row."""
    np.minimum(ids, count - 1, out=ids)
    if len(ids) <= _FEW_TOKENS:
        used, places = np.unique(ids, return_inverse=True)
        return used, places.reshape(-1)
    is_used = np.zeros(count, np.bool_)
    is_used[ids] = True
    places = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), places[ids]
