"""Derive a file of postings from the full-text tables of a large index, and map it.

The file holds each term's rows and weights as arrays. The database names the file that belongs to it, and records later
changes in the same transactions as the rows themselves: each snapshot has its file and its changes, whatever is killed
and whenever. Whoever finds it missing, damaged or of another index does without, until a writer derives it anew.
"""

from __future__ import annotations

import secrets
import sqlite3
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from knapper.index import database
from knapper.index.database import POSTINGS_PREFIX, Database
from knapper.index.tokenizer import Stemmer, without_run_ends
from knapper.index.words import fts5
from knapper.index.words.fts5 import WordTable
from knapper.system import arrays
from knapper.system.arrays import ArrayToWrite, np, open_arrays, write_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KIND: Final = "postings 4"
K1: Final = 1.2
B: Final = 0.75
"""FTS5's constants of BM25."""
_BATCH_OCCURRENCES: Final = 100_000
"""Occurrences that are read from SQLite at once, about 7 MB of memory."""
_BATCH_TERMS: Final = 10_000
"""Terms that are read from SQLite at once, about 2 MB of memory."""
_BATCH_FILES: Final = 1_000
"""Files whose names are stemmed at once."""
MIN_ROWS: Final = 10_000
"""Chunks from which on a file is derived; below, SQLite's own ``bm25()`` takes a few milliseconds."""
_MAX_FOUND_TERMS: Final = 10_000
"""About 0.2 kB each."""
_MAX_KEPT_LENGTH: Final = 100
"""Characters of a term that is kept."""
_MIN_CHANGED_ROWS: Final = 2_000
_MAX_CHANGED_SHARE: Final = 0.05
"""Changed rows, at least and as a share of all, from which on the file is derived anew."""


class FoundTerm(NamedTuple):
    """Where a table has a term."""

    place: slice
    """Of its rows; empty where no row has it."""
    peak: float
    number: int
    """Among all terms; -1 where no row has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermLists:
    """The rows of one full-text table as the file holds them: arrays that are mapped, not read."""

    ids: NDArray[np.int64]
    """Of all rows, ascending; the lists name rows by their position here."""
    lengths: NDArray[np.int32]
    """Words in all columns of each row."""
    terms: NDArray[np.uint8]
    """All terms, ascending, one after another."""
    term_starts: NDArray[np.int64]
    starts: NDArray[np.int64]
    """Where each term's rows begin."""
    peaks: NDArray[np.float64]
    """The largest share of its weight that each term reaches in a row, at the mean length of that time."""
    rows: NDArray[np.int32]
    weights: NDArray[np.uint16]
    """Occurrences times the column's weight and scale."""
    checksums: NDArray[np.uint32]
    """Of each term's rows and weights."""
    found: dict[str, FoundTerm] = field(default_factory=dict[str, FoundTerm])
    """Terms that were looked up, whose rows had their checksum; a question looks for each of its words several times,
    and reads few of a large file's pages."""

    def count_by_file(self, shift: int) -> NDArray[np.int64]:
        """Count the rows of each file, by its id, which is a row's without so many bits."""
        return np.bincount(self.ids >> shift).astype(np.int64)

    def find(self, term: str) -> FoundTerm:
        """Return where a term's rows are.

        Raises:
            LookupError: They aren't those that were written.
        """
        known = self.found.get(term)
        if known is None:
            raw = term.encode()
            # Slices of memoryviews take a tenth of the time of an array's.
            starts, terms = self.term_starts.data, self.terms.data
            at = bisect_left(
                range(len(self.peaks)), raw, key=lambda number: bytes(terms[starts[number] : starts[number + 1]])
            )
            if at == len(self.peaks) or bytes(terms[starts[at] : starts[at + 1]]) != raw:
                known = FoundTerm(slice(0, 0), 0.0, -1)
            else:
                place = slice(int(self.starts[at]), int(self.starts[at + 1]))
                if zlib.crc32(self.weights[place].data, zlib.crc32(self.rows[place].data)) != self.checksums[at]:
                    raise LookupError("the file of postings is damaged")
                known = FoundTerm(place, float(self.peaks[at]), at)
            if len(self.found) >= _MAX_FOUND_TERMS:
                self.found.clear()
            if len(term) <= _MAX_KEPT_LENGTH:
                self.found[term] = known
        return known


