"""Rank rows by exact BM25 from a mapped file that is derived from the full-text tables, with the rows changed since.

The file holds each term's rows and weights as arrays, so that a question costs nanoseconds a row where SQLite's own
``bm25()`` takes a microsecond. The database names the file that belongs to it, and records later changes in the same
transactions as the rows themselves: each snapshot has its file and its changes, whatever is killed and whenever.
A file that is missing, damaged or of another index isn't used: `knapper.index.words.Fts5Engine` gives the same answer.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import sqlite3
import threading
import zlib
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from knapper.index import database, words
from knapper.index.arrays import np
from knapper.index.database import Database
from knapper.index.words import QueryWord, WordQuestion, WordTable, inverse_document_frequency
from knapper.system import private

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_PREFIX: Final = "postings-"
_FORMAT: Final = 1
_ALIGNMENT: Final = 64
_HEADER_BYTES: Final = 4_096
_K1: Final = 1.2
_B: Final = 0.75
"""FTS5's constants of BM25."""
_ROUNDING: Final = 1e-9
"""By how much sums in another order may differ, relatively; a row that near to the threshold isn't left out."""
_LONG_LIST: Final = 20_000
"""Rows of a term from which on it pays to look whether the other terms have already decided."""
_BATCH_OCCURRENCES: Final = 1_000_000
"""Occurrences that are read from SQLite at once, about 60 MB of memory."""
MIN_ROWS: Final = 10_000
"""Chunks from which on a file is derived; below, SQLite's own ``bm25()`` takes a few milliseconds."""
_MIN_CHANGED_ROWS: Final = 2_000
_MAX_CHANGED_SHARE: Final = 0.05
"""Changed rows, at least and as a share of all, from which on the file is derived anew."""


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
    checked: set[int] = field(default_factory=set[int])
    """Terms whose rows were compared with their checksum; a question reads few of a large file's pages."""

    def find(self, term: str) -> tuple[slice, float]:
        """Return where a term's rows are, and its peak; an empty slice where no row has it.

        Raises:
            LookupError: They aren't those that were written.
        """
        raw = term.encode()
        starts, terms = self.term_starts, self.terms
        at = bisect_left(
            range(len(self.peaks)), raw, key=lambda number: terms[starts[number] : starts[number + 1]].tobytes()
        )
        if at == len(self.peaks) or terms[starts[at] : starts[at + 1]].tobytes() != raw:
            return slice(0, 0), 0.0
        place = slice(int(self.starts[at]), int(self.starts[at + 1]))
        if at not in self.checked:
            if _list_checksum(self.rows[place], self.weights[place]) != self.checksums[at]:
                raise LookupError("the file of postings is damaged")
            self.checked.add(at)
        return place, float(self.peaks[at])


def _list_checksum(rows: NDArray[np.int32], weights: NDArray[np.uint16]) -> int:
    return zlib.crc32(weights.data, zlib.crc32(rows.data))


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
_LISTS: Final = frozenset({"rows", "weights"})
"""Arrays that are checked term by term; the others are compared with their checksum when the file is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostingsFile:
    """An open file; its pages are shared by all processes that have it open."""

    name: str
    uid: str
    """Of the index that it was derived from."""
    tables: Mapping[str, TermLists]

    @classmethod
    def open(cls, path: Path) -> PostingsFile | None:
        """Map a file; None where there is none, or where it isn't whole."""
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        head, _, _ = mapped[:_HEADER_BYTES].partition(b"\n")
        checksum, _, header_json = head.partition(b" ")
        if not header_json or checksum != _checksum(header_json):
            return None
        header = cast("dict[str, Any]", json.loads(header_json))
        if header["format"] != _FORMAT or header["size"] != len(mapped):
            return None
        tables: dict[str, TermLists] = {}
        for name, places in header["tables"].items():
            arrays = {
                array: np.frombuffer(mapped, _ARRAYS[array], count=count, offset=offset)
                for array, (offset, count, _) in places.items()
            }
            if any(zlib.crc32(arrays[array].data) != places[array][2] for array in arrays.keys() - _LISTS):
                return None
            tables[name] = TermLists(**arrays)
        return cls(name=path.name, uid=str(header["uid"]), tables=tables)


def _checksum(header: bytes) -> bytes:
    return b"%08x" % zlib.crc32(header)


