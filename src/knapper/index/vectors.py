"""Rank chunks by the cosine between their vectors and the query's, and derive a file of a large index's vectors.

The file holds the exact rows, as float32, and beside them codes of 4 bits a number where turbovec is installed: those
find what may be nearest in a tenth of the time, and the exact rows rank it. The database names the file that belongs to
it; what changed since its generation is in the tables, so each snapshot has its file and its changes, whatever is
killed and whenever. Whoever finds it missing, damaged or of another index or model does without.
"""

from __future__ import annotations

import functools
import importlib
import secrets
import sqlite3
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from knapper.index import database, documents
from knapper.index.database import VECTORS_PREFIX, Database
from knapper.system import arrays
from knapper.system.arrays import ArrayToWrite, ScoredIds, np, open_arrays, write_arrays

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


@functools.cache
def coder() -> str:
    """Return the version of turbovec that is installed; empty for none."""
    if find_spec("turbovec") is None:
        return ""
    from importlib import metadata  # noqa: PLC0415 - 40 modules, which only a large index needs

    return metadata.version("turbovec")


def _codes_type() -> _CodesType:
    turbovec = importlib.import_module("turbovec")  # optional, and without types
    return turbovec.TurboQuantIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScan:
    """The rows of a file that may be nearest to a query."""

    places: NDArray[np.int64]
    cosines: NDArray[np.float32]
    """As the codes tell them, or exact ones."""
    is_exact: bool


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
    codes_checksum: int
    coder: str
    """Its version, as another one may write them in another way."""
    codes: _Codes | None = None
    """Set once they are read."""
    _questions: int = 0
    _reading: threading.Thread | None = None

    @classmethod
    def open(cls, path: Path, uid: str, model: str) -> Self | None:
        """Map a file; None where there is none, or where it isn't whole or of another index or model."""
        file = open_arrays(path, _KIND, unchecked=("rows", "codes"))
        if file is None or (file.facts["uid"], file.facts["model"]) != (uid, model):
            return None
        ids, dimensions = file.arrays["ids"], int(file.facts["dimensions"])
        return cls(
            path=path,
            generation=int(file.facts["generation"]),
            ids=ids,
            rows=file.arrays["rows"].reshape(len(ids), dimensions),
            stored_codes=file.arrays["codes"],
            codes_checksum=file.checksums["codes"],
            coder=str(file.facts["coder"]),
        )

    def read_codes(self) -> None:
        """Read the codes, where there are any and the turbovec that wrote them is installed.

        A file whose codes are damaged is removed, so that the next writer derives it anew.
        """
        if not len(self.stored_codes) or self.coder != coder():
            return
        if zlib.crc32(self.stored_codes.data) != self.codes_checksum:
            remove(self.path)
            return
        codes = _codes_type().from_bytes(self.stored_codes.tobytes())
        # What the first search of a process prepares.
        codes.search(np.eye(1, self.rows.shape[1], dtype=np.float32), 1)
        self.codes = codes

    def find(self, chunks: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the place of each chunk, and whether it has one; the place of one that has none means nothing."""
        places = np.minimum(np.searchsorted(self.ids, chunks), max(len(self.ids) - 1, 0))
        return places, self.ids[places] == chunks if len(self.ids) else np.zeros(len(chunks), np.bool_)

    def scan(self, query: NDArray[np.float32], is_excluded: NDArray[np.bool_], candidates: int) -> FileScan:
        """Look for the rows that may be nearest, without Python's lock for nearly all of the time.

        Args:
            query: Of length 1.
            is_excluded: The rows to leave out, by place.
            candidates: So many are chosen by their codes; without codes, or where fewer are left, all are compared.
        """
        self._questions += 1
        if self._questions > 1 and self._reading is None:
            self._reading = threading.Thread(target=self.read_codes, name="knapper-codes", daemon=True)
            self._reading.start()
        codes = self.codes
        left = len(is_excluded) - int(np.count_nonzero(is_excluded))
        if left <= candidates:
            places = np.flatnonzero(~is_excluded)
            return FileScan(places=places, cosines=self.rows[places] @ query, is_exact=True)
        if codes is None:
            return FileScan(places=np.arange(len(self.rows)), cosines=self.rows @ query, is_exact=True)
        excluded = len(is_excluded) - left
        if excluded <= candidates:
            # A mask makes it take more than twice as long; so many more leave as many as were asked for.
            cosines, places = codes.search(query[None], candidates + excluded)
        else:
            cosines, places = codes.search(query[None], candidates, mask=~is_excluded)
        return FileScan(places=places[0], cosines=cosines[0], is_exact=False)

    def score(
        self, query: NDArray[np.float32], is_excluded: NDArray[np.bool_], scan: FileScan
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the places of the rows that a scan has found, with their exact cosines, lowest for excluded ones.

        Raises:
            LookupError: The rows aren't those that were written.
        """
        places, scores = scan.places, scan.cosines
        is_wrong = False
        if not scan.is_exact:
            scores = self.rows.take(places, axis=0) @ query
            is_wrong = not np.abs(scores - scan.cosines).max(initial=0) <= _MAX_CODE_ERROR
        scores[is_excluded[places]] = -np.inf
        # Also false for what isn't a number, which a flipped bit can make; excluded ones are lower than all.
        if is_wrong or not scores.max(initial=0) <= 1 + _MAX_CODE_ERROR:
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
    arrays.return_free_memory()
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


_MIN_CAPACITY = 1_024
_GROWTH_FACTOR = 1.25
"""Capacity relative to the stored vectors, so that the next added vectors don't require a copy of all."""
_MAX_REMOVED_SHARE = 0.125
"""Of all rows, until the matrix is made anew: 50,000 vectors take 53 MB, and 15 ms to copy."""
_LOAD_ROWS = 8_192
_MAX_ELEMENT = 1.01
"""No element of a vector of length 1 is larger, except for the rounding of float16."""


_Scans = tuple[FileScan | None, "NDArray[np.float32]"]
"""What is near in the file, if there is one, and the cosines of the rows in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRanking:
    """One query, and what it is compared with."""

    query: NDArray[np.float32]
    limit: int
    file: VectorFile | None
    is_left_out: NDArray[np.bool_]
    """The file's rows that may not be found, by place."""
    ids: NDArray[np.int64]
    rows: NDArray[np.float32]
    """In memory."""
    is_excluded: NDArray[np.bool_]
    """The rows in memory that may not be found."""
    discard: Callable[[VectorFile], None]

    @property
    def work(self) -> int:
        """Return how many exact rows take as long to compare as what `scan` compares."""
        coded = self.file.ids if self.file else ()
        return len(self.ids) + len(coded) // (_CODES_PER_ROW if self.file and self.file.codes is not None else 1)

    def scan(self) -> _Scans:
        """Compare the vectors, which takes most of the time, and nothing from other threads."""
        cosines = self.rows @ self.query if len(self.ids) else np.empty(0, np.float32)
        if self.file is None:
            return None, cosines
        size = len(self.file.ids)
        candidates = max(_MIN_CANDIDATES, _CANDIDATES_PER_RESULT * self.limit, size // _ROWS_PER_CANDIDATE)
        return self.file.scan(self.query, self.is_left_out, candidates), cosines

    def best(self, scans: _Scans) -> Mapping[int, float]:
        """Return the nearest chunks with their cosine, nearest first.

        Raises:
            LookupError: The file is damaged. It isn't used any more: what ``sync`` does next reads all vectors.
        """
        found, cosines = scans
        ranked: Mapping[int, float] = {}
        if self.file and found:
            try:
                places, scores = self.file.score(self.query, self.is_left_out, found)
            except LookupError:
                self.discard(self.file)
                raise
            ranked = _nearest(self.file.ids, places, scores, self.limit)
        if len(self.ids):
            cosines[self.is_excluded] = -np.inf
            ranked = {**ranked, **_nearest(self.ids, np.arange(len(cosines)), cosines, self.limit)}
            if self.file:
                ranked = dict(sorted(ranked.items(), key=lambda item: -item[1])[: self.limit])
        return ranked


_CODES_PER_ROW = 16
"""Codes that are compared, and the best of them chosen, in an exact row's time: 8 to 30."""
_MIN_CANDIDATES = 400
_CANDIDATES_PER_RESULT = 2
_ROWS_PER_CANDIDATE = 1_400
"""What codes choose for the exact rows to rank: 400 hold .992 of the nearest 200 of 100,000, 720 of a million; to
choose them takes most of the time, and half as many again would hold .996."""
_KEPT_MASKS = 8
"""Of 0.1 MB for 100,000 rows each."""


class VectorCache:
    """The vectors of one model, updated from the index's changes.

    Those of a large index are in a mapped file; what changed since, and all of a small index, in one matrix of float32.
    """

    def __init__(self, model: str, folder: Path | None = None) -> None:
        """Start empty; ``sync`` fills it. *folder* is the index's own, where a large one has its file."""
        self.model = model
        self._folder = folder
        self._lock = threading.Lock()
        self._refused: Path | None = None
        self._clear()  # the arrays come with the first sync: most commands need none, nor numpy

    def sync(self, connection: sqlite3.Connection) -> None:
        """Apply the changes since the last call, as of *connection*'s snapshot."""
        with self._lock:
            uid, generation = database.state_of(connection)
            if (uid, generation) == (self._uid, self._generation):
                return
            if uid != self._uid or self._generation < database.removed_since(connection):
                self._reset()
                self._uid = uid
            self._map(connection)
            self._drop(connection)
            self._add(connection)
            self._generation = generation
            self._version += 1

    def begin(
        self,
        query: NDArray[np.float32],
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        without: Collection[int] = (),
    ) -> VectorRanking:
        """Take what a ranking compares as it is now, so that it doesn't wait for later changes.

        Chunks with a cosine of 0 or less are left out. In a large index with codes, a chunk beyond the first ten may be
        missing, about one of 120; every cosine is exact.

        Args:
            query: Normalised; a vector of other dimensions than the stored ones has no neighbours.
            limit: Maximum number of chunks.
            allowed: Mask by file id of the files whose chunks may be found; None allows all. It doesn't change.
            without: Chunks to leave out.
        """
        # Only for the moment of copying: the rows in use never change in place; ids do, for removed chunks.
        with self._lock:
            ids, rows = self._ids[: self._used].copy(), self._matrix[: self._used]
            hidden = [self._places[chunk_id] for chunk_id in without if chunk_id in self._places]
            file = self.file if self.file and len(query) == self.file.rows.shape[1] else None
            is_left_out = np.empty(0, np.bool_)
            if file:
                # The last masks are kept, as they take longer than the rest.
                kept = next((kept for kept in self._masks if kept[0] is allowed and kept[1] == self._version), None)
                if kept is None:
                    kept = allowed, self._version, self._is_gone | ~_allowed_places(file.ids, allowed)
                    self._masks = [kept, *self._masks[: _KEPT_MASKS - 1]]
                is_left_out = kept[2]
                if without:
                    places, is_there = file.find(np.fromiter(without, np.int64, len(without)))
                    is_left_out = is_left_out.copy()
                    is_left_out[places[is_there]] = True
        if len(query) != rows.shape[1]:
            ids, rows = ids[:0], rows[:0]
        is_excluded = ~_allowed_places(ids, allowed)
        is_excluded[hidden if len(ids) else []] = True
        return VectorRanking(
            query=query,
            limit=limit,
            file=file,
            is_left_out=is_left_out,
            ids=ids,
            rows=rows,
            is_excluded=is_excluded,
            discard=self._discard,
        )

    def rank(
        self,
        query: NDArray[np.float32],
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        without: Collection[int] = (),
    ) -> Mapping[int, float]:
        """Return the nearest chunks with their cosine, nearest first; see `begin` and `VectorRanking.best`."""
        ranking = self.begin(query, limit=limit, allowed=allowed, without=without)
        return ranking.best(ranking.scan())

    def rows_of(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return the vectors of those chunks that have one: their ids, and a row for each."""
        with self._lock:
            places_by_id = {chunk_id: self._places[chunk_id] for chunk_id in ids if chunk_id in self._places}
            if not self.file:
                return list(places_by_id), self._matrix[list(places_by_id.values())]
            others = np.array([chunk_id for chunk_id in ids if chunk_id not in places_by_id], np.int64)
            places, is_there = self.file.find(others)
            is_there &= ~self._is_gone[places]
            newer = self._matrix[list(places_by_id.values())].reshape(-1, self.file.rows.shape[1])
            found = [*places_by_id, *others[is_there].tolist()]
            return found, np.concatenate((newer, self.file.rows[places[is_there]]))

    def fits(self, query: NDArray[np.float32]) -> bool:
        """Return whether a query's vector has the stored dimensions; true where none are stored."""
        if self.file:
            return len(query) == self.file.rows.shape[1]
        return not self._places or len(query) == self._matrix.shape[1]

    @property
    def held_rows(self) -> int:
        """Return how many rows take memory: those of the vectors outside the file, and of removed ones."""
        return self._used

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self._places) + self._kept_rows

    def _reset(self) -> None:
        self._clear()
        self._ids = np.empty(0, np.int64)
        self._matrix = np.empty((0, 0), np.float32)
        self._is_gone = np.empty(0, np.bool_)

    def _clear(self) -> None:
        self._uid = ""
        self._generation = -1
        self._used = 0
        self._places: dict[int, int] = {}
        self.file: VectorFile | None = None
        """What it began from; None where the index is small, or has none that is whole."""
        self._kept_rows = 0
        self._version = 0
        self._masks: list[tuple[NDArray[np.bool_] | None, int, NDArray[np.bool_]]] = []

    def _map(self, connection: sqlite3.Connection) -> None:
        """Begin from the file that the database names, where it is newer than what was begun from."""
        path = named(connection, self._folder) if self._folder else None
        if self.file and not self.file.path.exists():
            self._reset()  # it was found to be wrong, or another one took its place
            self._uid = database.state_of(connection)[0]
        if path is None or path == self._refused or (self.file and self.file.path == path):
            return
        uid, generation = database.state_of(connection)
        file = VectorFile.open(path, uid, self.model)
        if file is None or not database.removed_since(connection) <= file.generation <= generation:
            if file is None:
                self._refused = path
                remove_damaged(path)
            return
        self._reset()
        self._uid, self._generation = uid, file.generation
        self.file, self._is_gone, self._kept_rows = file, np.zeros(len(file.ids), np.bool_), len(file.ids)
        self._matrix = np.empty((0, file.rows.shape[1]), np.float32)

    def _discard(self, file: VectorFile) -> None:
        """Leave a damaged file, and read all vectors at the next call."""
        with self._lock:
            self._refused = file.path
            remove(file.path)
            self._reset()

    def _drop(self, connection: sqlite3.Connection) -> None:
        if self._generation < 0:
            return
        removed = [
            int(chunk_id)
            for (chunk_id,) in connection.execute(
                "SELECT chunk_id FROM removed WHERE generation > ?", (self._generation,)
            )
        ]
        self._forget(removed)
        if self._used - len(self._places) > _MAX_REMOVED_SHARE * self._used + _MIN_CAPACITY:
            alive = np.flatnonzero(self._ids[: self._used] >= 0)
            self._ids, self._matrix = self._ids[alive].copy(), self._matrix[alive].copy()
            self._used = len(alive)
            self._places = {int(chunk_id): place for place, chunk_id in enumerate(self._ids)}

    def _forget(self, chunks: Sequence[int]) -> None:
        """Leave out the rows of chunks that were removed, or that get a new row."""
        for chunk_id in chunks:
            place = self._places.pop(chunk_id, None)
            if place is not None:
                self._ids[place] = -1
        if self.file and chunks:
            places, is_there = self.file.find(np.array(chunks, np.int64))
            self._is_gone[places[is_there]] = True
            self._kept_rows = len(self._is_gone) - int(np.count_nonzero(self._is_gone))

    def _add(self, connection: sqlite3.Connection) -> None:
        newest_row = connection.execute(
            "SELECT length(vector) FROM vectors WHERE generation > ? AND model = ? ORDER BY generation DESC LIMIT 1",
            (self._generation, self.model),
        ).fetchone()
        if newest_row is None:
            return
        size = int(newest_row[0])
        dimensions = size // 2
        # The model behind the name was replaced by one of other dimensions.
        if self._matrix.shape[1] != dimensions:
            uid = self._uid
            self._reset()
            self._uid, self._matrix = uid, np.empty((0, dimensions), np.float32)
        new_rows_sql = "FROM vectors WHERE generation > ? AND model = ? AND length(vector) = ?"
        parameters = (self._generation, self.model, size)
        needed = self._used + int(connection.execute(f"SELECT COUNT(*) {new_rows_sql}", parameters).fetchone()[0])
        if needed > len(self._ids):
            # Pages of an array that nothing was written to yet take no memory.
            capacity = max(int(needed * _GROWTH_FACTOR), _MIN_CAPACITY)
            self._ids = np.resize(self._ids, capacity) if len(self._ids) else np.empty(capacity, np.int64)
            larger_matrix = np.empty((capacity, dimensions), np.float32)
            larger_matrix[: self._used] = self._matrix[: self._used]
            self._matrix = larger_matrix
        cursor = connection.execute(f"SELECT chunk_id, vector {new_rows_sql}", parameters)
        while rows := cursor.fetchmany(_LOAD_ROWS):
            # A recomputed vector gets a new row, so that running rankings still read the old one.
            self._forget([chunk_id for chunk_id, _ in rows])
            start, stop = self._used, self._used + len(rows)
            self._ids[start:stop] = [chunk_id for chunk_id, _ in rows]
            block = np.frombuffer(b"".join(vector for _, vector in rows), np.float16)
            # Also false for NaN, which a flipped bit can make.
            if not np.abs(block).max(initial=0) <= _MAX_ELEMENT:
                raise documents.damage_error("a vector isn't one that was stored")
            self._matrix[start:stop] = block.reshape(-1, dimensions)
            self._places.update(zip((chunk_id for chunk_id, _ in rows), range(start, stop), strict=True))
            self._used = stop


def _nearest(ids: NDArray[np.int64], places: NDArray[np.int64], scores: NDArray[np.float32], limit: int) -> ScoredIds:
    """Return the ids of the places with the highest scores, where these are above 0, highest first."""
    if len(scores) > limit:
        largest = np.argpartition(-scores, limit)[:limit]
        largest.sort()
    else:
        largest = np.arange(len(scores))
    best = largest[np.argsort(-scores[largest], kind="stable")]
    best = best[scores[best] > 0]
    return ScoredIds(ids[places[best]], scores[best].astype(np.float64))


def _allowed_places(ids: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Return which rows are of allowed chunks; a file added after the mask was made isn't allowed."""
    is_used = ids >= 0
    if allowed is None:
        return is_used
    files = np.where(is_used, ids >> database.CHUNK_BITS, 0)
    return is_used & (files < len(allowed)) & allowed[np.minimum(files, len(allowed) - 1)]
