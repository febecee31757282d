"""Rank chunks and names by the words of a query with BM25, and correct mistyped words."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from knapper.index import database, integrity, tokenizer
from knapper.index.arrays import np
from knapper.index.database import StateCache
from knapper.index.tokenizer import CUT_MARK, Query, Stemmer

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_QUERY_TERMS = 24
MAX_REPEATS = 3
"""Limit for repetitions of a word in a query."""
CHUNK_POSTINGS = 7_000
"""Budget of rows that the engine scores for a query, about 0.7 microseconds each.

Absolute, so that all words count in a small vault, and a large one is searched in bounded time. Of 10,000, 7,000,
5,000 and 3,000 this ranked no worse than the first on the half of the judged queries that chooses, among 52,000 other
chunks, and takes a third less time; ``docs/benchmarks.md`` has the figures."""
NAME_POSTINGS = 3_000
_LARGE_COUNT = 1_000
"""From this count on counting is slow enough to be cached, and a few more notes hardly change it."""
_MAX_COUNT_AGE_GENERATIONS = 64
"""Writes after which a large count is renewed; it only weighs words against each other."""
_MAX_CACHED_COUNTS = 50_000
_COUNTS_PER_STATEMENT = 64
"""Counts in one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A word of the query."""

    expression: str
    """The FTS5 expression."""
    token: str
    """The token in the index; empty where the expression isn't one whole token."""
    times: int = 1
    """Its number of repetitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSelection:
    """The selected words of a query, in order of weight."""

    words: tuple[QueryWord, ...]
    every: bool
    """All words are too frequent: only texts with both of the rarest are searched."""

    def match(self, query: Query) -> str:
        """Return the FTS5 expression, with phrases and exclusions of *query*; empty where there is nothing to find."""
        any_word_sql = (" AND " if self.every else " OR ").join(e for w in self.words for e in [w.expression] * w.times)
        required = [f"({any_word_sql})"] if any_word_sql else []
        required.extend(term.expression() for term in query.phrases)
        excluded = " OR ".join(term.expression() for term in query.excluded)
        required_sql = " AND ".join(required)
        return f"({required_sql}) NOT ({excluded})" if required_sql and excluded else required_sql


class RowCounts:
    """Counts of the rows with a term; large ones are cached while the index changes little."""

    def __init__(self, table: str) -> None:
        """Count rows of the FTS5 table *table*."""
        self._table = table
        self._uid = ""
        self._known: dict[str, tuple[int, int]] = {}
        """By expression: the count and its generation."""
        self._total = (0, -1)

    def of(self, connection: sqlite3.Connection, expressions: Sequence[str]) -> tuple[Mapping[str, int], int]:
        """Return the count of each expression, and that of all rows."""
        uid, generation = database.state_of(connection)
        if uid != self._uid or len(self._known) > _MAX_CACHED_COUNTS:
            self._uid, self._known, self._total = uid, {}, (0, -1)
        if self._total[1] != generation:
            self._total = (_fetch_count(connection, "SELECT COUNT(*) FROM chunks"), generation)
        counts: dict[str, int] = {}
        uncounted: list[str] = []
        for expression in expressions:
            count, counted_in = self._known.get(expression, (0, -1))
            if counted_in != generation and (
                count < _LARGE_COUNT or generation - counted_in > _MAX_COUNT_AGE_GENERATIONS
            ):
                uncounted.append(expression)
            counts[expression] = count
        for expression, count in self._counted(connection, uncounted):
            self._known[expression] = (count, generation)
            counts[expression] = count
        return counts, self._total[0]

    def _counted(self, connection: sqlite3.Connection, expressions: Sequence[str]) -> Iterable[tuple[str, int]]:
        """Count several in one query: SQLite releases the GIL at each one, and another thread may keep it."""
        count_sql = f"(SELECT COUNT(*) FROM {self._table} WHERE {self._table} MATCH ?)"
        for start in range(0, len(expressions), _COUNTS_PER_STATEMENT):
            batch = expressions[start : start + _COUNTS_PER_STATEMENT]
            row = connection.execute(f"SELECT {', '.join([count_sql] * len(batch))}", batch).fetchone()
            yield from zip(batch, map(int, row), strict=True)


def _fetch_count(connection: sqlite3.Connection, sql: str, *parameters: str) -> int:
    return int(connection.execute(sql, parameters).fetchone()[0])


def select_words(
    connection: sqlite3.Connection, query: Query, *, stemmer: Stemmer, counts: RowCounts, budget: int
) -> WordSelection:
    """Select the words whose postings fit the budget, by weight: repetitions times inverse document frequency.

    Words without any rows, and those that don't fit, are left out; cheaper ones after such are still selected.
    """
    words = _query_words(query, stemmer)
    counts_by_expression, total = counts.of(connection, [word.expression for word in words])
    present = [word for word in words if counts_by_expression[word.expression]]
    ranked = sorted(
        present,
        key=lambda one: (
            -one.times * inverse_document_frequency(counts_by_expression[one.expression], total),
            one.expression,
        ),
    )
    ranked = ranked[:MAX_QUERY_TERMS]
    chosen: list[QueryWord] = []
    remaining = budget
    for word in ranked:
        if counts_by_expression[word.expression] <= remaining:
            chosen.append(word)
            remaining -= counts_by_expression[word.expression]
    if chosen or not ranked:
        return WordSelection(words=tuple(chosen), every=False)
    rarest = sorted(ranked, key=lambda one: counts_by_expression[one.expression])[:2]
    return WordSelection(words=tuple(replace(word, times=1) for word in rarest), every=True)


def inverse_document_frequency(count: int, total: int) -> float:
    """Return the inverse document frequency that FTS5's BM25 uses.

    Source: SQLite FTS5 documentation, "The bm25() function".
    """
    return max(math.log((total - count + 0.5) / (count + 0.5)), 1e-6) if count <= total else 1e-6


def _query_words(query: Query, stemmer: Stemmer) -> list[QueryWord]:
    """Return each word with its number of repetitions in any form; the first form is used for all."""
    words_by_stems: dict[tuple[str, ...], QueryWord] = {}
    repeats = Counter(stem for stems in stemmer.stems([query.plain]) for stem in stems)
    for term, stems in zip(query.content, stemmer.stems([term.text for term in query.content]), strict=True):
        key = (*stems, "*") if term.prefix else tuple(stems)
        if stems and key not in words_by_stems:
            token = stems[0] if len(key) == 1 and CUT_MARK not in stems[0] else ""
            times = min(max(1, min(repeats[stem] for stem in stems)), MAX_REPEATS)
            words_by_stems[key] = QueryWord(expression=term.expression(), token=token, times=times)
    return list(words_by_stems.values())


TESTED: Final = ((3, 39), (3, 54))
"""Oldest and newest SQLite whose ``bm25()`` gave equal scores; a test fails where the installed one is newer."""
_FORMAT: Final = 4
"""FTS5's version of its table layout."""
_COLUMNS: Final = {"config": ["k", "v"], "data": ["id", "block"], "docsize": ["id", "sz"]}
"""Columns of FTS5's shadow tables, by the suffixes of their names."""
_MAX_STALE_ROWS = 1_024
"""Cached rows that were deleted, beyond the number of existing ones, before all are read again."""
_VARINT_END = 128
"""The last byte of a varint is below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLengths:
    """The lengths of rows of one full-text index, by ascending id."""

    uid: str
    ids: NDArray[np.int64]
    words: NDArray[np.int64]
    """Words in all columns of each row."""

    def places(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the position of each id, and whether the id is known; the position of an unknown id is another's."""
        places = np.searchsorted(self.ids, ids)
        places[places == len(self.ids)] = 0
        return places, self.ids[places] == ids if len(self.ids) else np.zeros(len(ids), np.bool_)