_REPEATED: Final = 1 << 30
"""Added to the number of a stem that stands in its name before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameStems:
    """The stems of some files' names: arrays with an element for each stem, all names of a file together."""

    files: Sequence[int]
    """Ids of the files that have any."""
    file_heads: NDArray[np.int64]
    """Where the stems of each begin."""
    names: NDArray[np.int32]
    """The name of each stem, by a number that no other name has."""
    stems: NDArray[np.int32]
    """By their numbers among the terms."""
    is_repeated: NDArray[np.bool_]
    """Whether it stands in its name before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNames:
    """The stems of the files' titles and aliases, by the position of each file's row among the names."""

    stems: NDArray[np.int32]
    """All stems of all names, by their numbers among the terms of names, or more where they are repeated.

    A file has none where one of them isn't among the terms, such as a word of over 32 kB, which SQLite cuts.
    """
    names: NDArray[np.int32]
    """The number of the name that each belongs to."""
    starts: NDArray[np.int64]
    """Where each file's stems begin, and at last where those of the last one end."""

    def of(self, files: NDArray[np.int64], places: NDArray[np.intp]) -> NameStems:
        """Return the stems of the names of *files*, whose rows are at these places."""
        starts = self.starts[places]
        counts = self.starts[places + 1] - starts
        is_named = counts > 0
        starts, counts = starts[is_named], counts[is_named]
        heads = counts.cumsum() - counts
        at = (starts - heads).repeat(counts) + np.arange(int(counts.sum()))
        stems = self.stems[at]
        return NameStems(
            files=files[is_named].tolist(),
            file_heads=heads,
            names=self.names[at],
            stems=stems & (_REPEATED - 1),
            is_repeated=stems >= _REPEATED,
        )


_NAME_ARRAYS: Final = {"names.stems": "<i4", "names.names": "<i4", "names.starts": "<i8"}
_ARRAYS: Final = {
    "ids": "<i8",
    "lengths": "<i4",
    "terms": "|u1",
    "term_starts": "<i8",
    "starts": "<i8",
    "peaks": "<f8",
    "rows": "<i4",
    "weights": "<u2",
    "checksums": "<u4",
}
_LISTS: Final = (".rows", ".weights")
"""Arrays that are checked part by part; the others are compared with their checksum when the file is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostingsFile:
    """An open file; its pages are shared by all processes that have it open."""

    name: str
    uid: str
    """Of the index that it was derived from."""
    tables: Mapping[str, TermLists]
    names: StoredNames

    @classmethod
    def open(cls, path: Path) -> PostingsFile | None:
        """Map a file; None where there is none, or where it isn't whole."""
        file = open_arrays(path, _KIND, unchecked=_LISTS)
        if file is None:
            return None
        tables = {
            table.name: TermLists(
                ids=file.arrays[f"{table.name}.ids"],
                lengths=file.arrays[f"{table.name}.lengths"],
                terms=file.arrays[f"{table.name}.terms"],
                term_starts=file.arrays[f"{table.name}.term_starts"],
                starts=file.arrays[f"{table.name}.starts"],
                peaks=file.arrays[f"{table.name}.peaks"],
                rows=file.arrays[f"{table.name}.rows"],
                weights=file.arrays[f"{table.name}.weights"],
                checksums=file.arrays[f"{table.name}.checksums"],
            )
            for table in fts5.TABLES
        }
        names = StoredNames(**{name.partition(".")[2]: file.arrays[name] for name in _NAME_ARRAYS})
        return cls(name=path.name, uid=str(file.facts["uid"]), tables=tables, names=names)


