"""Numpy when an array is first needed, and files of arrays that are mapped rather than read.

Importing numpy takes 0.15 s, and reading, editing and most listing need none. A file of arrays is written whole or not
at all, and never changes: processes that have it open share its pages.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import zlib
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from knapper.system import private

_BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray
else:

    def _import_numpy() -> ModuleType:
        """Import numpy without the threads that its algebra starts for each processor.

        They take as long as the rest of the import, and answers are sums over mapped files, which wait for memory.
        """
        is_open = _BLAS_THREADS not in os.environ  # noqa: TID251 - the library reads this while it is imported
        if is_open:
            os.environ[_BLAS_THREADS] = "1"  # noqa: TID251 - and nobody else does
        try:
            return import_module("numpy")
        finally:
            if is_open:
                _ = os.environ.pop(_BLAS_THREADS, None)  # noqa: TID251 - processes started from here don't inherit it

    class _DeferredNumpy:
        """Stand-in for the module that imports it at the first attribute."""

        def __getattr__(self, name: str) -> object:
            # Kept, so that only the first use of a name comes here. The import's own lock orders threads.
            value = self.__dict__[name] = getattr(_import_numpy(), name)
            return value

    np = _DeferredNumpy()

__all__ = [
    "ArrayFile",
    "ArrayToWrite",
    "ScoredIds",
    "first_of_groups",
    "normalize_rows",
    "np",
    "open_arrays",
    "return_free_memory",
    "sizes_of_groups",
    "write_arrays",
]

_ALIGNMENT: Final = 64
_HEADER_BYTES: Final = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayToWrite:
    """One array of a file, given in blocks, so that it needn't be in memory as a whole."""

    dtype: str
    blocks: Iterable[NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFile:
    """A file that is open."""

    facts: Mapping[str, Any]
    """What was written beside the arrays."""
    arrays: Mapping[str, NDArray[Any]]
    """Flat, by name; their pages are mapped."""
    checksums: Mapping[str, int]
    """Of each array."""


def open_arrays(path: Path, kind: str, *, unchecked: Collection[str] = ()) -> ArrayFile | None:
    """Map a file; None where there is none, or where it isn't whole or of another kind.

    Args:
        path: The file.
        kind: What was written as its kind and version.
        unchecked: Arrays (or endings of names) that aren't compared with their checksum, which reads all of each.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    head, _, _ = mapped[:_HEADER_BYTES].partition(b"\n")
    checksum, _, header_json = head.partition(b" ")
    if not header_json or checksum != _header_checksum(header_json):
        return None
    header = cast("dict[str, Any]", json.loads(header_json))
    if header.get("kind") != kind or header["size"] != len(mapped):
        return None
    arrays = {
        name: np.frombuffer(mapped, dtype, count=count, offset=offset)
        for name, (dtype, offset, count, _) in header["arrays"].items()
    }
    checksums = {name: int(place[3]) for name, place in header["arrays"].items()}
    endings = tuple(unchecked)
    if any(zlib.crc32(array.data) != checksums[name] for name, array in arrays.items() if not name.endswith(endings)):
        return None
    return ArrayFile(facts=header["facts"], arrays=arrays, checksums=checksums)


def write_arrays(path: Path, kind: str, facts: Mapping[str, object], arrays: Mapping[str, ArrayToWrite]) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: The disk is full, or the folder can't be written.
    """
    places: dict[str, tuple[str, int, int, int]] = {}
    partial = path.with_suffix(".part")
    try:
        with os.fdopen(private.open_new(partial), "wb") as file:
            offset = _HEADER_BYTES
            for name, array in arrays.items():
                file.seek(offset)
                count = checksum = 0
                for block in array.blocks:
                    values = np.ascontiguousarray(block, array.dtype).reshape(-1)
                    file.write(values.data)
                    checksum = zlib.crc32(values.data, checksum)
                    count += len(values)
                places[name] = (array.dtype, offset, count, checksum)
                offset += -(-count * np.dtype(array.dtype).itemsize // _ALIGNMENT) * _ALIGNMENT
            header = json.dumps({"kind": kind, "size": offset, "facts": facts, "arrays": places}).encode()
            head = _header_checksum(header) + b" " + header + b"\n"
            if len(head) > _HEADER_BYTES:
                raise ValueError(f"the header takes {len(head)} bytes")
            file.truncate(offset)
            file.seek(0)
            file.write(head)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _header_checksum(header: bytes) -> bytes:
    return b"%08x" % zlib.crc32(header)


class ScoredIds(Mapping[int, float]):
    """Ids with their scores, best first: arrays for those who go on computing, a mapping for all others."""

    __slots__ = ("_by_id", "ids", "scores")

    def __init__(self, ids: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """Take an id and a score for each place."""
        self.ids = ids
        self.scores = scores
        self._by_id: dict[int, float] | None = None

    @classmethod
    def of(cls, scores: Mapping[int, float]) -> ScoredIds:
        """Return a mapping's arrays, in its order."""
        if isinstance(scores, ScoredIds):
            return scores
        return cls(np.array([*scores], np.int64), np.array([*scores.values()], np.float64))

    def _mapping(self) -> dict[int, float]:
        if self._by_id is None:
            self._by_id = dict(zip(self.ids.tolist(), self.scores.tolist(), strict=True))
        return self._by_id

    def __getitem__(self, key: int) -> float:
        """Return an id's score."""
        return self._mapping()[key]

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids, best first."""
        return iter(self._mapping())

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.ids)

    def items(self) -> ItemsView[int, float]:
        """Return each id with its score, best first."""
        return self._mapping().items()


def first_of_groups(groups: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Return where each group begins; the elements of one stand together, and have one value."""
    is_first = np.ones(len(groups), np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=is_first[1:])
    return is_first.nonzero()[0]


def sizes_of_groups(heads: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return how many of *count* elements each group has, by where the groups begin."""
    sizes = np.empty(len(heads), np.intp)
    if len(heads):
        np.subtract(heads[1:], heads[:-1], out=sizes[:-1])
        sizes[-1] = count - heads[-1]
    return sizes


def normalize_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide each row by its length, in place; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


def return_free_memory() -> None:
    """Let glibc return what large work on arrays has freed, which a server would hold until it ends."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only a writer needs it

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def positions_among(known: NDArray[Any], ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where each id is among the known ones, and whether it is; the position of an unknown id is another's."""
    ids = ids.astype(known.dtype, copy=False)  # or numpy would convert all that are known, as a word's 590,000 rows
    places = known.searchsorted(ids)
    places[places == len(known)] = 0
    return places, known[places] == ids if len(known) else np.zeros(len(ids), np.bool_)


def sort_distinct(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sort rows in place, and return each once."""
    rows.sort()
    return rows[first_of_groups(rows)]


def cut_to_best(rows: NDArray[Any], sums: NDArray[np.float64], limit: int) -> tuple[NDArray[Any], float]:
    """Return those of at least *limit* rows that are best so far, and the lowest of their sums.

    As sums only grow, these rows tell from then on what the best of all reach at least.
    """
    found = sums[rows]
    if len(rows) > limit:
        best = np.argpartition(found, -limit)[-limit:]
        rows, found = rows[best], found[best]
    return rows, float(found.min())


def lowest_of_best(scores: NDArray[np.float64], limit: int) -> float:
    """Return the score of the last of the best; 0 where there are fewer."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) >= limit else 0.0
