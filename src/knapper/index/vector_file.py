"""Derive a file of one model's vectors from a large index, and map it.

The file holds the exact rows, as float32, and beside them codes of 4 bits a number where turbovec is installed: those
find what may be nearest in a tenth of the time, and the exact rows rank it. The database names the file that belongs to
it; what changed since its generation is in the tables, so each snapshot has its file and its changes, whatever is
killed and whenever. Whoever finds it missing, damaged or of another index or model does without.
"""

from __future__ import annotations

import importlib
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

from knapper.index import database
from knapper.index.arrays import ArrayToWrite, np, open_arrays, write_arrays
from knapper.index.database import VECTORS_PREFIX, Database

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KIND: Final = "vectors 1"
_META: Final = "vector_file"
MIN_ROWS: Final = 10_000
"""Vectors from which on a file is derived; below, reading all of them takes some hundredths of a second."""
MIN_CODED_ROWS: Final = 20_000
"""Vectors from which on codes are derived, too; below, comparing all of them takes about a millisecond."""
_CODE_BITS: Final = 4
_CODED_MULTIPLE: Final = 8
"""turbovec takes vectors of so many numbers, or a multiple."""
_MIN_CHANGED_ROWS: Final = 2_000
_MAX_CHANGED_SHARE: Final = 0.05
"""Changed rows, at least and as a share of all, from which on the file is derived anew."""
_BLOCK_ROWS: Final = 8_192
_MAX_CODE_ERROR: Final = 0.3
"""Largest difference between the cosine by a code and the exact one, five times what was seen; more is damage."""