class RowLengthCache:
    """A thread-safe cache of row lengths, for a table whose ids are never reused, so that known lengths stay true.

    100,000 rows take 1.6 MB, and 0.05 s for the first read.
    """

    def __init__(self, table: str, *, columns: int) -> None:
        """Cache the lengths of the FTS5 table *table*."""
        self._table = table
        self._columns = columns
        self._lock = threading.Lock()
        self._known = RowLengths(uid="", ids=np.empty(0, np.int64), words=np.empty(0, np.int64))
        self._checked = ("", False)

    def is_known(self, connection: sqlite3.Connection) -> bool:
        """Check once for each index whether its lengths are stored in the known format."""
        uid, _ = database.state_of(connection)
        if self._checked[0] != uid:
            self._checked = uid, _is_known(connection, self._table)
        return self._checked[1]

    def find(self, connection: sqlite3.Connection, ids: NDArray[np.int64]) -> tuple[RowLengths, NDArray[np.intp]]:
        """Return the lengths, and the positions of *ids* among them.

        Raises:
            sqlite3.DatabaseError: A row has no length: the index is damaged.
        """
        uid, _ = database.state_of(connection)
        with self._lock:
            if uid != self._known.uid:
                self._known = self._read(connection, uid)
            places, is_known = self._known.places(ids)
            if not is_known.all():
                self._known = self._with(connection, np.unique(ids[~is_known]))
                places, is_known = self._known.places(ids)
            known = self._known
        if not is_known.all():
            raise integrity.damage_error(f"rows of {self._table} have no length")
        return known, places

    def total(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Return the number of rows and that of all their words, for a table that isn't empty.

        Raises:
            sqlite3.DatabaseError: They can't be read: the index is damaged.
        """
        rows, *words = self._totals(connection)
        if rows < 1 or len(words) != self._columns or min(words) < 0:
            raise integrity.damage_error(f"the numbers of rows and words of {self._table} can't be read")
        return rows, sum(words)

    def check(self, connection: sqlite3.Connection) -> None:
        """Compare the sum of all row lengths with the table's own total.

        Raises:
            sqlite3.DatabaseError: The index is damaged.
        """
        known = self._read(connection, "")
        rows, *words = self._totals(connection)
        if (rows, sum(words)) != (len(known.ids), int(known.words.sum())):
            raise integrity.damage_error(f"the rows of {self._table} aren't those that were counted")

    def _totals(self, connection: sqlite3.Connection) -> list[int]:
        """Return the number of rows, then that of the words in each column, which is missing for an empty table."""
        row = connection.execute(f"SELECT hex(block) FROM {self._table}_data WHERE id = 1").fetchone()
        return _decode_varints(bytes.fromhex(row[0] if row else "")).tolist() or [0]

    def _with(self, connection: sqlite3.Connection, ids: NDArray[np.int64]) -> RowLengths:
        """Return the known lengths and those of more rows; all are read again where too many of them were deleted."""
        known_rows = self._known
        if len(known_rows.ids) > 2 * self.total(connection)[0] + _MAX_STALE_ROWS:
            return self._read(connection, known_rows.uid)
        new_rows = self._read(
            connection, known_rows.uid, "WHERE id IN (SELECT value FROM json_each(?))", json.dumps(ids.tolist())
        )
        places = np.searchsorted(known_rows.ids, new_rows.ids)
        return RowLengths(
            uid=known_rows.uid,
            ids=np.insert(known_rows.ids, places, new_rows.ids),
            words=np.insert(known_rows.words, places, new_rows.words),
        )

    def _read(self, connection: sqlite3.Connection, uid: str, where: str = "", *parameters: str) -> RowLengths:
        """Read rows as one text: each row by itself would have to wait for the GIL."""
        rows = f"SELECT id, sz FROM {self._table}_docsize {where} ORDER BY id"
        lengths_sql = f"SELECT group_concat(id, ' '), group_concat(hex(sz), '') FROM ({rows})"
        ids, sizes = connection.execute(lengths_sql, parameters).fetchone()
        numbers = _decode_varints(bytes.fromhex(sizes or ""))
        row_ids = np.fromstring(ids or "", np.int64, sep=" ")
        if len(numbers) != len(row_ids) * self._columns or numbers.min(initial=0) < 0:
            raise integrity.damage_error(f"lengths of {self._table} can't be read")
        return RowLengths(uid=uid, ids=row_ids, words=numbers.reshape(-1, self._columns).sum(axis=1))


def check_lengths(connection: sqlite3.Connection) -> None:
    """Check the lengths and totals that scores depend on; SQLite's integrity check ignores them.

    Raises:
        sqlite3.DatabaseError: The index is damaged.
    """
    for table in ("chunk_words", "title_words"):
        if _is_known(connection, table):
            RowLengthCache(table, columns=3).check(connection)
        else:
            # An unknown format, or damage, which only FTS5 can distinguish: it reads its settings for any query.
            connection.execute(f"SELECT 1 FROM {table} WHERE {table} MATCH 'a' LIMIT 1").fetchone()


def _is_known(connection: sqlite3.Connection, table: str) -> bool:
    if not TESTED[0] <= sqlite3.sqlite_version_info[:2] <= TESTED[1]:
        return False
    for name, columns in _COLUMNS.items():
        rows = connection.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (f"{table}_{name}",))
        if [column for (column,) in rows] != columns:
            return False
    return connection.execute(f"SELECT v FROM {table}_config WHERE k = 'version'").fetchone() == (_FORMAT,)


def _decode_varints(raw: bytes) -> NDArray[np.int64]:
    """Decode SQLite's varints: seven bits a byte, the highest first.

    Source: SQLite documentation, "Database File Format", on variable-length integers.
    """
    data = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(data < _VARINT_END)
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    widths = ends - starts + 1
    values = np.zeros(len(ends), np.int64)
    for at in range(int(widths.max(initial=0))):
        on = widths > at
        values[on] = values[on] * _VARINT_END + data[starts[on] + at] % _VARINT_END
    return values


_BM25_K1 = 1.2
_BM25_B = 0.75
"""FTS5's constants of BM25."""
_COLUMN_BITS = 2
"""Bits for the column beside a row's id."""
_RowScores: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.float64]]"
"""Rows by ascending id, with a number for each."""


