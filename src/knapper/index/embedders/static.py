"""Embed with static word vectors: no network, no GPU, thousands of passages a second.

A text's vector is the mean of its tokens' rows, as the model WordLlama was trained for, without tokens that carry no
meaning: punctuation and signs, which are half of Markdown's tokens. A table of model2vec, in a folder of its own, may
also give each token a weight, and several tokens one row.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from knapper.index.embedders import subwords
from knapper.index.embedders.base import EmbedderError, normalize_rows, replace_surrogates
from knapper.index.embedders.subwords import SubwordTokenizer

_DTYPES = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I8": np.dtype("<i1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}
_MAX_HEADER_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    kind: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


def map_tensors(path: Path, *, hint: str) -> Mapping[str, NDArray[Any]]:
    """Map the tensors of a safetensors file, by name.

    Args:
        path: The file.
        hint: What to do if it can't be read.

    Raises:
        EmbedderError: It is missing or damaged.

    Source: the safetensors format: 8 bytes of length, little-endian; that many bytes of JSON; the data.
    """
    try:
        return {
            name: np.memmap(path, dtype=one.kind, mode="r", offset=one.start, shape=one.shape)
            for name, one in _read_header(path).items()
        }
    except FileNotFoundError as error:
        raise EmbedderError(f"the embedder's file {path} is missing", hint=hint) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise EmbedderError(f"the embedder's file {path} is damaged", hint=hint) from error


def _read_header(path: Path) -> dict[str, _Tensor]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = cast("dict[str, Any]", json.loads(file.read(min(length, _MAX_HEADER_BYTES))))
    tensors: dict[str, _Tensor] = {}
    for name, value in header.items():
        if name == "__metadata__":
            continue
        start, stop = value["data_offsets"]
        kind, shape = _DTYPES[value["dtype"]], tuple(int(size) for size in value["shape"])
        count = 1
        for size in shape:
            count *= size
        if start < 0 or min(shape, default=0) < 1 or stop - start != count * kind.itemsize:
            raise ValueError(path)
        tensors[name] = _Tensor(kind=kind, shape=shape, start=8 + length + start)
    return tensors


MODEL = "wordllama-l2-supercat-256-spoken"
FOLDER = Path(__file__).parents[2] / "data" / "wordllama"

_POOLED_TEXTS = 256
"""Texts that are pooled at a time, which limits the memory for their tokens."""
_SUMMED_TOKENS = 4_096
"""Tokens of one text that are added up at a time."""
_HINT = "install knapper anew, or set embeddings.kind to endpoint, onnx or none"
_FOLDER_HINT = "embeddings.folder has to hold tokenizer.json and model.safetensors, as model2vec writes them"
_WEIGHTS_FILE = "weights.safetensors"
_MODEL2VEC_FILES = ("model.safetensors", "0_StaticEmbedding/model.safetensors")
_MODEL2VEC_TABLES = ("embeddings", "embedding.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTable:
    """A table of token vectors, as a file has it."""

    rows: NDArray[np.floating | np.integer]
    name: str
    """An id of all that a vector depends on, but for the tokenizer."""
    tokenizer: Path
    is_model2vec: bool = False
    """Whether every known token counts; otherwise only tokens with a letter or digit do."""
    weights: NDArray[np.floating] | None = None
    """By token; None gives each the same."""
    places: NDArray[np.integer] | None = None
    """Each token's row; None where token and row have the same number."""

    @property
    def vocabulary(self) -> int:
        """Return how many tokens have a row."""
        return len(self.rows) if self.places is None else len(self.places)

    def vectors(self, tokens: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors of tokens below ``vocabulary``, each with its weight."""
        places = tokens if self.places is None else self.places[tokens]
        vectors = self.rows[places].astype(np.float32)
        if self.weights is not None:
            vectors *= self.weights[tokens].astype(np.float32)[:, None]
        return vectors


class StaticEmbedder:
    """An embedder that averages the rows of a table of token vectors.

    Files are read on first use; the table is memory-mapped.
    """

    instant = True

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder of the files.

        Args:
            folder: Contains ``tokenizer.json``, and ``weights.safetensors`` or what model2vec writes; None takes those
                of the package.
        """
        self.folder = folder or FOLDER
        self._spoken: dict[int, bool] = {}
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        """Return an id of the table; that of another folder is a hash of the content.

        Raises:
            EmbedderError: The other folder has no table.
        """
        return self._name

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions."""
        return int(self._table.rows.shape[1])

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; *stop* has no effect, as no server is waited for.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        del stop
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for at in range(0, len(texts), _POOLED_TEXTS):
            slab = [replace_surrogates(text) for text in texts[at : at + _POOLED_TEXTS]]
            tokens = [self._tokens(ids) for ids in self._tokenizer.tokenize(slab)]
            self._pool(tokens, rows[at : at + _POOLED_TEXTS])
        return normalize_rows(self._checked(rows))

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        row = np.zeros((1, self.dimensions), np.float32)
        (ids,) = self._tokenizer.tokenize([replace_surrogates(text)])
        self._pool([self._tokens(ids)], row)
        return normalize_rows(self._checked(row))[0]

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _tokens(self, ids: Sequence[int]) -> NDArray[np.intp]:
        tokens = np.asarray(ids, np.intp)
        return tokens if self._unknown is None else tokens[tokens != self._unknown]

    def _checked(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.folder != FOLDER and not np.isfinite(rows).all():
            raise EmbedderError(f"the table in {self.folder} holds numbers that are none", hint=_FOLDER_HINT)
        return rows

    def _pool(self, tokens: Sequence[NDArray[np.intp]], rows: NDArray[np.float32]) -> None:
        """Sum the rows of each text's tokens; only the used rows are converted to float32."""
        used, inverse = _distinct_ids(np.concatenate(tokens), self._table.vocabulary)
        table = self._table.vectors(used)
        if not self._table.is_model2vec:
            table[[not self._speaks(int(token)) for token in used]] = 0
        start = 0
        for row, ids in zip(rows, tokens, strict=True):
            stop = start + len(ids)
            for slab_start in range(start, stop, _SUMMED_TOKENS):
                row += table[inverse[slab_start : min(slab_start + _SUMMED_TOKENS, stop)]].sum(axis=0)
            start = stop

    def _speaks(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one."""
        is_spoken = self._spoken.get(token)
        if is_spoken is None:
            is_spoken = self._spoken[token] = self._tokenizer.has_letter(token)
        return is_spoken

    @cached_property
    def _name(self) -> str:
        return MODEL if self.folder == FOLDER else self._table.name

    @cached_property
    def _table(self) -> TokenTable:
        with self._lock:
            return _read_table(self.folder)

    @cached_property
    def _tokenizer(self) -> SubwordTokenizer:
        table = self._table
        with self._lock:
            is_packaged = self.folder == FOLDER
            return subwords.read_tokenizer(table.tokenizer, hint=_hint(self.folder), is_packaged=is_packaged)

    @cached_property
    def _unknown(self) -> int | None:
        """The token of unknown words, which model2vec leaves out; None where there is none."""
        return self._tokenizer.unknown_token() if self._table.is_model2vec else None


def _distinct_ids(ids: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct ids, and each id's index among them; ids missing in the table become its last row."""
    np.minimum(ids, count - 1, out=ids)
    is_used = np.zeros(count, np.bool_)
    is_used[ids] = True
    places = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), places[ids]


def _hint(folder: Path) -> str:
    return _HINT if folder == FOLDER else _FOLDER_HINT


def _read_table(folder: Path) -> TokenTable:
    """Read the table of a folder, in this package's form or in model2vec's."""
    file = next((folder / name for name in _MODEL2VEC_FILES if (folder / name).is_file()), None)
    if file is not None and not (folder / _WEIGHTS_FILE).exists():
        return _read_model2vec(folder, file)
    path = folder / _WEIGHTS_FILE
    named = map_tensors(path, hint=_hint(folder))
    if len(named) != 1:
        raise _damaged(path)
    (rows,) = named.values()
    if rows.ndim != 2 or rows.dtype.kind != "f":
        raise _damaged(path)
    return TokenTable(rows=rows, name=f"static:{_digest(rows)}", tokenizer=folder / "tokenizer.json")


def _read_model2vec(folder: Path, file: Path) -> TokenTable:
    """Read a table that model2vec, or sentence-transformers for it, has written.

    Source: model2vec, ``model2vec/persistence``: the matrix ``embeddings``, and for a smaller vocabulary ``weights`` by
    token and ``mapping`` from token to row.
    """
    named = map_tensors(file, hint=_FOLDER_HINT)
    rows = next((named[name] for name in _MODEL2VEC_TABLES if name in named), None)
    weights, places = named.get("weights"), named.get("mapping")
    if rows is None or rows.ndim != 2 or rows.dtype.kind not in "fi":
        raise _damaged(file)
    tokens = len(rows) if places is None else len(places)
    if weights is not None and (weights.shape != (tokens,) or weights.dtype.kind != "f"):
        raise _damaged(file)
    if places is not None and not _are_places(places, len(rows)):
        raise _damaged(file)
    beside = file.parent / "tokenizer.json"
    return TokenTable(
        rows=rows,
        name=f"model2vec:{_digest(*(one for one in (rows, weights, places) if one is not None))}",
        tokenizer=beside if beside.is_file() else folder / "tokenizer.json",
        is_model2vec=True,
        weights=weights,
        places=places,
    )


def _are_places(places: NDArray[Any], rows: int) -> bool:
    return places.ndim == 1 and places.dtype.kind == "i" and int(places.min()) >= 0 and int(places.max()) < rows


def _damaged(path: Path) -> EmbedderError:
    return EmbedderError(f"the embedder's file {path} is damaged", hint=_hint(path.parent))


def _digest(*arrays: NDArray[Any]) -> str:
    digest = blake2b(digest_size=6)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
