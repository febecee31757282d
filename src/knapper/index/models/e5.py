"""Embed with multilingual-e5-small on this machine, out of a folder that `e5_maker` has made; no network is used."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from knapper import errors, extras
from knapper.index.models import tables
from knapper.index.models.base import EmbedderError, EmbedderStopped
from knapper.index.models.tables import TokenTable
from knapper.jsontypes import loads, object_or_empty, replace_surrogates
from knapper.system.arrays import normalize_rows, np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer


_TOKENS: Final = 512
"""In one multiplication, about as many as when passages are embedded."""
_INNER: Final = 1536
_LAYERS: Final = 12
_GAIN: Final = 3.0
"""How much faster onnxruntime is with 8 bits than numpy with 32; 3.2 to 3.9 were measured."""
_BYTES_PER_TOKEN: Final = 4.0
"""Of text in UTF-8; 3 to 4.5 in European languages, about 4 in Chinese and Japanese."""


def tokens_per_second() -> float:
    """Multiply matrices as large as those of one layer, and return how many tokens all would take in a second.

    All processors do so at once, as the model has them do; numpy itself takes one (`knapper.system.arrays`).
    """
    rows = np.ones((_TOKENS, DIMENSIONS), np.float32)
    attention = np.ones((DIMENSIONS, 4 * DIMENSIONS), np.float32)
    outward = np.ones((DIMENSIONS, _INNER), np.float32)
    inward = np.ones((_INNER, DIMENSIONS), np.float32)

    def multiply(_number: int) -> None:
        _ = rows @ attention
        _ = (rows @ outward) @ inward

    processors = os.cpu_count() or 1
    best = float("inf")
    with ThreadPoolExecutor(processors) as pool:
        for _ in range(4):  # the first starts the threads
            began = time.perf_counter()
            _ = list(pool.map(multiply, range(processors)))
            best = min(best, time.perf_counter() - began)
    return _GAIN * _TOKENS * processors / (_LAYERS * best)


def count_tokens(text: str) -> int:
    """Return about how many tokens the model would read of a text."""
    return min(2 + round(len(text.encode(errors="replace")) / _BYTES_PER_TOKEN), MAX_TOKENS)


NAME: Final = "multilingual-e5-small"
DIMENSIONS: Final = 384
MAX_TOKENS: Final = 512
"""Tokens of a text that the model reads; of a longer one only the beginning is embedded."""
LAYERS_FILE: Final = "model.onnx"
"""The twelve layers, with weights of 8 bits."""
WORDS_FILE: Final = "words.safetensors"
"""The rows of tokens, of 4 bits with scales, and of positions."""
TOKENIZER_FILE: Final = "tokenizer.json"
RECORD_FILE: Final = "model.json"
"""What was made, of what, and how near it is to the weights that it was made of."""
FILES: Final = (LAYERS_FILE, WORDS_FILE, TOKENIZER_FILE, RECORD_FILE)
MAKE_HINT: Final = "`knap e5` makes it"
EXTRA_CODE: Final = "embedder_extra"
FEATURE: Final = "embeddings.kind = e5"
START: Final = 0
STOP: Final = 2
UNKNOWN: Final = 3
_PADDING: Final = 1
_QUERY_PREFIX: Final = "query: "
_PASSAGE_PREFIX: Final = "passage: "
_MAX_RECORD_BYTES: Final = 100_000
_BATCH_TOKENS: Final = 8_192
"""Tokens in one run, padding counted; more only take memory."""
_LIBRARIES: Final = ("onnxruntime", "tokenizers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """What the record of a made model says."""

    digest: str
    """Of all other files, by which its vectors are known."""
    cosine: float
    """Between its vectors and those of the weights that it was made of, the least of some sentences."""


def read_record(folder: Path) -> ModelRecord:
    """Read the record of a made model.

    Raises:
        EmbedderError: There is none, or it can't be read.
    """
    path = folder / RECORD_FILE
    try:
        with path.open("rb") as file:
            record = object_or_empty(loads(file.read(_MAX_RECORD_BYTES)))
        return ModelRecord(digest=str(record["digest"]), cosine=float(str(record["cosine"])))
    except FileNotFoundError as error:
        raise EmbedderError(
            f"{NAME} isn't made yet: {folder} has no {RECORD_FILE}", hint=MAKE_HINT, code="embedder_unmade"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path) from error


def damaged(path: Path) -> EmbedderError:
    """Return the error for a file that can't be used."""
    return EmbedderError(f"the embedder's file {path} is damaged", hint="`knap e5 --anew` makes the model again")


def missing_library(error: ImportError) -> EmbedderError:
    """Return the error for a package of the extra that isn't installed."""
    problem = extras.missing("e5", FEATURE, error=EmbedderError, code=EXTRA_CODE)
    problem.__cause__ = error
    return problem


