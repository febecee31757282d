"""Read tables of token vectors: those of this package, of model2vec, and several side by side.

A row's numbers are floats, or 4 or 8 bits with a scale for each block of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from knapper.index.models.base import EmbedderError
from knapper.system.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER: Final = Path(__file__).parents[2] / "data" / "embeddings"
"""The package's own table."""
MODEL: Final = "multilingual-e5-small-static-160"
"""Its name, which stands for the content: another table gets another name."""
TABLE_FILE: Final = "table.safetensors"
"""A table of 4 or 8 bits, with its scales."""
PIECES_FILE: Final = "pieces.safetensors"
"""The tokens of the package's own table, in a form that needs no loading."""
LIST_FILE: Final = "tables.json"
"""Names several tables in folders below, each with its weight."""
FOLDER_HINT: Final = (
    "embeddings.folder has to hold tokenizer.json and model.safetensors, as model2vec writes them, or tables.json"
)
_HINT: Final = "reinstall knapper, or set embeddings.kind to endpoint, onnx or none"
_WEIGHTS_FILE: Final = "weights.safetensors"
_MODEL2VEC_FILES: Final = ("model.safetensors", "0_StaticEmbedding/model.safetensors")
_MODEL2VEC_TABLES: Final = ("embeddings", "embedding.weight")
_MAX_HEADER_BYTES: Final = 1_000_000
_MAX_LIST_BYTES: Final = 100_000
_MAX_PARTS: Final = 8
_DTYPES: Final = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I8": np.dtype("<i1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
    "U32": np.dtype("<u4"),
}
_ZERO_OF_4_BITS: Final = 8
_ZERO_OF_8_BITS: Final = 128


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


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file.

    Raises:
        OSError: It can't be written.
    """
    names = {kind: name for name, kind in _DTYPES.items()}
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    size = 0
    for name, array in arrays.items():
        offsets = [size, size + array.nbytes]
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": offsets}
        size += array.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        _ = file.write(len(head).to_bytes(8, "little") + head)
        for array in arrays.values():
            _ = file.write(np.ascontiguousarray(array).tobytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTable:
    """A table of token vectors, as a file has it."""

    rows: NDArray[Any]
    name: str
    """An id of all that a vector depends on, but for the tokenizer."""
    tokenizer: Path
    counts_signs: bool = False
    """Whether every known token counts; otherwise only tokens with a letter or digit do."""
    weights: NDArray[np.floating] | None = None
    """By token; None gives each the same."""
    places: NDArray[np.integer] | None = None
    """Each token's row; None where token and row have the same number."""
    scales: NDArray[np.floating] | None = None
    """By row, one for each block of numbers of 4 or 8 bits; None where rows are the numbers themselves."""
    is_halved: bool = False
    """Whether a byte holds two numbers of 4 bits."""

    @property
    def vocabulary(self) -> int:
        """Return how many tokens have a row."""
        return len(self.rows) if self.places is None else len(self.places)

    @property
    def dimensions(self) -> int:
        """Return how many numbers a row holds."""
        return int(self.rows.shape[1]) * (2 if self.is_halved else 1)

    def vectors(self, tokens: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors of tokens below ``vocabulary``, each with its weight."""
        places = tokens if self.places is None else self.places[tokens]
        rows = np.asarray(self.rows)[places]
        vectors = (
            rows.astype(np.float32) if self.scales is None else self._unpack(rows, np.asarray(self.scales)[places])
        )
        if self.weights is not None:
            vectors *= self.weights[tokens].astype(np.float32)[:, None]
        return vectors

    def _unpack(self, rows: NDArray[np.uint8], scales: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the numbers of rows of 4 or 8 bits.

        In 4 bits, the bytes of a block have the numbers of its first half in their low bits, and those of the other
        half in the high ones.
        """
        count, blocks = scales.shape
        packed = rows.reshape(count, blocks, rows.shape[1] // blocks)
        if self.is_halved:
            half = packed.shape[2]
            numbers = np.empty((count, blocks, 2 * half), np.float32)
            numbers[:, :, :half] = packed & 0x0F
            numbers[:, :, half:] = packed >> 4
            numbers -= _ZERO_OF_4_BITS
        else:
            numbers = packed.astype(np.float32)
            numbers -= _ZERO_OF_8_BITS
        numbers *= scales.astype(np.float32)[:, :, None]
        return numbers.reshape(count, self.dimensions)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedFolder:
    """A table's folder, and how much its vectors weigh beside those of other tables."""

    path: Path
    weight: float = 1.0


def read_folders(folder: Path) -> Sequence[WeightedFolder]:
    """Return the folders of the tables that a folder names, or itself.

    ``{"tables": [{"folder": "english", "weight": 0.35}, {"folder": "others", "weight": 0.65}]}`` in ``tables.json``
    gives two.

    Raises:
        EmbedderError: The list can't be read, or names a folder outside.
    """
    path = folder / LIST_FILE
    if not path.is_file():
        return [WeightedFolder(path=folder)]
    try:
        with path.open("rb") as file:
            entries = json.loads(file.read(_MAX_LIST_BYTES))["tables"]
        parts = [_read_entry(folder, entry["folder"], entry.get("weight", 1)) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _list_error(path) from error
    if not 0 < len(parts) <= _MAX_PARTS:
        raise _list_error(path)
    return parts


def _read_entry(folder: Path, name: str, weight: float) -> WeightedFolder:
    below = (folder / name).resolve()
    # A weight that isn't a number compares as false.
    if not below.is_relative_to(folder.resolve()) or not 0 < float(weight) <= 1:
        raise ValueError(name)
    return WeightedFolder(path=below, weight=float(weight))


def _list_error(path: Path) -> EmbedderError:
    return EmbedderError(
        f"the list of tables {path} can't be used",
        hint='write {"tables": [{"folder": "NAME", "weight": 0.5}, …]}, with folders below it and weights from 0 to 1, '
        f"at most {_MAX_PARTS} of them",
    )


def table_hint(folder: Path) -> str:
    """Return what to do where a folder's table can't be read."""
    return _HINT if folder == FOLDER else FOLDER_HINT


def read_table(folder: Path) -> TokenTable:
    """Read the table of a folder, in one of this package's forms or in model2vec's.

    Raises:
        EmbedderError: It is missing or damaged.
    """
    if (folder / TABLE_FILE).exists():
        return _read_scaled(folder)
    file = next((folder / name for name in _MODEL2VEC_FILES if (folder / name).is_file()), None)
    if file is not None and not (folder / _WEIGHTS_FILE).exists():
        return _read_model2vec(folder, file)
    is_own_form = (folder / _WEIGHTS_FILE).exists()
    path = folder / (TABLE_FILE if folder == FOLDER else _WEIGHTS_FILE if is_own_form else _MODEL2VEC_FILES[0])
    named = map_tensors(path, hint=table_hint(folder))
    if len(named) != 1:
        raise _damaged(path)
    (rows,) = named.values()
    if rows.ndim != 2 or rows.dtype.kind != "f":
        raise _damaged(path)
    return TokenTable(rows=rows, name=f"static:{_digest(rows)}", tokenizer=folder / "tokenizer.json")


def _read_scaled(folder: Path) -> TokenTable:
    """Read a table of bytes: ``q`` of 4 bits or ``q8`` of 8, and ``scale`` with a number for each block of a row."""
    path = folder / TABLE_FILE
    named = map_tensors(path, hint=table_hint(folder))
    rows, scales = named.get("q", named.get("q8")), named.get("scale")
    if rows is None or scales is None or rows.ndim != 2 or scales.ndim != 2 or len(rows) != len(scales):
        raise _damaged(path)
    if rows.dtype != np.uint8 or scales.dtype.kind != "f" or rows.shape[1] % scales.shape[1]:
        raise _damaged(path)
    return TokenTable(
        rows=rows,
        # Hashing 16 MB would take longer than to embed a question.
        name=MODEL if folder == FOLDER else f"static:{_digest(rows, scales)}",
        tokenizer=folder / (PIECES_FILE if folder == FOLDER else "tokenizer.json"),
        counts_signs=True,
        scales=scales,
        is_halved="q" in named,
    )


def _read_model2vec(folder: Path, file: Path) -> TokenTable:
    """Read a table that model2vec, or sentence-transformers for it, has written.

    Source: model2vec, ``model2vec/persistence``: the matrix ``embeddings``, and for a smaller vocabulary ``weights`` by
    token and ``mapping`` from token to row.
    """
    named = map_tensors(file, hint=FOLDER_HINT)
    rows = next((named[name] for name in _MODEL2VEC_TABLES if name in named), None)
    weights, places = named.get("weights"), named.get("mapping")
    if rows is None or rows.ndim != 2 or rows.dtype.kind not in "fi":
        raise _damaged(file)
    tokens = len(rows) if places is None else len(places)
    if weights is not None and (weights.shape != (tokens,) or weights.dtype.kind != "f"):
        raise _damaged(file)
    if places is not None and not (
        places.ndim == 1 and places.dtype.kind == "i" and int(places.min()) >= 0 and int(places.max()) < len(rows)
    ):
        raise _damaged(file)
    beside = file.parent / "tokenizer.json"
    return TokenTable(
        rows=rows,
        name=f"model2vec:{_digest(*(one for one in (rows, weights, places) if one is not None))}",
        tokenizer=beside if beside.is_file() else folder / "tokenizer.json",
        counts_signs=True,
        weights=weights,
        places=places,
    )


def _damaged(path: Path) -> EmbedderError:
    return EmbedderError(f"the embedder's file {path} is damaged", hint=table_hint(path.parent))


def _digest(*arrays: NDArray[Any]) -> str:
    digest = blake2b(digest_size=6)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