def write_file(path: Path, uid: str, tables: Mapping[str, TermLists], names: StoredNames) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: The disk is full, or the folder can't be written.
    """
    arrays = {
        f"{name}.{part}": ArrayToWrite(dtype=dtype, blocks=(getattr(lists, part),))
        for name, lists in tables.items()
        for part, dtype in _ARRAYS.items()
    }
    for name, dtype in _NAME_ARRAYS.items():
        arrays[name] = ArrayToWrite(dtype=dtype, blocks=(getattr(names, name.partition(".")[2]),))
    write_arrays(path, _KIND, {"uid": uid}, arrays)


def is_due(index: Database) -> bool:
    """Return whether a file should be derived: the index is large, and has none, a bad one, or many changes since."""
    with index.snapshot() as connection:
        # A mirror of a team's index has no chunks, but all names.
        sql = "SELECT MAX((SELECT COUNT(*) FROM chunks), (SELECT COUNT(*) FROM files))"
        total = int(connection.execute(sql).fetchone()[0])
        if total < MIN_ROWS:
            return False
        if fts5.count_recorded(connection) > max(_MIN_CHANGED_ROWS, _MAX_CHANGED_SHARE * total):
            return True
        return open_named(connection, index.path.parent) is None


def build(index: Database) -> None:
    """Derive the file from the full-text tables, and let the database name it; readers and writers go on meanwhile.

    Raises:
        OSError: The file can't be written.
        StorageError: The database can't be written.
    """
    folder = index.path.parent
    with index.transaction(counts=False) as connection:
        fts5.start_recording(connection)
    with index.snapshot() as connection:
        uid, generation = database.state_of(connection)
        tables = {table.name: _derive(connection, table) for table in fts5.TABLES}
        names = _derive_names(connection, tables[fts5.NAMES.name])
    name = f"{POSTINGS_PREFIX}{generation}-{secrets.token_hex(4)}"
    write_file(folder / name, uid, tables, names)
    with index.transaction(counts=False) as connection:
        # Another process may have begun the index anew, or have given up recording after many changes.
        if database.state_of(connection)[0] == uid and fts5.is_recording(connection):
            fts5.forget_recorded(connection, generation)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (fts5.FILE_META, name))
    del tables, names
    arrays.return_free_memory()
    remove_stray_files(index)


def remove_stray_files(index: Database) -> None:
    """Remove the files in the index's folder that its database doesn't name."""
    with index.snapshot() as connection:
        named = name_of(connection)
    for path in index.path.parent.glob(f"{POSTINGS_PREFIX}*"):
        if path.name != named:
            # Windows keeps a mapped file; the next build removes it.
            with suppress(OSError):
                path.unlink()


def find_wrong_rows(connection: sqlite3.Connection, folder: Path) -> str:
    """Compare the rows of the derived file, with what was recorded since, with all rows; return what is wrong.

    Args:
        connection: In a snapshot.
        folder: The index's own.
    """
    file = open_named(connection, folder)
    if file is None:
        return ""
    for table in fts5.TABLES:
        current = {int(row_id) for (row_id,) in connection.execute(_ROWS_SQL[table.name])}
        added = {row_id for row_id, _ in fts5.added_rows(connection, table)}
        if set(file.tables[table.name].ids.tolist()) - set(fts5.dropped_rows(connection, table)) | added != current:
            return f"the recorded rows of {table.name} aren't those that changed"
    return ""


_ROWS_SQL: Final = {
    "chunk_words": "SELECT id FROM chunks ORDER BY id",
    "title_words": "SELECT id FROM files WHERE title_row != '' AND kind != 'attachment' ORDER BY id",
}
"""Select the ids of all rows of each full-text table."""
_CODE_BITS: Final = 2
"""Bits for the number of the column beside a row's id."""