class Postings:
    """A thread-safe scorer of rows by BM25, for a table whose ids are never reused."""

    def __init__(self, table: str, weights: Mapping[str, float]) -> None:
        """Score the FTS5 table *table*; *weights* are those of its columns, four at most."""
        self._table = table
        self._weights = np.array([*weights.values()])
        code = " ".join(f"WHEN '{column}' THEN {code}" for code, column in enumerate(weights))
        self._codes = f"(doc << {_COLUMN_BITS}) + CASE col {code} END"
        self.score = f"-bm25({table}, {', '.join(map(str, weights.values()))})"
        """SQL expression of a row's score."""
        self.lengths = RowLengthCache(table, columns=len(weights))

    def scores(self, connection: sqlite3.Connection, words: Sequence[QueryWord]) -> _RowScores:
        """Return the rows with any of *words* and their scores, equal to those of ``bm25()``.

        Raises:
            sqlite3.DatabaseError: The index is damaged.
        """
        rows_by_word = self._fetch_rows(connection, words)
        ids = np.concatenate([ids for ids, _ in rows_by_word])
        # All rows with the words were deleted since they were counted, and the table may be empty.
        if not len(ids):
            return ids, np.empty(0, np.float64)
        row_lengths, places = self.lengths.find(connection, ids)
        total, length = self.lengths.total(connection)
        lengths = row_lengths.words[places].astype(np.float64)
        length_norms = _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths * (total / max(length, 1)))
        scored: list[NDArray[np.float64]] = []
        start = 0
        for word, (_, values) in zip(words, rows_by_word, strict=True):
            word_scores = (
                _bm25_scores(values, length_norms[start : start + len(values)], total) if word.token else values
            )
            scored.append(word_scores * word.times)
            start += len(values)
        summed = np.bincount(places, weights=np.concatenate(scored)).astype(np.float64, copy=False)
        positive = np.flatnonzero(summed > 0)
        return row_lengths.ids[positive], summed[positive]

    def _fetch_rows(self, connection: sqlite3.Connection, words: Sequence[QueryWord]) -> list[_RowScores]:
        """Read the rows of all words in one query, as one text each: every row would have to wait for the GIL."""
        columns_sql = ", ".join(self._one() if word.token else self._several() for word in words)
        result_texts = connection.execute(
            f"SELECT {columns_sql}", [word.token or word.expression for word in words]
        ).fetchone()
        return [
            self._counted(text or "") if word.token else _parse_scores(text or "")
            for word, text in zip(words, result_texts, strict=True)
        ]

    def _one(self) -> str:
        """Return the SQL for a token's occurrences, one item for each."""
        return f"(SELECT group_concat({self._codes}, ' ') FROM {database.POSITION_TABLES[self._table]} WHERE term = ?)"

    def _several(self) -> str:
        """Return the SQL for rows and scores of an expression of several tokens."""
        scored = f"SELECT rowid AS id, {self.score} AS score FROM {self._table} WHERE {self._table} MATCH ?"
        return f"(SELECT group_concat(id || ' ' || quote(score), ' ') FROM ({scored} ORDER BY rowid LIMIT -1))"

    def _counted(self, text: str) -> _RowScores:
        """Return the rows with a token, and the weighted number of its occurrences in each."""
        codes = np.fromstring(text, np.int64, sep=" ")
        ids = codes >> _COLUMN_BITS
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        weights = self._weights[codes & ((1 << _COLUMN_BITS) - 1)]
        return ids[starts], np.add.reduceat(weights, starts) if len(starts) else weights


