"""Read the tensors of a safetensors file, memory-mapped."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from knapper.index.embedders.base import EmbedderError

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