class Layers:
    """The model's layers in onnxruntime: rows of tokens become one vector for each text."""

    def __init__(self, path: Path, table: TokenTable, positions: NDArray[np.float32], *, threads: int | None) -> None:
        """Load the layers.

        Args:
            path: Their file.
            table: The rows of tokens.
            positions: A row for each place in a text.
            threads: How many may compute; None leaves it to the library.

        Raises:
            EmbedderError: The library isn't installed, or the file can't be loaded.
        """
        try:
            runtime: Any = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise missing_library(error) from error
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        if threads:
            options.intra_op_num_threads = threads
        self._path, self._table, self._positions = path, table, positions
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise damaged(path) from error

    def embed(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the mean of the last states of each text, of length 1.

        Args:
            texts: Tokens of each, ``START`` and ``STOP`` among them.

        Raises:
            EmbedderError: What comes out isn't vectors.
        """
        longest = max(map(len, texts))
        tokens = np.full((len(texts), longest), _PADDING, np.intp)
        mask = np.zeros((len(texts), longest), np.int32)
        for row, ids in enumerate(texts):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        used, places = np.unique(tokens, return_inverse=True)
        rows = self._table.vectors(used)[places.reshape(tokens.shape)] + self._positions[:longest]
        try:
            states = np.asarray(self._session.run(None, {"x": rows.astype(np.float32), "mask": mask})[0])
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise damaged(self._path) from error
        if states.shape != (*tokens.shape, DIMENSIONS) or not np.isfinite(states[mask > 0]).all():
            raise damaged(self._path)
        summed = np.einsum("bsh,bs->bh", states, mask.astype(np.float32))
        return normalize_rows((summed / mask.sum(1, keepdims=True)).astype(np.float32))


def read_words(path: Path) -> tuple[TokenTable, NDArray[np.float32]]:
    """Read the rows of tokens, and those of positions.

    Raises:
        EmbedderError: The file is missing or damaged.
    """
    named = tables.map_tensors(path, hint=MAKE_HINT)
    rows, scales, positions = (named.get(name) for name in ("q", "scale", "positions"))
    if rows is None or scales is None or positions is None or positions.shape != (MAX_TOKENS, DIMENSIONS):
        raise damaged(path)
    if rows.ndim != 2 or 2 * rows.shape[1] != DIMENSIONS or scales.ndim != 2 or len(rows) != len(scales):
        raise damaged(path)
    table = TokenTable(rows=rows, name=NAME, tokenizer=path.parent / TOKENIZER_FILE, scales=scales, is_halved=True)
    return table, np.asarray(positions, np.float32)


class E5Embedder:
    """A transformer for some hundred languages; files are read on first use."""

    instant = False

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        """Set the folder of the files, and how many threads may compute; None leaves that to the library."""
        self.folder = folder
        self._threads = threads
        self._lock = threading.Lock()
        self._layers: Layers | None = None
        self._tokenizer: Tokenizer | None = None

    @property
    def model_id(self) -> str:
        """Return an id of the files' content.

        Raises:
            EmbedderError: The model isn't made.
        """
        return self._id

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions."""
        return DIMENSIONS

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; those of like length together.

        Raises:
            EmbedderStopped: *stop* was set.
            EmbedderError: The extra isn't installed, or the model isn't made or is damaged.
        """
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        tokens = self._tokenize([_PASSAGE_PREFIX + text for text in texts])
        waiting = sorted((place for place, text in enumerate(texts) if text.strip()), key=lambda i: len(tokens[i]))
        while waiting:
            if stop is not None and stop.is_set():
                raise EmbedderStopped("the embedding was ended", hint="what is done is kept; the next run goes on")
            # The longest first, which all others of a run are padded to.
            count = max(_BATCH_TOKENS // len(tokens[waiting[-1]]), 1)
            batch, waiting = waiting[-count:], waiting[:-count]
            rows[batch] = self._load().embed([tokens[place] for place in batch])
        return rows

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query.

        Raises:
            EmbedderError: The extra isn't installed, or the model isn't made or is damaged.
        """
        if not text.strip():
            return np.zeros(DIMENSIONS, np.float32)
        return self._load().embed(self._tokenize([_QUERY_PREFIX + text]))[0]

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        """Return those words of which the model knows no piece."""
        if not words:
            return ()
        encoded = self._load_tokenizer().encode_batch_fast(list(words), add_special_tokens=False)
        spaces = self._space_tokens
        return [word for word, one in zip(words, encoded, strict=True) if not set(one.ids) - spaces]

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._layers = self._tokenizer = None

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._load_tokenizer().encode_batch_fast(
            [replace_surrogates(text) for text in texts], add_special_tokens=False
        )
        return [[START, *one.ids[: MAX_TOKENS - 2], STOP] for one in encoded]

    @cached_property
    def _space_tokens(self) -> frozenset[int]:
        """The tokens without a meaning: that of unknown characters, and the beginning of a word."""
        start = self._load_tokenizer().token_to_id("▁")
        return frozenset({UNKNOWN} if start is None else {UNKNOWN, start})

    @cached_property
    def _id(self) -> str:
        return f"e5:{NAME}:{read_record(self.folder).digest[:12]}"

    def _load(self) -> Layers:
        with self._lock:
            if self._layers is None:
                table, positions = read_words(self.folder / WORDS_FILE)
                self._layers = Layers(self.folder / LAYERS_FILE, table, positions, threads=self._threads)
            return self._layers

    def _load_tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokenizer is None:
                path = self.folder / TOKENIZER_FILE
                try:
                    from tokenizers import Tokenizer  # noqa: PLC0415 - an optional dependency
                except ImportError as error:
                    raise missing_library(error) from error
                try:
                    self._tokenizer = Tokenizer.from_str(path.read_bytes().decode())
                except FileNotFoundError as error:
                    raise EmbedderError(f"the embedder's file {path} is missing", hint=MAKE_HINT) from error
                except Exception as error:
                    if not errors.raised_by(error, "tokenizers"):
                        raise
                    raise damaged(path) from error
            return self._tokenizer