def _parse_scores(text: str) -> _RowScores:
    numbers = np.fromstring(text, np.float64, sep=" ")
    return numbers[::2].astype(np.int64), numbers[1::2]


def _bm25_scores(weighted_counts: NDArray[np.float64], norms: NDArray[np.float64], total: int) -> NDArray[np.float64]:
    return (
        inverse_document_frequency(len(weighted_counts), total)
        * (_BM25_K1 + 1)
        * weighted_counts
        / (weighted_counts + norms)
    )


_CHUNK_WEIGHTS = {"title": 3.0, "heading": 2.0, "body": 1.0}
_NAME_WEIGHTS = "1.0, 1.0, 0.3"
"""Weights of title, aliases and headings."""
_MAX_NAME_HITS = 100
_MAX_CACHED_NAMES = 10_000
"""Files whose names' stems are cached, about 0.5 kB each."""
_NameStems = Sequence[Sequence[str]]
"""The stems of each name of a file."""


class KeywordRanker:
    """A ranker of one index's chunks and notes by words."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self.stemmer = Stemmer()
        self._chunk_counts = RowCounts("chunk_words")
        self._name_counts = RowCounts("title_words")
        self._postings = Postings("chunk_words", _CHUNK_WEIGHTS)
        self._is_asked = False
        self._names = StateCache[dict[int, _NameStems]](1)

    def close(self) -> None:
        """Close the stemmer."""
        self.stemmer.close()

    def chunks(
        self,
        connection: sqlite3.Connection,
        query: Query,
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        include_log: bool = False,
    ) -> dict[int, float]:
        """Return the best chunks by BM25, best first; those of the program's log only with *include_log*."""
        choice = select_words(connection, query, stemmer=self.stemmer, counts=self._chunk_counts, budget=CHUNK_POSTINGS)
        match = choice.match(query)
        if not match:
            return {}
        is_plain = not (choice.every or query.phrases or query.excluded)
        if self._is_asked and is_plain and self._postings.lengths.is_known(connection):
            return self._best(connection, choice, limit=limit, allowed=allowed, include_log=include_log)
        # Reading the lengths of all chunks pays off from the second query on.
        self._is_asked = True
        restriction = _allowed_condition(connection, allowed, shift=database.CHUNK_BITS)
        if not include_log and connection.execute(f"{database.LOG_CHUNKS_SQL} LIMIT 1").fetchone():
            restriction += f" AND rowid NOT IN ({database.LOG_CHUNKS_SQL})"
        return _fetch_scores(
            connection, "chunk_words", self._postings.score, f"chunk_words MATCH ?{restriction}", (match, limit)
        )

    def names(
        self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None
    ) -> dict[int, float]:
        """Score files whose title, aliases or headings contain words of the query; stop words only as a whole name.

        Returns:
            Scores by file id, 0 to 1: BM25 relative to the best, times the largest share of a name in the query.
        """
        # All words, as a name may consist of stop words alone, such as "To do" or "The Who".
        every = replace(query, content=query.words)
        choice = select_words(connection, every, stemmer=self.stemmer, counts=self._name_counts, budget=NAME_POSTINGS)
        if not choice.words:
            return {}
        restriction = _allowed_condition(connection, allowed, shift=0)
        match_sql = (" AND " if choice.every else " OR ").join(word.expression for word in choice.words)
        score = f"-bm25(title_words, {_NAME_WEIGHTS})"
        scores = _fetch_scores(
            connection, "title_words", score, f"title_words MATCH ?{restriction}", (match_sql, _MAX_NAME_HITS)
        )
        best = max(scores.values(), default=0.0)
        if best <= 0:
            return {}
        shares = self._shares(connection, query, list(scores))
        if query.content != query.words:
            meant = _content_files(connection, query, choice, list(scores))
            scores = {i: score for i, score in scores.items() if i in meant or shares.get(i) == 1}
        return {i: score / best * shares.get(i, 0.0) for i, score in scores.items()}

    def unknown(self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None) -> list[str]:
        """Return the query's words that are in no text or name of an allowed file."""
        words = {term.text: term.expression() for term in query.words if not term.prefix}
        tables = (("chunk_words", self._chunk_counts, database.CHUNK_BITS), ("title_words", self._name_counts, 0))
        for table, counts, shift in tables:
            row_counts, _ = counts.of(connection, list(words.values()))
            known_expressions = {
                e
                for e in words.values()
                if row_counts[e] and _allowed_file_matches(connection, table, e, allowed, shift=shift)
            }
            words = {word: expression for word, expression in words.items() if expression not in known_expressions}
        return list(words)

    def matching(self, connection: sqlite3.Connection, query: Query, ids: Collection[int]) -> set[int]:
        """Return those of *ids* that contain the query's phrases and nothing that it excludes."""
        remaining = set(ids)
        for term in (*query.phrases, *query.excluded):
            rows = connection.execute(
                "SELECT rowid FROM chunk_words WHERE chunk_words MATCH ? AND rowid IN (SELECT value FROM json_each(?))",
                (term.expression(), json.dumps(list(remaining))),
            )
            matching_ids = {int(i) for (i,) in rows}
            remaining = remaining - matching_ids if term in query.excluded else remaining & matching_ids
        return remaining

    def _best(
        self,
        connection: sqlite3.Connection,
        choice: WordSelection,
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        include_log: bool,
    ) -> dict[int, float]:
        """Return the best chunks with any of the words."""
        ids, scores = self._postings.scores(connection, choice.words)
        if allowed is not None:
            files = ids >> database.CHUNK_BITS
            is_kept = files < len(allowed)
            is_kept[is_kept] = allowed[files[is_kept]]
            ids, scores = ids[is_kept], scores[is_kept]
        if not include_log:
            logged = [int(i) for (i,) in connection.execute(database.LOG_CHUNKS_SQL)]
            is_kept = ~np.isin(ids, logged) if logged else slice(None)
            ids, scores = ids[is_kept], scores[is_kept]
        if len(ids) > limit:
            lowest = np.partition(scores, -limit)[-limit]
            ids, scores = ids[scores >= lowest], scores[scores >= lowest]
        order = np.lexsort((ids, -scores))[:limit]
        return dict(zip(ids[order].tolist(), scores[order].tolist(), strict=True))

    def _shares(self, connection: sqlite3.Connection, query: Query, files: Sequence[int]) -> dict[int, float]:
        """Return by file the largest share of a title or alias that is in the query."""
        is_query_stem = frozenset(self.stemmer.stems([query.plain])[0]).__contains__
        stems_by_file = self._named(connection, files)
        return {
            file: max(
                (sum(map(is_query_stem, parts)) / len(parts) for parts in stems_by_file.get(file, ())), default=0.0
            )
            for file in files
        }

    def _named(self, connection: sqlite3.Connection, files: Sequence[int]) -> Mapping[int, _NameStems]:
        """Return the stems of each file's names, from the cache as far as possible."""
        cached = self._names.get(connection, "", dict)
        cached_stems = {file: stems_of_file for file in files if (stems_of_file := cached.get(file)) is not None}
        names = (
            _read_file_names(connection, [file for file in files if file not in cached_stems])
            if len(cached_stems) < len(files)
            else []
        )
        new_stems: defaultdict[int, list[Sequence[str]]] = defaultdict(list)
        for (file, _), stems in zip(names, self.stemmer.stems([name for _, name in names]), strict=True):
            new_stems[file].extend([stems] if stems else [])
        if len(cached) > _MAX_CACHED_NAMES:
            cached.clear()
        cached.update(new_stems)
        return {**cached_stems, **new_stems}