def write_file(path: Path, uid: str, tables: Mapping[str, TermLists]) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: The disk is full, or the folder can't be written.
    """
    arrays: list[tuple[int, NDArray[Any]]] = []
    places: dict[str, dict[str, tuple[int, int, int]]] = {}
    size = _HEADER_BYTES
    for name, lists in tables.items():
        for array, dtype in _ARRAYS.items():
            values = np.ascontiguousarray(getattr(lists, array), dtype)
            checksum = 0 if array in _LISTS else zlib.crc32(values.data)
            places.setdefault(name, {})[array] = (size, len(values), checksum)
            arrays.append((size, values))
            size += -(-values.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = json.dumps({"format": _FORMAT, "uid": uid, "size": size, "tables": places}).encode()
    partial = path.with_suffix(".part")
    try:
        with os.fdopen(private.open_new(partial), "wb") as file:
            file.write(_checksum(header) + b" " + header + b"\n")
            for offset, values in arrays:
                file.seek(offset)
                file.write(values.data)
            file.truncate(size)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def is_due(index: Database) -> bool:
    """Return whether a file should be derived: the index is large, and has none, a bad one, or many changes since."""
    with index.snapshot() as connection:
        total = int(connection.execute("SELECT COUNT(*) FROM chunks").fetchone()[0])
        if total < MIN_ROWS:
            return False
        if words.count_recorded(connection) > max(_MIN_CHANGED_ROWS, _MAX_CHANGED_SHARE * total):
            return True
        return _open_named(connection, index.path.parent) is None


def build(index: Database) -> None:
    """Derive the file from the full-text tables, and let the database name it; readers and writers go on meanwhile.

    Raises:
        OSError: The file can't be written.
        StorageError: The database can't be written.
    """
    folder = index.path.parent
    with index.transaction(counts=False) as connection:
        words.start_recording(connection)
    with index.snapshot() as connection:
        uid, generation = database.state_of(connection)
        tables = {table.name: _derive(connection, table) for table in words.TABLES}
    name = f"{FILE_PREFIX}{generation}-{secrets.token_hex(4)}"
    write_file(folder / name, uid, tables)
    with index.transaction(counts=False) as connection:
        # Another process may have begun the index anew, or have given up recording after many changes.
        if database.state_of(connection)[0] == uid and words.is_recording(connection):
            words.forget_recorded(connection, generation)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (words.FILE_META, name))
    remove_stray_files(index)


def remove_stray_files(index: Database) -> None:
    """Remove the files in the index's folder that its database doesn't name."""
    with index.snapshot() as connection:
        named = _name_of(connection)
    for path in index.path.parent.glob(f"{FILE_PREFIX}*"):
        if path.name != named:
            # Windows keeps a mapped file; the next build removes it.
            with suppress(OSError):
                path.unlink()


def _derive(connection: sqlite3.Connection, table: WordTable) -> TermLists:
    """Read a full-text table's terms with their rows, through SQLite's own table of the vocabulary."""
    rows_sql = {
        "chunk_words": "SELECT id FROM chunks ORDER BY id",
        "title_words": "SELECT id FROM files WHERE title_row != '' AND kind != 'attachment' ORDER BY id",
    }
    ids_text = connection.execute(f"SELECT group_concat(id, ' ') FROM ({rows_sql[table.name]})").fetchone()[0]
    ids = np.fromstring(ids_text or "", np.int64, sep=" ")
    lengths = np.zeros(len(ids), np.int64)
    terms: list[bytes] = []
    sizes: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int32]] = []
    weights: list[NDArray[np.int64]] = []
    for batch_terms, batch_counts, codes in _read_occurrences(connection, table):
        term_of = np.repeat(np.arange(len(batch_terms)), batch_counts)
        places = np.searchsorted(ids, codes >> _CODE_BITS)
        lengths += np.bincount(places, minlength=len(ids))
        starts = np.flatnonzero(np.diff(term_of * len(ids) + places, prepend=-1))
        column_weights = np.array([*table.columns.values()])[codes & ((1 << _CODE_BITS) - 1)]
        terms += batch_terms
        sizes.append(np.bincount(term_of[starts], minlength=len(batch_terms)))
        rows.append(places[starts].astype(np.int32))
        weights.append(np.add.reduceat(column_weights, starts))
    sizes_joined, rows_joined, weights_joined = _joined(sizes), _joined(rows), _joined(weights)
    if weights_joined.max(initial=0) > np.iinfo(np.uint16).max:
        raise OverflowError("a word stands too often in one row")
    starts = np.concatenate(([0], np.cumsum(sizes_joined))).astype(np.int64)
    occurrences = weights_joined / table.scale
    lists, list_weights = rows_joined.astype("<i4"), weights_joined.astype("<u2")
    shares = occurrences / (occurrences + _norms(lengths, len(ids), int(lengths.sum()))[rows_joined])
    return TermLists(
        ids=ids,
        lengths=lengths.astype(np.int32),
        terms=np.frombuffer(b"".join(terms), np.uint8),
        term_starts=np.concatenate(([0], np.cumsum([len(term) for term in terms]))).astype(np.int64),
        starts=starts,
        peaks=np.maximum.reduceat(shares, starts[:-1]) if terms else np.empty(0),
        rows=lists,
        weights=list_weights,
        checksums=np.array(
            [_list_checksum(lists[a:b], list_weights[a:b]) for a, b in pairwise(starts.tolist())], np.uint32
        ),
    )


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


_CODE_BITS: Final = 2
"""Bits for the number of the column beside a row's id."""