def _derive(connection: sqlite3.Connection, table: WordTable) -> TermLists:
    """Read a full-text table's terms with their rows, through SQLite's own table of the vocabulary.

    Raises:
        ValueError: The vocabulary and the rows don't belong together, or a word stands too often in one row.
    """
    vocabulary = f"temp.vocabulary_{table.name}"
    connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {vocabulary} USING fts5vocab(main, {table.name}, row)")
    # Arrays, since a server would hold the pages of a hundred thousand small objects for good.
    spelled, term_starts, sizes, counts = bytearray(), array("q", [0]), array("q"), array("q")
    cursor = connection.execute(f"SELECT CAST(term AS BLOB), doc, cnt FROM {vocabulary}")
    while batch := cursor.fetchmany(_BATCH_TERMS):
        terms, batch_sizes, batch_counts = zip(*batch, strict=True)
        term_starts.extend(islice(accumulate(map(len, terms), initial=len(spelled)), 1, None))
        spelled += b"".join(terms)
        sizes.extend(batch_sizes)
        counts.extend(batch_counts)
    ids_text = connection.execute(f"SELECT group_concat(id, ' ') FROM ({_ROWS_SQL[table.name]})").fetchone()[0]
    ids = np.fromstring(ids_text or "", np.int64, sep=" ")
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    # Allocated whole, as these are most of the file; all else is done in batches of terms.
    rows, weights = np.empty(starts[-1], "<i4"), np.empty(starts[-1], "<u2")
    lengths = np.zeros(len(ids), np.int64)
    firsts = np.searchsorted(ids, np.arange((int(ids.max(initial=0)) >> table.file_shift) + 1) << table.file_shift)
    column_weights = np.array([*table.columns.values()])
    for first, last, codes in _read_occurrences(connection, table, (spelled, term_starts), counts):
        places = _find_places(ids, firsts, codes >> _CODE_BITS, table.file_shift)
        lengths += np.bincount(places, minlength=len(ids))
        term_of = np.repeat(np.arange(last - first), counts[first:last])
        heads = np.flatnonzero(np.diff(term_of * len(ids) + places, prepend=-1))
        sums = np.add.reduceat(column_weights[codes & ((1 << _CODE_BITS) - 1)], heads)
        if sums.max() > np.iinfo(weights.dtype).max:
            raise ValueError("a word stands too often in one row")
        rows[starts[first] : starts[last]], weights[starts[first] : starts[last]] = places[heads], sums
    norms = row_norms(lengths, len(ids), int(lengths.sum()))
    return TermLists(
        ids=ids,
        lengths=lengths.astype(np.int32),
        terms=np.frombuffer(spelled, np.uint8),
        term_starts=np.array(term_starts, np.int64),
        starts=starts,
        peaks=_peaks(starts, rows, weights, norms, scale=table.scale),
        rows=rows,
        weights=weights,
        checksums=_list_checksums(starts, rows, weights),
    )


def _find_places(
    ids: NDArray[np.int64], firsts: NDArray[np.intp], wanted: NDArray[np.int64], shift: int
) -> NDArray[np.intp]:
    """Return the places of rows among all *ids*, which are ascending.

    Args:
        ids: Of all rows.
        firsts: By file, where its rows begin.
        wanted: Ids that are among them.
        shift: How many bits of an id to cut for the id of its file.
    """
    # The rows of a file that was never changed are numbered without gaps.
    places = firsts[wanted >> shift] + (wanted & ((1 << shift) - 1))
    np.minimum(places, len(ids) - 1, out=places)
    elsewhere = np.flatnonzero(ids[places] != wanted)
    if len(elsewhere):
        places[elsewhere] = np.searchsorted(ids, wanted[elsewhere])
    return places


def _list_checksums(
    starts: NDArray[np.int64], rows: NDArray[np.int32], weights: NDArray[np.uint16]
) -> NDArray[np.uint32]:
    """Return the checksum of each term's rows and weights."""
    # Slices of memoryviews take less than half of the time of an array's.
    all_rows, all_weights = rows.data, weights.data
    return np.fromiter(
        (zlib.crc32(all_weights[a:b], zlib.crc32(all_rows[a:b])) for a, b in pairwise(array("q", starts.tobytes()))),
        np.uint32,
    )