def _content_files(
    connection: sqlite3.Connection, query: Query, choice: WordSelection, files: Sequence[int]
) -> set[int]:
    """Return those of *files* whose names hold one of the chosen words that isn't a stop word."""
    content = {term.expression() for term in query.content}
    match = " OR ".join(word.expression for word in choice.words if word.expression in content)
    if not match:
        return set()
    rows = connection.execute(
        "SELECT rowid FROM title_words WHERE title_words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
        (match, json.dumps(files)),
    )
    return {int(i) for (i,) in rows}


def _fetch_scores(
    connection: sqlite3.Connection, table: str, score: str, where: str, parameters: tuple[str, int]
) -> dict[int, float]:
    """Return the rows with the highest scores, best first.

    They are read as one text: each row by itself would have to wait for the GIL.
    """
    ranked = f"SELECT rowid AS id, {score} AS score FROM {table} WHERE {where} ORDER BY score DESC, rowid LIMIT ?"
    scores_sql = f"SELECT group_concat(id || ' ' || quote(score), ' ') FROM ({ranked})"
    score_parts = (connection.execute(scores_sql, parameters).fetchone()[0] or "").split(" ")
    scored_rows = (
        zip(map(int, score_parts[::2]), map(float, score_parts[1::2]), strict=True) if len(score_parts) > 1 else ()
    )
    return dict(sorted(scored_rows, key=lambda one: (-one[1], one[0])))


