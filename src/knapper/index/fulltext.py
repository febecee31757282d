"""Rank chunks and names by the words of a query with BM25, and correct mistyped words."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from knapper.index import database, tokenizer, words
from knapper.index.arrays import np
from knapper.index.database import StateCache
from knapper.index.tokenizer import CUT_MARK, Query, Stemmer
from knapper.index.words import Fts5Engine, QueryWord, WordQuestion, WordTable

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from knapper.index.bm25 import PostingsEngine

MAX_RANKED_WORDS = 24
"""Words of a passage by which it is ranked, those that weigh most; with all words the joint ranking is worse.

Independent of the vault's size, and told in the answer; ``docs/benchmarks.md`` has the figures."""
MAX_REPEATS = 3
"""Limit for repetitions of a word in a query."""
_LARGE_COUNT = 1_000
"""From this count on counting is slow enough to be cached, and a few more notes hardly change it."""
_MAX_COUNT_AGE_GENERATIONS = 64
"""Writes after which a large count is renewed; it only weighs words against each other."""
_MAX_CACHED_COUNTS = 50_000
_COUNTS_PER_STATEMENT = 64
"""Counts in one query."""


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


def query_words(query: Query, stemmer: Stemmer) -> list[QueryWord]:
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


_MAX_NAME_HITS = 100
_MAX_CACHED_NAMES = 10_000
"""Files whose names' stems are cached, about 0.5 kB each."""
_NameStems = Sequence[Sequence[str]]
"""The stems of each name of a file."""


class KeywordRanker:
    """A ranker of one index's chunks and notes by words."""

    def __init__(self, folder: Path | None = None) -> None:
        """Start with an empty cache; *folder* is the index's own, where a large one has its file of postings."""
        self.stemmer = Stemmer()
        self._folder = folder
        self._fts5 = Fts5Engine()
        self._postings: PostingsEngine | None = None
        self._counts = {table.name: RowCounts(table.name) for table in words.TABLES}
        self._names = StateCache[dict[int, _NameStems]](1)

    def close(self) -> None:
        """Close the stemmer and the file of postings."""
        self.stemmer.close()
        if self._postings is not None:
            self._postings.close()

    def best(self, connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> dict[int, float]:
        """Return the rows with the highest scores, best first, from whichever engine is ready."""
        postings = self._ready_postings(connection)
        if postings is not None:
            try:
                return postings.best(connection, table, question)
            except (LookupError, ValueError):
                # The derived file is damaged: the answer comes from what it was derived from.
                postings.discard()
        return self._fts5.best(connection, table, question)

    def _heaviest(
        self, connection: sqlite3.Connection, table: WordTable, question_words: Sequence[QueryWord]
    ) -> Sequence[QueryWord]:
        """Return the words of a passage that weigh most: repetitions times inverse document frequency."""
        if len(question_words) <= MAX_RANKED_WORDS:
            return question_words
        counts, total = self._counts[table.name].of(connection, [word.expression for word in question_words])
        weights = {
            word: word.times * words.inverse_document_frequency(counts[word.expression], total)
            for word in question_words
            if counts[word.expression]
        }
        return sorted(weights, key=lambda word: (-weights[word], word.expression))[:MAX_RANKED_WORDS]

    def _ready_postings(self, connection: sqlite3.Connection) -> PostingsEngine | None:
        """Return the engine over the file of postings where this state of the index has one."""
        if self._folder is None or not words.names_file(connection):
            return None
        if self._postings is None:
            from knapper.index.bm25 import PostingsEngine  # noqa: PLC0415 - only a large index needs it

            self._postings = PostingsEngine(self._folder)
        return self._postings if self._postings.is_ready(connection) else None

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
        question = WordQuestion(
            words=self._heaviest(connection, words.CHUNKS, query_words(query, self.stemmer)),
            phrases=[term.expression() for term in query.phrases],
            excluded=[term.expression() for term in query.excluded],
            limit=limit,
            allowed=allowed,
            include_log=include_log,
        )
        return self.best(connection, words.CHUNKS, question)

    def names(
        self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None
    ) -> dict[int, float]:
        """Score files whose title, aliases or headings contain words of the query; stop words only as a whole name.

        Returns:
            Scores by file id, 0 to 1: BM25 relative to the best, times the largest share of a name in the query.
        """
        # All words, as a name may consist of stop words alone, such as "To do" or "The Who".
        every = query_words(replace(query, content=query.words), self.stemmer)
        chosen = [replace(word, times=1) for word in self._heaviest(connection, words.NAMES, every)]
        question = WordQuestion(words=chosen, limit=_MAX_NAME_HITS, allowed=allowed)
        scores = self.best(connection, words.NAMES, question)
        best = max(scores.values(), default=0.0)
        if best <= 0:
            return {}
        shares = self._shares(connection, query, list(scores))
        if query.content != query.words:
            meant = _content_files(connection, query, chosen, list(scores))
            scores = {i: score for i, score in scores.items() if i in meant or shares.get(i) == 1}
        return {i: score / best * shares.get(i, 0.0) for i, score in scores.items()}

    def unknown(self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None) -> list[str]:
        """Return the query's words that are in no text or name of an allowed file."""
        unknown = {term.text: term.expression() for term in query.words if not term.prefix}
        for table in words.TABLES:
            known = words.present_expressions(connection, table, list(unknown.values()), allowed=allowed)
            unknown = {word: expression for word, expression in unknown.items() if expression not in known}
        return list(unknown)

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
    connection: sqlite3.Connection, query: Query, chosen: Sequence[QueryWord], files: Sequence[int]
) -> set[int]:
    """Return those of *files* whose names hold one of the chosen words that isn't a stop word."""
    content = {term.expression() for term in query.content}
    match = " OR ".join(word.expression for word in chosen if word.expression in content)
    if not match:
        return set()
    rows = connection.execute(
        "SELECT rowid FROM title_words WHERE title_words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
        (match, json.dumps(files)),
    )
    return {int(i) for (i,) in rows}


def _read_file_names(connection: sqlite3.Connection, files: Sequence[int]) -> list[tuple[int, str]]:
    """Return the titles and aliases of files, each with its file."""
    rows = connection.execute(
        "SELECT json_group_array(json_array(id, json_extract(title_row, '$[0]'), json_extract(title_row, '$[1]')))"
        " FROM files WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(files),),
    )
    title_rows = cast("list[tuple[int, str, str]]", json.loads(rows.fetchone()[0]))
    return [(file, name) for file, title, aliases in title_rows for name in (title, *filter(None, aliases.split("\n")))]


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