def _derive_names(connection: sqlite3.Connection, lists: TermLists) -> StoredNames:
    """Stem the titles and aliases of the files whose names *lists* holds."""
    terms, term_starts = lists.terms.data, array("q", lists.term_starts.tobytes())
    number_of = {bytes(terms[start:stop]): number for number, (start, stop) in enumerate(pairwise(term_starts))}
    stems, names, starts, count = array("i"), array("i"), array("q", [0]), 0
    stemmer = Stemmer()
    for first in range(0, len(lists.ids), _BATCH_FILES):
        files: list[int] = lists.ids[first : first + _BATCH_FILES].tolist()
        read = fts5.read_names(connection, files)
        by_file: dict[int, list[list[int]]] = {file: [] for file in files}
        for (file, _), found in zip(read, stemmer.stems([name for _, name in read]), strict=True):
            own = [number_of.get(stem.encode(), -1) for stem in without_run_ends(found)]
            by_file[file].append([n + _REPEATED * (n in own[:at]) for at, n in enumerate(own)])
        for of_file in by_file.values():
            for own in of_file if all(number >= 0 for each in of_file for number in each) else ():
                stems.extend(own)
                names.extend([count] * len(own))
                count += 1
            starts.append(len(stems))
    stemmer.close()
    return StoredNames(
        stems=np.array(stems, np.int32), names=np.array(names, np.int32), starts=np.array(starts, np.int64)
    )


def _peaks(
    starts: NDArray[np.int64],
    rows: NDArray[np.int32],
    weights: NDArray[np.uint16],
    norms: NDArray[np.float64],
    *,
    scale: int,
) -> NDArray[np.float64]:
    """Return the largest share of its weight that each term reaches in a row, in batches of terms."""
    peaks = np.zeros(len(starts) - 1)
    first = 0
    while first < len(peaks):
        last = max(int(np.searchsorted(starts, [starts[first] + _BATCH_OCCURRENCES])[0]), first + 1)
        last = min(last, len(peaks))
        place = slice(int(starts[first]), int(starts[last]))
        occurrences = weights[place] / scale
        shares = occurrences / (occurrences + norms[rows[place]])
        peaks[first:last] = np.maximum.reduceat(shares, starts[first:last] - starts[first])
        first = last
    return peaks


def _read_occurrences(
    connection: sqlite3.Connection, table: WordTable, terms: tuple[bytearray, array[int]], counts: Sequence[int]
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield the occurrences of batches of terms: the first term, that after the last, and each one's row and column.

    Args:
        connection: In a snapshot.
        table: Whose terms to read.
        terms: All terms, ascending, one after another; and where each begins, and the last ends.
        counts: How often each term occurs.
    """
    spelled, term_starts = terms
    vocabulary = f"temp.vocabulary_{table.name}_all"
    connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {vocabulary} USING fts5vocab(main, {table.name}, instance)")
    # The last column holds the text, and so most words; SQLite compares one name after the other.
    columns = " ".join(f"WHEN '{column}' THEN {number}" for number, column in reversed([*enumerate(table.columns)]))
    sql = (
        f"SELECT group_concat((doc << {_CODE_BITS}) + CASE col {columns} END) FROM {vocabulary}"
        " WHERE term >= CAST(?1 AS TEXT) AND term <= CAST(?2 AS TEXT)"
    )
    first = 0
    while first < len(counts):
        last, count = first, 0
        while last < len(counts) and (last == first or count + counts[last] <= _BATCH_OCCURRENCES):
            count += counts[last]
            last += 1
        ends = [bytes(spelled[term_starts[at] : term_starts[at + 1]]) for at in (first, last - 1)]
        text = connection.execute(sql, ends).fetchone()[0]
        yield first, last, np.fromstring(text, np.int64, sep=",")
        first = last


def row_norms(lengths: NDArray[Any], total: int, all_words: int) -> NDArray[np.float64]:
    """Return what BM25 adds to the occurrences of a word below the line, for each row."""
    norms = lengths.astype(np.float64)
    norms *= K1 * B * total / max(all_words, 1)
    norms += K1 * (1 - B)
    return norms


def name_of(connection: sqlite3.Connection) -> str:
    """Return the name of the file that the database names; empty where it names none."""
    return str(database.meta_of(connection).get(fts5.FILE_META, ""))


def open_named(connection: sqlite3.Connection, folder: Path) -> PostingsFile | None:
    """Open the file that the database names, where it is whole and of this index."""
    name = name_of(connection)
    # The name is a value of the database, which may be damaged: it never leads out of the folder.
    if not name.startswith(POSTINGS_PREFIX) or Path(name).name != name:
        return None
    file = PostingsFile.open(folder / name)
    return file if file and file.uid == database.state_of(connection)[0] else None