def _read_occurrences(
    connection: sqlite3.Connection, table: WordTable
) -> Iterator[tuple[list[bytes], NDArray[np.int64], NDArray[np.int64]]]:
    """Yield batches of terms, ascending: how often each stands, and for each occurrence the row's id and the column."""
    vocabulary = f"temp.vocabulary_{table.name}"
    connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {vocabulary} USING fts5vocab(main, {table.name}, row)")
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {vocabulary}_all USING fts5vocab(main, {table.name}, instance)"
    )
    columns = " ".join(f"WHEN '{column}' THEN {number}" for number, column in enumerate(table.columns))
    occurrences_sql = (
        f"SELECT group_concat((doc << {_CODE_BITS}) + CASE col {columns} END, ' ') FROM {vocabulary}_all"
        " WHERE term >= CAST(?1 AS TEXT) AND term <= CAST(?2 AS TEXT)"
    )
    rows = connection.execute(f"SELECT CAST(term AS BLOB), cnt FROM {vocabulary}").fetchall()
    start = 0
    while start < len(rows):
        stop, count = start, 0
        while stop < len(rows) and (stop == start or count + rows[stop][1] <= _BATCH_OCCURRENCES):
            count += rows[stop][1]
            stop += 1
        terms = [term for term, _ in rows[start:stop]]
        text = connection.execute(occurrences_sql, (terms[0], terms[-1])).fetchone()[0]
        yield terms, np.array([number for _, number in rows[start:stop]]), np.fromstring(text, np.int64, sep=" ")
        start = stop


def _norms(lengths: NDArray[Any], total: int, all_words: int) -> NDArray[np.float64]:
    """Return what BM25 adds to the occurrences of a word below the line, for each row."""
    norms = lengths.astype(np.float64)
    norms *= _K1 * _B * total / max(all_words, 1)
    norms += _K1 * (1 - _B)
    return norms


def _name_of(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (words.FILE_META,)).fetchone()
    return str(row[0]) if row else ""


