"""Rank rows by exact BM25 from the mapped file of postings and the rows that changed since.

A question costs nanoseconds for each row with a word, where SQLite's own ``bm25()`` takes a microsecond.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from knapper.index import database
from knapper.index.words import fts5, postings
from knapper.index.words.fts5 import QueryWord, WordQuestion, WordTable, inverse_document_frequency
from knapper.index.words.postings import NameStems, PostingsFile, TermLists
from knapper.system.arrays import ScoredIds, cut_to_best, lowest_of_best, np, positions_among, sort_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING: Final = 1e-9
"""By how much sums in another order may differ, relatively; a row that near to the threshold isn't left out."""
_KEPT_MASKS: Final = 16
"""Of 0.1 MB for 100,000 rows each."""
_KEPT_NORMS: Final = 4
"""Of 0.8 MB for 100,000 rows each, where a mask or the log leaves out any."""
_MAX_CLEARED_SHARE: Final = 0.1
"""Of the rows, up to which clearing their sums one by one is faster than clearing all."""
_SHORT_SHARE: Final = 6
"""How many times as long as adding up a row it takes to look one up."""
_ADDED_ROWS: Final = 8_192
"""Rows whose scores are added up at once: all of a frequent word's take twice as long, as they push out the sums."""
_SAMPLED_ROWS: Final = 8_192
"""Rows of a word, of which the best tell what the best of all reach at least; more tell it little better. A larger
limit takes as many as it asks for: the best of fewer would promise too much."""
_CLEAR_LEAD: Final = 3.0
"""How many times as much the terms that were added up can count as those left, from which on it pays to look."""
_NARROWED: Final = 4
"""Candidates, as a multiple of the best, from which on each further term may leave some of them out."""
_FEW_SHARE: Final = 0.5
"""Of the rows of the terms left, that were added up, up to which it pays to look whether these have decided."""
_SPARSE_SHARE: Final = 0.1
"""Of all rows, that were added up, up to which it is faster to look at each of these than at all."""
_LONG_SHARE: Final = 0.3
"""Of all rows, that the terms left have together, from which on it pays to look whether the others have decided."""


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
    file_counts: NDArray[np.int64]
    """The number of rows by file id."""

    def ids(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the ids of rows by their positions."""
        count = len(self.lists.ids)
        if not len(self.added):
            return self.lists.ids[rows]
        return np.where(
            rows < count,
            self.lists.ids[np.minimum(rows, count - 1)] if count else 0,
            self.added[np.clip(rows - count, 0, len(self.added) - 1)],
        )

    def all_ids(self) -> NDArray[np.int64]:
        """Return the id of each row."""
        return np.concatenate((self.lists.ids, self.added)) if len(self.added) else self.lists.ids

    def find_rows(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of ids, ascending; unknown ones are left out.

        An added row with the id of a dropped one, such as a note's name, is the one that is meant.
        """
        added, is_added = positions_among(self.added, ids)
        old, is_old = positions_among(self.lists.ids, ids)
        if self.dropped is not None:
            is_old[is_old] = ~self.dropped[old[is_old]]
        return np.sort(np.concatenate((old[is_old], len(self.lists.ids) + added[is_added])))


class RankedTerm(Protocol):
    """One word of a question, whose rows may have to be read first."""

    @property
    def bound(self) -> float:
        """Return what no row's score is above."""
        ...

    @property
    def cost(self) -> int:
        """Return how long adding up all its rows takes, in rows at hand."""
        ...

    @property
    def rows(self) -> NDArray[Any]:
        """Return its rows, ascending."""
        ...

    def is_looked_up(self, chosen: int) -> bool:
        """Return whether looking that many rows up is faster than adding up all."""
        ...

    def add_found(self, chosen: NDArray[Any], sums: NDArray[np.float64], norms: NDArray[np.float64]) -> None:
        """Add the scores of those of its rows that are among the *chosen* ones."""
        ...

    def add_to(self, sums: NDArray[np.float64], norms: NDArray[np.float64], *, is_first: bool) -> None:
        """Add the scores of all its rows; *is_first* where all sums are zeros."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTerm:
    """One word of a question with its rows."""

    rows: NDArray[Any]
    occurrences: NDArray[np.float64] | NDArray[np.uint16]
    """By row: weighted occurrences times *scale*, or the score itself where *gain* is 0."""
    gain: float
    """Repetitions times inverse document frequency times the most that occurrences count."""
    bound: float
    """No row's score is above this."""
    scale: int

    def scores(self, norms: NDArray[np.float64], chosen: NDArray[Any] | slice) -> NDArray[np.float64]:
        """Return the scores of the *chosen* ones of its rows; the norms of just these are written over."""
        values = self.occurrences[chosen].astype(np.float64)
        if not self.gain:
            return np.where(np.isfinite(norms), values, 0.0)
        if self.scale != 1:
            values /= self.scale
        norms += values
        values /= norms
        values *= self.gain
        return values

    @property
    def cost(self) -> int:
        """Return how long adding up all its rows takes, in rows."""
        return len(self.rows)

    def is_looked_up(self, chosen: int) -> bool:
        """Return whether looking that many rows up is faster than adding up all."""
        return _SHORT_SHARE * chosen < len(self.rows)

    def add_found(self, chosen: NDArray[Any], sums: NDArray[np.float64], norms: NDArray[np.float64]) -> None:
        """Add the scores of those of its rows that are among the *chosen* ones."""
        places, has_term = positions_among(self.rows, chosen)
        found = chosen[has_term]
        sums[found] += self.scores(norms[found], places[has_term])

    def add_to(self, sums: NDArray[np.float64], norms: NDArray[np.float64], *, is_first: bool) -> None:
        """Add the scores of all its rows, in parts that the processor's nearest memory holds.

        Args:
            sums: By row.
            norms: By row.
            is_first: Whether all sums are zeros, which needn't be read.
        """
        for start in range(0, len(self.rows), _ADDED_ROWS):
            part = slice(start, start + _ADDED_ROWS)
            rows = self.rows[part].astype(np.intp)
            scores = self.scores(norms.take(rows), part)
            if is_first:
                sums[rows] = scores
            else:
                np.add.at(sums, rows, scores)  # a word has each row once; this takes less than reading and writing them


class PostingsEngine:
    """A thread-safe engine over the file that the database names, and the changes since; see `words.WordEngine`."""

    def __init__(self, folder: Path) -> None:
        """Look for files in the index's *folder*."""
        self._folder = folder
        self._lock = threading.Lock()
        self._file: PostingsFile | None = None
        self._seen: tuple[Mapping[str, object], PostingsFile | None] = {}, None
        """What the index said of itself at the last question, in one snapshot the very same object, and its file."""
        self._states: dict[str, tuple[tuple[str, str, int], _TableState]] = {}
        self._seen_states: dict[str, tuple[Mapping[str, object], _TableState]] = {}
        """By table: what the index said of itself at the last question, and its state."""
        self._masks: list[tuple[_TableState, NDArray[np.bool_], NDArray[np.bool_]]] = []
        """The last few: a state, which of its files are allowed, and which of its rows that makes."""
        self._kept_norms: list[tuple[_TableState, NDArray[np.bool_] | None, bool, NDArray[np.float64]]] = []
        """The last few: a state, which of its files are allowed, whether the log is, and its norms without others."""
        self._spare_sums: dict[str, NDArray[np.float64]] = {}
        """Zeros for the next question, by table; one that comes meanwhile makes its own."""

    def is_ready(self, connection: sqlite3.Connection) -> bool:
        """Return whether the state that a connection sees has a whole file."""
        return self._open(connection) is not None

    def close(self) -> None:
        """Give the file's memory back."""
        self._forget()
        self._spare_sums.clear()

    def _forget(self) -> None:
        self._file, self._seen, self._masks, self._kept_norms = None, ({}, None), [], []
        self._states, self._seen_states = {}, {}

    def discard(self) -> None:
        """Delete a file that turned out to be damaged, so that the next writer derives it anew."""
        file = self._file
        self._forget()
        if file is not None:
            with suppress(OSError):
                (self._folder / file.name).unlink(missing_ok=True)

    def best(self, connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> Mapping[int, float]:
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
        if phrases:
            # Leave out the rows without all of the phrases, or without any of the words where there are some.
            if len(required) < len(phrases):
                norms[:] = np.inf
            kept_sets = [term.rows for term in required]
            if terms:
                kept_sets.append(np.concatenate([term.rows for term in terms]))
            for kept in kept_sets:
                is_out = np.ones(len(norms), np.bool_)
                is_out[kept] = False
                norms[is_out] = np.inf
        for expression in question.excluded:
            norms[state.find_rows(_matching_ids(connection, table, expression))] = np.inf
        every = [*terms, *required]
        # The sums of the last question, zeros again: new ones cost a page fault for each 4 kB.
        sums = self._spare_sums.pop(table.name, None)
        if sums is None or len(sums) != len(norms):
            sums = np.zeros(len(norms))
        rows, scores, summed = best_rows(every, norms, sums, question.limit)
        # Only rows of these words were written to.
        if sum(len(term.rows) for term in summed) > _MAX_CLEARED_SHARE * len(sums):
            sums.fill(0.0)
        else:
            for term in summed:
                sums[term.rows] = 0.0
        self._spare_sums[table.name] = sums
        ids = state.ids(rows)
        order = np.lexsort((ids, -scores))[: question.limit]
        return ScoredIds(ids[order], scores[order])

    def counts(
        self,
        connection: sqlite3.Connection,
        table: WordTable,
        question_words: Sequence[QueryWord],
        *,
        allowed: NDArray[np.bool_] | None,
    ) -> tuple[dict[str, int], int]:
        """Count the rows of allowed files with each word, by its expression, and all of them.

        Raises:
            LookupError: The database names no whole file.
        """
        state = self._state(connection, table)
        is_counted: NDArray[np.bool_] | None = None
        if state.dropped is not None or allowed is not None:
            is_counted = np.ones(len(state.norms), np.bool_)
            if state.dropped is not None:
                is_counted[: len(state.dropped)] = ~state.dropped
            if allowed is not None:
                is_counted &= self._allowed_rows(table, state, allowed)
        added = _read_added(connection, table, state, [word.token for word in question_words if word.token])
        counts: dict[str, int] = {}
        for word in question_words:
            if word.token:
                place = state.lists.find(word.token).place
                if is_counted is None and not added:
                    counts[word.expression] = place.stop - place.start
                    continue
                rows = state.lists.rows[place]
                if word.token in added:
                    rows = np.concatenate((rows, added[word.token][0]))
            else:
                rows = state.find_rows(_matching_ids(connection, table, word.expression))
            counts[word.expression] = len(rows) if is_counted is None else int(np.count_nonzero(is_counted[rows]))
        return counts, len(state.norms) if is_counted is None else int(np.count_nonzero(is_counted))

    def lengths(
        self, connection: sqlite3.Connection, table: WordTable, files: Sequence[int], *, most: int
    ) -> list[int]:
        """Count the rows of each file, up to *most*.

        Raises:
            LookupError: The database names no whole file.
        """
        counts, ids = self._state(connection, table).file_counts, np.array(files, np.int64)
        found = counts.take(ids, mode="clip")
        found[ids >= len(counts)] = 0
        return np.minimum(found, most).tolist()

    def holding(
        self, connection: sqlite3.Connection, question_words: Sequence[QueryWord], files: Collection[int]
    ) -> set[int]:
        """Return those of *files* whose names or headings hold one of the words.

        Raises:
            LookupError: The database names no whole file.
        """
        state = self._state(connection, fts5.NAMES)
        rows = state.find_rows(np.fromiter(files, np.int64, len(files)))
        is_found = np.zeros(len(rows), np.bool_)
        for term in _terms(connection, fts5.NAMES, state, question_words):
            is_found |= positions_among(term.rows, rows)[1]
        return set(state.ids(rows[is_found]).tolist())

    def name_stems(
        self, connection: sqlite3.Connection, files: Sequence[int], stems: Collection[str]
    ) -> tuple[NameStems, dict[str, int]]:
        """Return the stems of the names of those files whose names are still what the derived file holds.

        Args:
            connection: In a snapshot.
            files: Their ids.
            stems: Of a query; the number of each that is in any name is returned, too.

        Raises:
            LookupError: The database names no whole file.
        """
        state, file = self._state(connection, fts5.NAMES), self._open(connection)
        if file is None:
            raise LookupError("the index has no whole file of postings")
        ids = np.array(files, np.int64)
        places, is_stored = positions_among(state.lists.ids, ids)
        if state.dropped is not None:
            is_stored &= ~state.dropped[places]
        numbers = {stem: number for stem in stems if (number := state.lists.find(stem).number) >= 0}
        return file.names.of(ids[is_stored], places[is_stored]), numbers

    def _open(self, connection: sqlite3.Connection) -> PostingsFile | None:
        meta, (seen, file) = database.meta_of(connection), self._seen
        if meta is seen:
            return file
        name, file = postings.name_of(connection), self._file
        if not name or file is None or file.name != name or file.uid != database.state_of(connection)[0]:
            file = postings.open_named(connection, self._folder) if name else None
            self._file = file
        self._seen = meta, file
        return file

    def _state(self, connection: sqlite3.Connection, table: WordTable) -> _TableState:
        meta, seen = database.meta_of(connection), self._seen_states.get(table.name)
        if seen is not None and seen[0] is meta:
            return seen[1]
        file = self._open(connection)
        if file is None:
            raise LookupError("the index has no whole file of postings")
        key = (file.name, *database.state_of(connection))
        with self._lock:
            known = self._states.get(table.name)
        if known is not None and known[0] == key:
            state = known[1]
        else:
            state = _read_state(connection, table, file.tables[table.name])
            with self._lock:
                self._states[table.name] = key, state
                if known is not None:  # or they would keep the memory of states that nobody asks any more
                    self._masks = [kept for kept in self._masks if kept[0] is not known[1]]
                    self._kept_norms = [kept for kept in self._kept_norms if kept[0] is not known[1]]
        self._seen_states[table.name] = meta, state
        return state

    def _allowed_rows(self, table: WordTable, state: _TableState, allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows are of allowed files; the last masks are kept, as one question needs each several times."""
        for known_state, known_allowed, rows in self._masks:
            if known_state is state and known_allowed is allowed:
                return rows
        files = state.all_ids() >> table.file_shift
        rows = files < len(allowed)
        rows[rows] = allowed[files[rows]]
        self._masks = [(state, allowed, rows), *self._masks[: _KEPT_MASKS - 1]]
        return rows

    def _norms(
        self, connection: sqlite3.Connection, table: WordTable, state: _TableState, question: WordQuestion
    ) -> NDArray[np.float64]:
        """Return the rows' norms, infinite for those that the question doesn't allow.

        They are kept for other questions, unless this one has phrases or exclusions, which write to them.
        """
        allowed, has_log = question.allowed, question.include_log or table is not fts5.CHUNKS
        # The last few are kept, as a client asks with the same mask again and again.
        norms = next(
            (
                kept
                for kept_state, kept_allowed, kept_log, kept in self._kept_norms
                if kept_state is state and kept_allowed is allowed and kept_log is has_log
            ),
            None,
        )
        if norms is None:
            norms = state.norms
            logged: list[int] = []
            if not has_log:
                logged = [int(i) for (i,) in connection.execute(f"{database.LOG_CHUNKS_SQL} ORDER BY id")]
            if allowed is not None or logged:
                norms = norms.copy()
            if allowed is not None:
                norms[~self._allowed_rows(table, state, allowed)] = np.inf
            if logged:
                norms[state.find_rows(np.array(logged, np.int64))] = np.inf
            self._kept_norms = [(state, allowed, has_log, norms), *self._kept_norms[: _KEPT_NORMS - 1]]
        return norms.copy() if question.phrases or question.excluded else norms


def _read_state(connection: sqlite3.Connection, table: WordTable, lists: TermLists) -> _TableState:
    added = fts5.added_rows(connection, table)
    dropped_ids = np.array(fts5.dropped_rows(connection, table), np.int64)
    places, is_known = positions_among(lists.ids, dropped_ids)
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
    norms = postings.row_norms(lengths, total, all_words)
    if dropped is not None:
        norms[: len(dropped)][dropped] = np.inf
    file_counts = lists.count_by_file(table.file_shift)
    if added or dropped is not None:
        new = np.array([row_id for row_id, _ in added], np.int64) >> table.file_shift
        file_counts = np.pad(file_counts, (0, max(int(new.max(initial=0)) + 1 - len(file_counts), 0)))
        np.add.at(file_counts, new, 1)
        np.subtract.at(file_counts, dropped_ids[is_known] >> table.file_shift, 1)
    mean, old_mean = all_words / max(total, 1), lists.lengths.mean() if len(lists.lengths) else 1.0
    return _TableState(
        lists=lists,
        added=np.array([row_id for row_id, _ in added], np.int64),
        dropped=dropped,
        norms=norms,
        total=total,
        drift=max(float(mean / max(old_mean, 1e-9)), 1.0),
        file_counts=file_counts,
    )


def _terms(
    connection: sqlite3.Connection, table: WordTable, state: _TableState, question_words: Sequence[QueryWord]
) -> list[ScoredTerm]:
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
        numbers = np.fromstring(text, np.int64, sep=" ")
        places = len(state.lists.ids) + np.searchsorted(state.added, numbers[::2])
        found[term] = np.stack((places.astype(np.int64), numbers[1::2]))
    return found


def _token_term(table: WordTable, state: _TableState, word: QueryWord, added: NDArray[np.int64] | None) -> ScoredTerm:
    place, peak, _ = state.lists.find(word.token)
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
    gain = word.times * inverse_document_frequency(count, state.total) * (postings.K1 + 1)
    return ScoredTerm(rows=rows, occurrences=weights, gain=gain, bound=gain * peak * (1 + ROUNDING), scale=table.scale)


def _expression_term(
    connection: sqlite3.Connection, table: WordTable, state: _TableState, word: QueryWord
) -> ScoredTerm:
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
    bound = float(values.max(initial=0.0)) * (1 + ROUNDING)
    return ScoredTerm(rows=rows, occurrences=values, gain=0.0, bound=bound, scale=1)


def _matching_ids(connection: sqlite3.Connection, table: WordTable, expression: str) -> NDArray[np.int64]:
    sql = f"SELECT group_concat(id, ' ') FROM (SELECT rowid AS id FROM {table.name} WHERE {table.name} MATCH ?)"
    return np.fromstring(connection.execute(sql, (expression,)).fetchone()[0] or "", np.int64, sep=" ")


def best_rows(
    terms: Sequence[RankedTerm], norms: NDArray[np.float64], sums: NDArray[np.float64], limit: int
) -> tuple[NDArray[Any], NDArray[np.float64], Sequence[RankedTerm]]:
    """Return the rows with the highest scores, and possibly more, in any order, and the terms whose rows were summed.

    *sums* are zeros, and written to. Words are added up from the one that can count most; once the best rows so far
    can't be reached by the words that are left, these are looked up for the remaining candidates alone (MaxScore).

    Source: Turtle and Flood, Query evaluation: strategies and optimizations, 1995.
    """
    ordered = sorted(terms, key=lambda term: -term.bound)
    known = [term for term in ordered if isinstance(term, ScoredTerm) and term.gain]
    summed: Sequence[RankedTerm] = ordered
    if len(known) == len(ordered) and sum(len(term.rows) for term in known) <= _ADDED_ROWS:
        # All at once: for so few rows, a call for each word takes longer.
        rows = np.concatenate([term.rows for term in known]).astype(np.intp)
        values = np.concatenate([term.occurrences for term in known]).astype(np.float64)
        scale = known[0].scale
        if scale != 1:
            values /= scale
        values /= norms.take(rows) + values
        values *= np.array([term.gain for term in known]).repeat([len(term.rows) for term in known])
        np.add.at(sums, rows, values)
        candidates = sort_distinct(rows) if len(known) > 1 else rows
    else:
        search = _RowSearch(ordered, norms, sums, limit)
        for term in ordered:
            search.add(term)
        candidates, summed = search.last_candidates(), search.summed
    scores = sums[candidates]
    is_kept = scores >= max(lowest_of_best(scores, limit), np.finfo(np.float64).tiny)
    return candidates[is_kept], scores[is_kept], summed


class _RowSearch:
    """The sums of a question's words so far, and which rows may yet be among the best."""

    def __init__(
        self, terms: Sequence[RankedTerm], norms: NDArray[np.float64], sums: NDArray[np.float64], limit: int
    ) -> None:
        """Begin; *sums* are zeros."""
        self._norms, self._sums, self._limit = norms, sums, limit
        self.summed: list[RankedTerm] = []
        self._candidates: NDArray[Any] | None = None
        """None while any row may be."""
        self._sample: NDArray[Any] | None = None
        """Different rows, of which the best tell what the best of all reach at least."""
        self._left = sum(term.bound for term in terms)
        """What the terms that weren't added yet can count together."""
        self._reached = 0.0
        self._rows_left = sum(term.cost for term in terms)
        self._rows_summed = self._rows_looked_at = 0

    def add(self, term: RankedTerm) -> None:
        """Add a term's scores: to all of its rows, or only to candidates."""
        if self._candidates is None:
            self._look_for_candidates()
        elif len(self._candidates) > _NARROWED * self._limit:
            scores = self._sums[self._candidates]
            reachable = lowest_of_best(scores, self._limit) * (1 - ROUNDING) - self._left
            self._candidates = self._candidates[scores >= reachable]
        self._left, self._reached = self._left - term.bound, self._reached + term.bound
        self._rows_left -= term.cost
        candidates = self._candidates
        if candidates is not None and term.is_looked_up(len(candidates)):
            term.add_found(candidates, self._sums, self._norms)
            return
        term.add_to(self._sums, self._norms, is_first=not self.summed)
        self.summed.append(term)
        self._rows_summed += len(term.rows)
        if self._sample is None and len(term.rows) >= self._limit:
            self._sample = term.rows[: max(_SAMPLED_ROWS, self._limit)]

    def _look_for_candidates(self) -> None:
        """Find out whether the terms so far have decided, where that may be and costs less than to go on."""
        if self._sample is None or self._reached <= self._left:
            return
        few = min(_FEW_SHARE * self._rows_left, _SPARSE_SHARE * len(self._sums))
        if 2 * self._rows_looked_at <= self._rows_summed <= few and self._reached > _CLEAR_LEAD * self._left:
            self._rows_looked_at = self._rows_summed
            self._candidates = _reaching(self.summed, self._sums, self._limit, self._left)
        elif self._rows_left > _LONG_SHARE * len(self._sums):
            self._sample, lowest = cut_to_best(self._sample, self._sums, self._limit)
            reachable = lowest * (1 - ROUNDING) - self._left
            self._candidates = np.flatnonzero(self._sums >= reachable) if reachable > 0 else None

    def last_candidates(self) -> NDArray[Any]:
        """Return rows with all of the best among them, now that every term was added."""
        candidates = self._candidates
        if candidates is None and self._rows_summed < _SPARSE_SHARE * len(self._sums):
            candidates = _reaching(self.summed, self._sums, self._limit, 0.0)
        if candidates is None:
            lowest = 0.0 if self._sample is None else cut_to_best(self._sample, self._sums, self._limit)[1]
            candidates = np.flatnonzero(self._sums >= max(lowest, np.finfo(np.float64).tiny))
        return candidates


def _reaching(
    terms: Sequence[RankedTerm], sums: NDArray[np.float64], limit: int, left: float
) -> NDArray[np.intp] | None:
    """Return the rows of *terms* that may yet be among the best, ascending; None where others may, too.

    Args:
        terms: Those that were added up.
        sums: By row.
        limit: How many are the best.
        left: What the other terms may add to any row.
    """
    rows = np.concatenate([term.rows for term in terms]).astype(np.intp) if terms else np.empty(0, np.intp)
    if left or len(rows) > _SAMPLED_ROWS:
        scores = sums.take(rows)
        # The rows of one term are different ones, so that each term's best tell what the best of all reach at least.
        stops = [*accumulate((len(term.rows) for term in terms), initial=0)]
        lowest = max((lowest_of_best(scores[start:stop], limit) for start, stop in pairwise(stops)), default=0.0)
        reachable = lowest * (1 - ROUNDING) - left
        if left and reachable <= 0:
            return None
        rows = rows[scores >= reachable]
    return sort_distinct(rows) if len(terms) > 1 else rows