class _Codes(Protocol):
    """What turbovec's index offers; a row's place is the order in which it was added."""

    def add(self, vectors: NDArray[np.float32]) -> None: ...

    def search(
        self, queries: NDArray[np.float32], k: int, *, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...

    def to_bytes(self) -> bytes: ...


class _CodesType(Protocol):
    def __call__(self, dim: int, bit_width: int) -> _Codes: ...

    def from_bytes(self, data: bytes) -> _Codes: ...


def coder() -> str:
    """Return the version of turbovec that is installed; empty for none."""
    if find_spec("turbovec") is None:
        return ""
    from importlib import metadata  # noqa: PLC0415 - 40 modules, which only a large index needs

    return metadata.version("turbovec")


def _codes_type() -> _CodesType:
    turbovec = importlib.import_module("turbovec")  # optional, and without types
    return cast("_CodesType", turbovec.TurboQuantIndex)


@dataclass(slots=True, kw_only=True)
class VectorFile:
    """An open file of vectors; its pages are shared by all processes that have it open.

    Reading the codes takes 0.1 s, ten times as long as comparing 100,000 vectors once. So the first question does
    without them, the second one begins to read them beside it, and those after it are answered by them.
    """

    path: Path
    generation: int
    """Of the index that it holds all vectors of."""
    ids: NDArray[np.int64]
    """Chunks, ascending."""
    rows: NDArray[np.float32]
    """Of length 1; one for each chunk."""
    stored_codes: NDArray[np.uint8]
    """As turbovec wrote them; none where it wasn't installed."""
    coder: str
    """Its version, as another one may write them in another way."""
    codes: _Codes | None = None
    """Set once they are read."""
    _questions: int = 0
    _reading: threading.Thread | None = None

    @classmethod
    def open(cls, path: Path, uid: str, model: str) -> Self | None:
        """Map a file; None where there is none, or where it isn't whole or of another index or model."""
        file = open_arrays(path, _KIND, unchecked=("rows",))
        if file is None or (file.facts["uid"], file.facts["model"]) != (uid, model):
            return None
        ids, dimensions = file.arrays["ids"], int(file.facts["dimensions"])
        return cls(
            path=path,
            generation=int(file.facts["generation"]),
            ids=ids,
            rows=file.arrays["rows"].reshape(len(ids), dimensions),
            stored_codes=file.arrays["codes"],
            coder=str(file.facts["coder"]),
        )

    def read_codes(self) -> None:
        """Read the codes, where there are any and the turbovec that wrote them is installed."""
        if not len(self.stored_codes) or self.coder != coder():
            return
        codes = _codes_type().from_bytes(self.stored_codes.tobytes())
        # What the first search of a process prepares.
        codes.search(np.eye(1, self.rows.shape[1], dtype=np.float32), 1)
        self.codes = codes

    def _count_question(self) -> None:
        self._questions += 1
        if self._questions > 1 and self._reading is None:
            self._reading = threading.Thread(target=self.read_codes, name="knapper-codes", daemon=True)
            self._reading.start()

    def find(self, chunks: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the place of each chunk, and whether it has one; the place of one that has none means nothing."""
        places = np.minimum(np.searchsorted(self.ids, chunks), max(len(self.ids) - 1, 0))
        return places, self.ids[places] == chunks if len(self.ids) else np.zeros(len(chunks), np.bool_)

    def score(
        self, query: NDArray[np.float32], is_excluded: NDArray[np.bool_], candidates: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the places of the rows that may be nearest, with their exact cosines.

        Args:
            query: Of length 1.
            is_excluded: The rows to leave out, by place.
            candidates: So many are chosen by their codes; without codes, or where fewer are left, all are compared.

        Raises:
            LookupError: The rows aren't those that were written.
        """
        self._count_question()
        codes = self.codes
        left = len(is_excluded) - int(np.count_nonzero(is_excluded))
        if codes is None and left > candidates:
            scores = self.rows @ query
            scores[is_excluded] = -np.inf
            places = np.arange(len(scores))
        elif codes is None or left <= candidates:
            places = np.flatnonzero(~is_excluded)
            scores = self.rows[places] @ query
        else:
            excluded = len(is_excluded) - left
            if excluded <= candidates:
                # A mask makes it take more than twice as long; so many more leave as many as were asked for.
                approximate, found = codes.search(query[None], candidates + excluded)
            else:
                approximate, found = codes.search(query[None], candidates, mask=~is_excluded)
            places = found[0].astype(np.intp)
            scores = self.rows[places] @ query
            is_wrong = not np.abs(scores - approximate[0]).max(initial=0) <= _MAX_CODE_ERROR
            scores[is_excluded[places]] = -np.inf
            if is_wrong:
                raise LookupError("the file of vectors is damaged")
        # Also false for what isn't a number, which a flipped bit can make; excluded ones are lower than all.
        if not scores.max(initial=0) <= 1 + _MAX_CODE_ERROR:
            raise LookupError("the file of vectors is damaged")
        return places, scores


def is_due(index: Database, model: str) -> bool:
    """Return whether a file should be derived: there are many vectors, and no good file or many changes since."""
    with index.snapshot() as connection:
        # The index on generations is small; the table itself holds the vectors.
        total = int(connection.execute("SELECT COUNT(*) FROM vectors INDEXED BY vectors_generation").fetchone()[0])
        if total < MIN_ROWS:
            return False
        path = named(connection, index.path.parent)
        file = open_arrays(path, _KIND, unchecked=("",)) if path else None
        if file is None or (file.facts["uid"], file.facts["model"]) != (database.state_of(connection)[0], model):
            return True
        generation = int(file.facts["generation"])
        is_coded = bool(len(file.arrays["codes"])) and file.facts["coder"] == coder()
        if generation < database.removed_since(connection):
            return True
        if not is_coded and _is_coded(len(file.arrays["ids"]), int(file.facts["dimensions"])):
            return True
        changed = sum(
            int(connection.execute(f"SELECT COUNT(*) FROM {table} WHERE generation > ?", (generation,)).fetchone()[0])
            for table in ("vectors", "removed")
        )
        return changed > max(_MIN_CHANGED_ROWS, _MAX_CHANGED_SHARE * total)


def _is_coded(count: int, dimensions: int) -> bool:
    return count >= MIN_CODED_ROWS and dimensions % _CODED_MULTIPLE == 0 and coder() != ""


def build(index: Database, model: str) -> None:
    """Derive the file from the stored vectors, and let the database name it; readers and writers go on meanwhile.

    Raises:
        OSError: The file can't be written.
        StorageError: The database can't be written.
    """
    with index.snapshot() as connection:
        uid, generation = database.state_of(connection)
        sizes = connection.execute(
            "SELECT length(vector), COUNT(*) FROM vectors WHERE model = ? GROUP BY 1", (model,)
        ).fetchall()
        if len(sizes) != 1 or sizes[0][1] < MIN_ROWS:
            return  # those of a model that takes another's place are still being computed
        size, count = sizes[0]
        dimensions = size // 2
        codes = _codes_type()(dimensions, _CODE_BITS) if _is_coded(count, dimensions) else None
        ids: list[NDArray[np.int64]] = []
        name = f"{VECTORS_PREFIX}{generation}-{secrets.token_hex(4)}"
        write_arrays(
            index.path.parent / name,
            _KIND,
            {"uid": uid, "generation": generation, "model": model, "dimensions": dimensions, "coder": coder()},
            {
                "rows": ArrayToWrite(dtype="<f4", blocks=_read_rows(connection, model, dimensions, ids, codes)),
                "ids": ArrayToWrite(dtype="<i8", blocks=ids),
                "codes": ArrayToWrite(dtype="|u1", blocks=_later(lambda: codes.to_bytes() if codes else b"")),
            },
        )
    with index.transaction(counts=False) as connection:
        # Another process may have begun the index anew.
        if database.state_of(connection)[0] == uid:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_META, name))
    database.return_free_memory()
    remove_stray_files(index)


