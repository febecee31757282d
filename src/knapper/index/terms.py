"""Choose the words of a query that are worth looking up."""

import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from knapper.index import states
from knapper.index.segment import Query
from knapper.index.stems import CUT, Stemmer

MAX_TERMS = 24
MAX_REPEATS = 3
"""A word said more often than this in a query counts no more."""
CHUNK_POSTINGS = 7_000
"""Rows that a query may make the engine score, about 0.7 microseconds each.

An absolute number, so that a small vault is searched for every word and a large one in bounded time. Of 10,000, 7,000,
5,000 and 3,000 this ranked no worse than the first on the half of the judged queries that chooses, among 52,000 other
chunks, and takes a third less time; ``docs/benchmarks.md`` has the figures."""
NAME_POSTINGS = 3_000
_LARGE = 1_000
"""A count that takes long enough to be remembered, and that a few more notes hardly change."""
_KEPT_GENERATIONS = 64
"""How many writes a large count outlasts: it only weighs words against each other."""
_KEPT_COUNTS = 50_000
_AT_ONCE = 64
"""Counts that one question asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """Hold a word to look up."""

    expression: str
    """As FTS5 reads it."""
    token: str
    """As the index holds it; empty where the expression isn't one whole word of the index."""
    times: int = 1
    """How often it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Hold the chosen words, weightiest first."""

    words: tuple[Word, ...]
    every: bool
    """All words are too frequent: only texts that hold both of the rarest are looked at."""

    def match(self, query: Query) -> str:
        """Write the FTS5 expression, phrases and exclusions of *query* included; empty where nothing is asked for."""
        joined = (" AND " if self.every else " OR ").join(e for w in self.words for e in [w.expression] * w.times)
        wanted = [f"({joined})"] if joined else []
        wanted.extend(term.expression() for term in query.phrases)
        excluded = " OR ".join(term.expression() for term in query.excluded)
        found = " AND ".join(wanted)
        return f"({found}) NOT ({excluded})" if found and excluded else found


class Counts:
    """Count the rows that hold a term; large counts are remembered while the index changes little."""

    def __init__(self, table: str) -> None:
        """Count in the FTS5 table *table*."""
        self._table = table
        self._uid = ""
        self._known: dict[str, tuple[int, int]] = {}
        """By expression: the count, and the generation it was made in."""
        self._total = (0, -1)

    def of(self, connection: sqlite3.Connection, expressions: Sequence[str]) -> tuple[Mapping[str, int], int]:
        """Give the count of each expression, and of all rows."""
        uid, generation = states.state_of(connection)
        if uid != self._uid or len(self._known) > _KEPT_COUNTS:
            self._uid, self._known, self._total = uid, {}, (0, -1)
        if self._total[1] != generation:
            self._total = (_count(connection, "SELECT COUNT(*) FROM chunks"), generation)
        counts: dict[str, int] = {}
        anew: list[str] = []
        for expression in expressions:
            count, made = self._known.get(expression, (0, -1))
            if made != generation and (count < _LARGE or generation - made > _KEPT_GENERATIONS):
                anew.append(expression)
            counts[expression] = count
        for expression, count in self._counted(connection, anew):
            self._known[expression] = (count, generation)
            counts[expression] = count
        return counts, self._total[0]

    def _counted(self, connection: sqlite3.Connection, expressions: Sequence[str]) -> Iterable[tuple[str, int]]:
        """Count several at a time, since each question lets other threads in between."""
        one = f"(SELECT COUNT(*) FROM {self._table} WHERE {self._table} MATCH ?)"
        for start in range(0, len(expressions), _AT_ONCE):
            some = expressions[start : start + _AT_ONCE]
            row = connection.execute(f"SELECT {', '.join([one] * len(some))}", some).fetchone()
            yield from zip(some, map(int, row), strict=True)


def _count(connection: sqlite3.Connection, sql: str, *parameters: str) -> int:
    return int(connection.execute(sql, parameters).fetchone()[0])


def choose(connection: sqlite3.Connection, query: Query, *, stemmer: Stemmer, counts: Counts, budget: int) -> Choice:
    """Choose the words whose postings fit the budget, weightiest first: repeats times inverse frequency.

    A word that doesn't fit is left out, and cheaper ones after it are still taken. So are words that nothing holds.
    """
    said = _said(query, stemmer)
    known, total = counts.of(connection, [word.expression for word in said])
    held = [word for word in said if known[word.expression]]
    ranked = sorted(held, key=lambda one: (-one.times * weight(known[one.expression], total), one.expression))
    ranked = ranked[:MAX_TERMS]
    chosen: list[Word] = []
    left = budget
    for word in ranked:
        if known[word.expression] <= left:
            chosen.append(word)
            left -= known[word.expression]
    if chosen or not ranked:
        return Choice(words=tuple(chosen), every=False)
    rarest = sorted(ranked, key=lambda one: known[one.expression])[:2]
    return Choice(words=tuple(replace(word, times=1) for word in rarest), every=True)


def weight(count: int, total: int) -> float:
    """Give the inverse document frequency that FTS5's BM25 uses.

    Source: SQLite FTS5 documentation, "The bm25() function".
    """
    return max(math.log((total - count + 0.5) / (count + 0.5)), 1e-6) if count <= total else 1e-6


def _said(query: Query, stemmer: Stemmer) -> list[Word]:
    """Give each word, in any of its forms, with how often it is said; the first form stands for all."""
    first: dict[tuple[str, ...], Word] = {}
    repeats = Counter(stem for stems in stemmer.stems([query.plain]) for stem in stems)
    for term, stems in zip(query.words, stemmer.stems([term.text for term in query.words]), strict=True):
        key = (*stems, "*") if term.prefix else tuple(stems)
        if stems and key not in first:
            token = stems[0] if len(key) == 1 and CUT not in stems[0] else ""
            times = min(max(1, min(repeats[stem] for stem in stems)), MAX_REPEATS)
            first[key] = Word(expression=term.expression(), token=token, times=times)
    return list(first.values())
