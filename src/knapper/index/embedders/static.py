"""Embed with static word vectors: no network, no GPU, thousands of passages a second.

A text's vector is the mean of its tokens' rows, as the model WordLlama was trained for, without tokens that carry no
meaning: punctuation and signs, which are half of Markdown's tokens.
"""

import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from knapper import errors
from knapper.index.embedders.base import EmbedderError, normalize_rows, replace_surrogates

MODEL = "wordllama-l2-supercat-256-spoken"
FOLDER = Path(__file__).parents[2] / "data" / "wordllama"

_DTYPES = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4")}
_POOLED_TEXTS = 256
"""Texts that are pooled at a time, which limits the memory for their tokens."""
_SUMMED_TOKENS = 4_096
"""Tokens of one text that are added up at a time."""
_MAX_HEADER_BYTES = 1_000_000
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_LAST_ASCII = 0x7F
_HINT = "install knapper anew, or set embeddings.kind to endpoint, onnx or none"


class StaticEmbedder:
    """An embedder that averages the rows of a table of token vectors.

    Files are read on first use; the table is memory-mapped.
    """

    instant = True

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder of the files.

        Args:
            folder: Contains ``weights.safetensors`` and ``tokenizer.json``; None takes those of the package.
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
        return int(self._table.shape[1])

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; *stop* has no effect, as no server is waited for.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        del stop
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for at in range(0, len(texts), _POOLED_TEXTS):
            slab = [replace_surrogates(text) for text in texts[at : at + _POOLED_TEXTS]]
            encodings = self._tokenizer.encode_batch_fast(slab, add_special_tokens=False)
            self._pool([np.asarray(encoding.ids, np.intp) for encoding in encodings], rows[at : at + _POOLED_TEXTS])
        return normalize_rows(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query, without the threads that are used for many texts.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        row = np.zeros((1, self.dimensions), np.float32)
        encoding = self._tokenizer.encode(replace_surrogates(text), add_special_tokens=False)
        self._pool([np.asarray(encoding.ids, np.intp)], row)
        return normalize_rows(row)[0]

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _pool(self, tokens: Sequence[NDArray[np.intp]], rows: NDArray[np.float32]) -> None:
        """Sum the rows of each text's tokens; only the used rows are converted to float32."""
        used, inverse = _distinct_ids(np.concatenate(tokens), len(self._table))
        table = self._table[used].astype(np.float32)
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
            is_spoken = self._spoken[token] = _holds_letter(self._tokenizer.id_to_token(token) or "")
        return is_spoken

    @cached_property
    def _name(self) -> str:
        return MODEL if self.folder == FOLDER else f"static:{_table_digest(self._table)}"

    @cached_property
    def _table(self) -> NDArray[np.float16 | np.float32]:
        with self._lock:
            return _map_table(self.folder / "weights.safetensors")

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        with self._lock:
            return _read_tokenizer(self.folder / "tokenizer.json")


def _holds_letter(token: str) -> bool:
    """Return whether a token's text has meaning; ``<0x2D>`` is the byte of a sign, ``<0xE4>`` part of a letter."""
    byte = _BYTE_TOKEN.fullmatch(token)
    if byte is None:
        return any(character.isalnum() for character in token)
    code = int(byte[1], 16)
    return code > _LAST_ASCII or chr(code).isalnum()


def _table_digest(numbers: NDArray[np.floating]) -> str:
    return blake2b(np.ascontiguousarray(numbers).data, digest_size=6).hexdigest()


def _distinct_ids(ids: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct ids, and each id's index among them; ids missing in the table become its last row."""
    np.minimum(ids, count - 1, out=ids)
    is_used = np.zeros(count, np.bool_)
    is_used[ids] = True
    places = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), places[ids]


def _read_tokenizer(path: Path) -> Tokenizer:
    if not path.is_file():
        raise EmbedderError(f"the embedder's file {path} is missing", hint=_HINT)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        if not errors.raised_by(error, "tokenizers"):
            raise
        raise EmbedderError(f"the embedder's file {path} is damaged", hint=_HINT) from error
    # "<s>" in a note is HTML and not the model's token.
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    kind: np.dtype[np.float16 | np.float32]
    shape: tuple[int, int]
    start: int


def _map_table(path: Path) -> NDArray[np.float16 | np.float32]:
    """Map the only matrix of a safetensors file.

    Source: the safetensors format: 8 bytes of length, little-endian; that many bytes of JSON; the data.
    """
    try:
        tensor = _read_tensor(path)
        return np.memmap(path, dtype=tensor.kind, mode="r", offset=tensor.start, shape=tensor.shape)
    except FileNotFoundError as error:
        raise EmbedderError(f"the embedder's file {path} is missing", hint=_HINT) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbedderError(f"the embedder's file {path} is damaged", hint=_HINT) from error


def _read_tensor(path: Path) -> _Tensor:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = cast("dict[str, Any]", json.loads(file.read(min(length, _MAX_HEADER_BYTES))))
    (tensor,) = (value for name, value in header.items() if name != "__metadata__")
    rows, columns = tensor["shape"]
    start, stop = tensor["data_offsets"]
    kind = _DTYPES[tensor["dtype"]]
    if stop - start != rows * columns * kind.itemsize:
        raise ValueError(path)
    return _Tensor(kind=kind, shape=(rows, columns), start=8 + length + start)