def _later(read: Callable[[], bytes]) -> Iterator[NDArray[Any]]:
    """Yield what is known only once the blocks before were written."""
    yield np.frombuffer(read(), np.uint8)


def _read_rows(
    connection: sqlite3.Connection,
    model: str,
    dimensions: int,
    ids: list[NDArray[np.int64]],
    codes: _Codes | None,
) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors by chunk in blocks, and add them to *ids* and *codes*."""
    cursor = connection.execute("SELECT chunk_id, vector FROM vectors WHERE model = ? ORDER BY chunk_id", (model,))
    while rows := cursor.fetchmany(_BLOCK_ROWS):
        block = np.frombuffer(b"".join(vector for _, vector in rows), np.float16).reshape(-1, dimensions)
        exact = block.astype(np.float32)
        ids.append(np.array([chunk_id for chunk_id, _ in rows], np.int64))
        if codes is not None:
            codes.add(exact)
        yield exact


def remove_stray_files(index: Database) -> None:
    """Remove the files in the index's folder that its database doesn't name."""
    with index.snapshot() as connection:
        kept = named(connection, index.path.parent)
    for path in index.path.parent.glob(f"{VECTORS_PREFIX}*"):
        if path != kept:
            remove(path)


def remove(path: Path) -> None:
    """Remove a file; Windows keeps it while it is mapped, and the next build removes it."""
    with suppress(OSError):
        path.unlink()


def remove_damaged(path: Path) -> None:
    """Remove a file that isn't whole, so that another one is derived; one of another model stays."""
    if open_arrays(path, _KIND, unchecked=("rows",)) is None:
        remove(path)


def remove_wrong(connection: sqlite3.Connection, folder: Path) -> None:
    """Remove the file if its rows aren't the stored vectors that haven't changed since.

    Args:
        connection: In a snapshot.
        folder: The index's own.
    """
    path = named(connection, folder)
    if path is None or not path.exists():
        return
    whole = open_arrays(path, _KIND)
    if whole is None:
        remove(path)
        return
    model = str(whole.facts["model"])
    file = open_named(connection, folder, model)
    if file is None or file.generation < database.removed_since(connection):
        return
    cursor = connection.execute(
        "SELECT chunk_id, vector FROM vectors WHERE model = ? AND generation <= ? ORDER BY chunk_id",
        (model, file.generation),
    )
    while rows := cursor.fetchmany(_BLOCK_ROWS):
        places, is_there = file.find(np.array([chunk_id for chunk_id, _ in rows], np.int64))
        stored = np.frombuffer(b"".join(vector for _, vector in rows), np.float16)
        if not is_there.all() or not np.array_equal(file.rows[places].ravel(), stored):
            remove(path)
            return


def named(connection: sqlite3.Connection, folder: Path) -> Path | None:
    """Return the path of the file that the database names; None where it names none."""
    name = str(database.meta_of(connection).get(_META, ""))
    # The name is a value of the database, which may be damaged: it never leads out of the folder.
    return folder / name if name.startswith(VECTORS_PREFIX) and Path(name).name == name else None


def open_named(connection: sqlite3.Connection, folder: Path, model: str) -> VectorFile | None:
    """Open the file that the database names, where it is whole and of this index and model."""
    path = named(connection, folder)
    return VectorFile.open(path, database.state_of(connection)[0], model) if path else None