def _read_file_names(connection: sqlite3.Connection, files: Sequence[int]) -> list[tuple[int, str]]:
    """Return the titles and aliases of files, each with its file."""
    rows = connection.execute(
        "SELECT json_group_array(json_array(id, json_extract(title_row, '$[0]'), json_extract(title_row, '$[1]')))"
        " FROM files WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(files),),
    )
    title_rows = cast("list[tuple[int, str, str]]", json.loads(rows.fetchone()[0]))
    return [(file, name) for file, title, aliases in title_rows for name in (title, *filter(None, aliases.split("\n")))]


def _allowed_file_matches(
    connection: sqlite3.Connection, table: str, expression: str, allowed: NDArray[np.bool_] | None, *, shift: int
) -> bool:
    """Return whether an allowed file contains a word that some file contains."""
    if allowed is None:
        return True
    restriction = _allowed_condition(connection, allowed, shift=shift)
    return bool(
        connection.execute(
            f"SELECT 1 FROM {table} WHERE {table} MATCH ?{restriction} LIMIT 1", (expression,)
        ).fetchone()
    )


def _allowed_condition(connection: sqlite3.Connection, allowed: NDArray[np.bool_] | None, *, shift: int) -> str:
    """Return the SQL condition for allowed files, which the engine checks while it searches."""
    if allowed is None:
        return ""
    flags = allowed.tobytes()

    def passes(rowid: int) -> int:
        file = rowid >> shift
        return flags[file] if file < len(flags) else 0

    connection.create_function("knap_allowed", 1, passes)
    return " AND knap_allowed(rowid)"


MatchPlace = Literal["title", "heading", "content"]
_PLACE_COLUMNS: Mapping[MatchPlace, str] = {"heading": "headings", "title": "title aliases"}


def find_match_places(connection: sqlite3.Connection, text: str, files: Sequence[int]) -> dict[int, MatchPlace]:
    """Return for each file the best place with all words of a query, stop words aside; aliases count as titles.

    Args:
        connection: To the index.
        text: The query.
        files: Ids of the files.
    """
    query = tokenizer.parse_query(text)
    words = " AND ".join(term.expression() for term in (*query.content, *query.phrases))
    place_of: dict[int, MatchPlace] = dict.fromkeys(files, "content")
    for place, columns in _PLACE_COLUMNS.items() if words else ():
        rows = connection.execute(
            "SELECT rowid FROM title_words WHERE title_words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
            (f"{{{columns}}} : ({words})", json.dumps(list(files))),
        )
        place_of.update((int(i), place) for (i,) in rows)
    return place_of