def _open_named(connection: sqlite3.Connection, folder: Path) -> PostingsFile | None:
    """Open the file that the database names, where it is whole and of this index."""
    name = _name_of(connection)
    # The name is a value of the database, which may be damaged: it never leads out of the folder.
    if not name.startswith(FILE_PREFIX) or Path(name).name != name:
        return None
    file = PostingsFile.open(folder / name)
    return file if file and file.uid == database.state_of(connection)[0] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableState:
    """One table as one state of the index has it: the file's rows without the dropped ones, then the added rows."""

    lists: TermLists
    added: NDArray[np.int64]
    """Ids of the added rows, ascending."""
    dropped: NDArray[np.bool_] | None
    """Marks the dropped rows of the file; None where there are none."""
    norms: NDArray[np.float64]
    """By row; infinite where it may not be found, which makes its score 0."""
    total: int
    drift: float
    """By how much a term's peak may have grown, as the mean length changed."""

    def ids(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the ids of rows by their positions."""
        count = len(self.lists.ids)
        if not len(self.added):
            return self.lists.ids[rows]
        return np.where(
            rows < count, self.lists.ids[np.minimum(rows, count - 1)] if count else 0, self._added_at(rows - count)
        )

    def _added_at(self, places: NDArray[Any]) -> NDArray[np.int64]:
        return self.added[np.clip(places, 0, len(self.added) - 1)]

    def all_ids(self) -> NDArray[np.int64]:
        """Return the id of each row."""
        return np.concatenate((self.lists.ids, self.added)) if len(self.added) else self.lists.ids

    def find_rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of ids, ascending; unknown ones are left out.

        An added row with the id of a dropped one, such as a note's name, is the one that is meant.
        """
        added, is_added = _positions(self.added, ids)
        old, is_old = _positions(self.lists.ids, ids)
        if self.dropped is not None:
            is_old[is_old] = ~self.dropped[old[is_old]]
        return np.sort(np.concatenate((old[is_old], len(self.lists.ids) + added[is_added])))


def _positions(known: NDArray[np.int64], ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where each id is among the known ones, and whether it is; the position of an unknown id is another's."""
    places = np.searchsorted(known, ids)
    places[places == len(known)] = 0
    return places, known[places] == ids if len(known) else np.zeros(len(ids), np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoredTerm:
    """One word of a question with its rows."""

    rows: NDArray[Any]
    occurrences: NDArray[np.float64] | NDArray[np.uint16]
    """By row: weighted occurrences times *scale*, or the score itself where *gain* is 0."""
    gain: float
    """Repetitions times inverse document frequency times the most that occurrences count."""
    bound: float
    """No row's score is above this."""
    scale: int

    def scores(self, norms: NDArray[np.float64], chosen: NDArray[Any] | slice = slice(None)) -> NDArray[np.float64]:
        """Return the scores of the *chosen* ones of its rows, with the norms of just these."""
        values = self.occurrences[chosen].astype(np.float64)
        if not self.gain:
            return np.where(np.isfinite(norms), values, 0.0)
        if self.scale != 1:
            values /= self.scale
        return values / (values + norms) * self.gain


class PostingsEngine:
    """A thread-safe engine over the file that the database names, and the changes since; see `words.WordEngine`."""

    def __init__(self, folder: Path) -> None:
        """Look for files in the index's *folder*."""
        self._folder = folder
        self._lock = threading.Lock()
        self._file: PostingsFile | None = None
        self._states: dict[str, tuple[tuple[str, str, int], _TableState]] = {}

    def is_ready(self, connection: sqlite3.Connection) -> bool:
        """Return whether the state that a connection sees has a whole file."""
        return self._open(connection) is not None

    def close(self) -> None:
        """Give the file's memory back."""
        self._file, self._states = None, {}

    def discard(self) -> None:
        """Delete a file that turned out to be damaged, so that the next writer derives it anew."""
        file, self._file, self._states = self._file, None, {}
        if file is not None:
            with suppress(OSError):
                (self._folder / file.name).unlink(missing_ok=True)

    def best(self, connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> dict[int, float]:
        """Score row by row in memory, without those that can't be among the best.

        Raises:
            LookupError: The database names no whole file.
        """
        state = self._state(connection, table)
        terms = _terms(connection, table, state, [word for word in question.words if word.times])
        phrases = [QueryWord(expression=expression, token="") for expression in question.phrases]
        required = _terms(connection, table, state, phrases)
        if not terms and not required:
            return {}
        norms = self._norms(connection, table, state, question)
        _leave_out(norms, required, len(phrases), terms)
        for expression in question.excluded:
            norms[state.find_rows(_matching_ids(connection, table, expression))] = np.inf
        rows, scores = _best_rows([*terms, *required], norms, question.limit)
        ids = state.ids(rows)
        order = np.lexsort((ids, -scores))[: question.limit]
        return dict(zip(ids[order].tolist(), scores[order].tolist(), strict=True))

    def _open(self, connection: sqlite3.Connection) -> PostingsFile | None:
        name = _name_of(connection)
        file = self._file
        if not name or file is None or file.name != name or file.uid != database.state_of(connection)[0]:
            file = _open_named(connection, self._folder) if name else None
            self._file = file
        return file

    def _state(self, connection: sqlite3.Connection, table: WordTable) -> _TableState:
        file = self._open(connection)
        if file is None:
            raise LookupError("the index has no whole file of postings")
        key = (file.name, *database.state_of(connection))
        with self._lock:
            known = self._states.get(table.name)
        if known is not None and known[0] == key:
            return known[1]
        state = _read_state(connection, table, file.tables[table.name])
        with self._lock:
            self._states[table.name] = key, state
        return state

    def _norms(
        self, connection: sqlite3.Connection, table: WordTable, state: _TableState, question: WordQuestion
    ) -> NDArray[np.float64]:
        """Return the rows' norms, infinite for those that the question doesn't allow."""
        norms = state.norms.copy()
        if question.allowed is not None:
            files = state.all_ids() >> table.file_shift
            is_known = files < len(question.allowed)
            is_known[is_known] = question.allowed[files[is_known]]
            norms[~is_known] = np.inf
        if table is words.CHUNKS and not question.include_log:
            logged = [int(i) for (i,) in connection.execute(f"{database.LOG_CHUNKS_SQL} ORDER BY id")]
            if logged:
                norms[state.find_rows(np.array(logged, np.int64))] = np.inf
        return norms


def _read_state(connection: sqlite3.Connection, table: WordTable, lists: TermLists) -> _TableState:
    added = words.added_rows(connection, table)
    dropped_ids = np.array(words.dropped_rows(connection, table), np.int64)
    places, is_known = _positions(lists.ids, dropped_ids)
    dropped = None
    all_words = int(lists.lengths.sum(dtype=np.int64)) + sum(length for _, length in added)
    total = len(lists.ids) + len(added)
    if is_known.any():
        dropped = np.zeros(len(lists.ids), np.bool_)
        dropped[places[is_known]] = True
        all_words -= int(lists.lengths[dropped].sum(dtype=np.int64))
        total -= int(dropped.sum())
    lengths = lists.lengths
    if added:
        lengths = np.concatenate((lengths, np.array([length for _, length in added], np.int32)))
    norms = _norms(lengths, total, all_words)
    if dropped is not None:
        norms[: len(dropped)][dropped] = np.inf
    mean, old_mean = all_words / max(total, 1), lists.lengths.mean() if len(lists.lengths) else 1.0
    return _TableState(
        lists=lists,
        added=np.array([row_id for row_id, _ in added], np.int64),
        dropped=dropped,
        norms=norms,
        total=total,
        drift=max(float(mean / max(old_mean, 1e-9)), 1.0),
    )


def _terms(
    connection: sqlite3.Connection, table: WordTable, state: _TableState, question_words: Sequence[QueryWord]
) -> list[_ScoredTerm]:
    """Return those words that a row has, each with its rows."""
    added = _read_added(connection, table, state, [word.token for word in question_words if word.token])
    terms = [
        _token_term(table, state, word, added.get(word.token))
        if word.token
        else _expression_term(connection, table, state, word)
        for word in question_words
    ]
    return [term for term in terms if len(term.rows)]


def _read_added(
    connection: sqlite3.Connection, table: WordTable, state: _TableState, tokens: Collection[str]
) -> dict[str, NDArray[np.int64]]:
    """Return for each token the positions and weights of the added rows with it, one below the other."""
    if not len(state.added) or not tokens:
        return {}
    sql = (
        "SELECT term, group_concat(id || ' ' || weight, ' ') FROM (SELECT term, id, weight FROM added_words"
        " WHERE source = ? AND term IN (SELECT value FROM json_each(?)) ORDER BY term, id) GROUP BY term"
    )
    found: dict[str, NDArray[np.int64]] = {}
    for term, text in connection.execute(sql, (table.name, json.dumps(sorted(tokens)))):
        pairs = np.fromstring(text, np.int64, sep=" ").reshape(-1, 2).T
        found[term] = np.stack((len(state.lists.ids) + np.searchsorted(state.added, pairs[0]), pairs[1]))
    return found


def _token_term(table: WordTable, state: _TableState, word: QueryWord, added: NDArray[np.int64] | None) -> _ScoredTerm:
    place, peak = state.lists.find(word.token)
    rows, weights = state.lists.rows[place], state.lists.weights[place]
    count = len(rows)
    if state.dropped is not None:
        count -= int(np.count_nonzero(state.dropped[rows]))
    peak = min(peak * state.drift, 1.0)
    if added is not None:
        rows, weights = np.concatenate((rows, added[0])), np.concatenate((weights, added[1]))
        count += added.shape[1]
        own = added[1] / table.scale
        peak = max(peak, float((own / (own + state.norms[added[0]])).max()))
    if not count:
        rows, weights = rows[:0], weights[:0]
    gain = word.times * inverse_document_frequency(count, state.total) * (_K1 + 1)
    return _ScoredTerm(
        rows=rows, occurrences=weights, gain=gain, bound=gain * peak * (1 + _ROUNDING), scale=table.scale
    )


def _expression_term(
    connection: sqlite3.Connection, table: WordTable, state: _TableState, word: QueryWord
) -> _ScoredTerm:
    """Let SQLite score an expression of several tokens, such as a phrase or the beginning of a word."""
    scored = f"SELECT rowid AS id, {table.score_sql} AS score FROM {table.name} WHERE {table.name} MATCH ?"
    sql = f"SELECT group_concat(id || ' ' || quote(score), ' ') FROM ({scored} ORDER BY rowid LIMIT -1)"
    numbers = np.fromstring(connection.execute(sql, (word.expression,)).fetchone()[0] or "", np.float64, sep=" ")
    ids, scores = numbers[::2].astype(np.int64), numbers[1::2] * word.times
    rows = state.find_rows(ids)
    if len(rows) != len(ids):
        raise LookupError("a row of the full-text table is in no file")
    # Positions are in another order than ids where rows were added.
    order = np.argsort(state.ids(rows), kind="stable")
    values = np.empty(len(ids))
    values[order] = scores
    bound = float(values.max(initial=0.0)) * (1 + _ROUNDING)
    return _ScoredTerm(rows=rows, occurrences=values, gain=0.0, bound=bound, scale=1)


def _matching_ids(connection: sqlite3.Connection, table: WordTable, expression: str) -> NDArray[np.int64]:
    sql = f"SELECT group_concat(id, ' ') FROM (SELECT rowid AS id FROM {table.name} WHERE {table.name} MATCH ?)"
    return np.fromstring(connection.execute(sql, (expression,)).fetchone()[0] or "", np.int64, sep=" ")


def _leave_out(
    norms: NDArray[np.float64], required: Sequence[_ScoredTerm], phrases: int, terms: Sequence[_ScoredTerm]
) -> None:
    """Leave out the rows without all of the phrases, or beside phrases without any of the words."""
    if not phrases:
        return
    if len(required) < phrases:
        norms[:] = np.inf
    kept_sets = [term.rows for term in required]
    if terms:
        kept_sets.append(np.concatenate([term.rows for term in terms]))
    for rows in kept_sets:
        is_out = np.ones(len(norms), np.bool_)
        is_out[rows] = False
        norms[is_out] = np.inf


def _best_rows(
    terms: Sequence[_ScoredTerm], norms: NDArray[np.float64], limit: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the rows with the highest scores, and possibly more, in any order.

    Words are added up from the one that can count most; once the best rows so far can't be reached by the words that
    are left, these are looked up for the remaining candidates alone (MaxScore).

    Source: Turtle and Flood, Query evaluation: strategies and optimizations, 1995.
    """
    ordered = sorted(terms, key=lambda term: -term.bound)
    left = sum(term.bound for term in ordered)
    sums = np.zeros(len(norms))
    candidates: NDArray[Any] | None = None
    sample: NDArray[Any] | None = None
    for term in ordered:
        if candidates is None and sample is not None and len(term.rows) > _LONG_LIST:
            reachable = _lowest_of_best(sums[sample], limit) * (1 - _ROUNDING) - left
            candidates = np.flatnonzero(sums >= reachable) if reachable > 0 else None
        left -= term.bound
        if candidates is not None:
            places = np.searchsorted(term.rows, candidates)
            places[places == len(term.rows)] = 0
            has_term = term.rows[places] == candidates
            found = candidates[has_term]
            sums[found] += term.scores(norms[found], places[has_term])
            continue
        rows = term.rows.astype(np.intp)
        sums[rows] += term.scores(norms[rows])
        if sample is None and len(rows) >= limit:
            sample = rows
    if candidates is None:
        lowest = _lowest_of_best(sums[sample], limit) if sample is not None else 0.0
        candidates = np.flatnonzero(sums >= max(lowest, np.finfo(np.float64).tiny))
    scores = sums[candidates]
    is_kept = scores >= max(_lowest_of_best(scores, limit), np.finfo(np.float64).tiny)
    return candidates[is_kept], scores[is_kept]


def _lowest_of_best(scores: NDArray[np.float64], limit: int) -> float:
    """Return the score of the last of the best; 0 where there are fewer."""
    return float(np.partition(scores, -limit)[-limit]) if len(scores) >= limit else 0.0
