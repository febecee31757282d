"""Rank chunks and names by the words of a query with BM25, and correct mistyped words."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from knapper.index import database, tokenizer
from knapper.index.documents import StateCache
from knapper.index.tokenizer import CUT_MARK, Query, Stemmer, Term
from knapper.index.words import fts5
from knapper.index.words.fts5 import Fts5Engine, QueryWord, WordQuestion, WordTable
from knapper.system.arrays import ScoredIds, first_of_groups, np, sizes_of_groups

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from knapper.index.words.bm25 import PostingsEngine
    from knapper.index.words.postings import NameStems

MAX_RANKED_WORDS = 24
"""Words of a passage by which it is ranked, those that weigh most; with all words the joint ranking is worse.

Independent of the vault's size, and told in the answer; ``docs/benchmark-notes.md`` has the figures."""
MAX_REPEATS = 3
"""Limit for repetitions of a word in a query."""
_LARGE_COUNT = 1_000
"""From this count on counting is slow enough to be cached, and a few more notes hardly change it."""
_MAX_COUNT_AGE_GENERATIONS = 64
"""Writes after which a large count is renewed; it only weighs words against each other."""
_MAX_CACHED_COUNTS = 50_000


class RowCounts:
    """Counts of the rows with a term; large ones are cached while the index changes little."""

    def __init__(self, table: WordTable) -> None:
        """Count rows of *table*."""
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
        total = self._total
        if total[1] != generation:
            # Kept apart from what another thread may put in its place.
            self._total = total = (_fetch_count(connection, "SELECT COUNT(*) FROM chunks"), generation)
        counts: dict[str, int] = {}
        uncounted: list[str] = []
        for expression in expressions:
            count, counted_in = self._known.get(expression, (0, -1))
            if counted_in != generation and (
                count < _LARGE_COUNT or generation - counted_in > _MAX_COUNT_AGE_GENERATIONS
            ):
                uncounted.append(expression)
            counts[expression] = count
        for expression, count in fts5.count_rows(connection, self._table, uncounted, allowed=None).items():
            self._known[expression] = (count, generation)
            counts[expression] = count
        return counts, total[0]


def _fetch_count(connection: sqlite3.Connection, sql: str, *parameters: str) -> int:
    return int(connection.execute(sql, parameters).fetchone()[0])


def query_words(query: Query, stemmer: Stemmer) -> list[QueryWord]:
    """Return each word with its number of repetitions in any form; the first form is used for all."""
    plain = tokenizer.fold_letters(query.plain)
    return _repeated_words(query.content, Counter(stemmer.stems([plain])[0]), stemmer)


def _repeated_words(terms: Sequence[Term], repeats: Mapping[str, int], stemmer: Stemmer) -> list[QueryWord]:
    words_by_stems: dict[tuple[str, ...], QueryWord] = {}
    for term, stems in zip(terms, stemmer.stems([term.text for term in terms]), strict=True):
        key = (*stems, "*") if term.prefix else tuple(stems)
        if stems and key not in words_by_stems:
            token = stems[0] if len(key) == 1 and CUT_MARK not in stems[0] else ""
            times = min(max(1, min(map(repeats.__getitem__, stems))), MAX_REPEATS)
            words_by_stems[key] = QueryWord(
                expression=term.expression(), token=token, times=times, stems=() if term.prefix else tuple(stems)
            )
    return list(words_by_stems.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadQuery:
    """A query's words as the ranker looks for them, which it needs several times for one question."""

    query: Query
    stems: Sequence[str]
    """Of all that it asks for, in order, without those that only end a run."""
    content: Sequence[QueryWord]
    every: Sequence[QueryWord]
    """Those without a meaning, too."""

    @classmethod
    def of(cls, query: Query, stemmer: Stemmer) -> _ReadQuery:
        """Stem a query's words."""
        text = tokenizer.fold_letters(query.plain)
        plain = stemmer.stems([text])[0]
        repeats = Counter(plain)
        every = content = _repeated_words(query.words, repeats, stemmer)
        if query.content != query.words:
            content = _repeated_words(query.content, repeats, stemmer)
        segmented = tokenizer.segment(text)
        stems = plain if segmented == text else stemmer.stems([segmented])[0]
        return cls(query=query, stems=tokenizer.without_run_ends(stems), content=content, every=every)


_PARTLY_NAMED = 0.4
"""Factor for a name of which the query only holds words, as it rarely means that note."""
_OTHER_SPELLING = 0.8
"""Factor for a name of the query's words in another spelling, such as C# for ``C++``, beside one that is spelled so."""
_STEM_MARK = "\x1f"
"""Between stems, which never contain it."""


_NameMatch = tuple[float, bool]
"""How well a query names a note, 0 to 1, and whether it holds all words of the name; a plain tuple, as each question
makes a hundred."""
_NO_NAME: _NameMatch = (0.0, False)


class NamingQuestion:
    """A query, ready to be compared with names."""

    def __init__(self, stems: Sequence[str], content: Collection[str], rareness: Mapping[QueryWord, float]) -> None:
        """Prepare the query.

        Args:
            stems: Of its words, in order.
            content: The expressions of those words that aren't stop words.
            rareness: Of each word, 0 to 1.
        """
        self._ordered = stems
        self._stems = frozenset(stems)
        self._length = len(stems)
        self._text = _STEM_MARK.join(("", *stems, ""))
        self._single = {
            word.stems[0]: share
            for word, share in rareness.items()
            if len(word.stems) == 1 and word.expression in content
        }
        self._totals: dict[frozenset[str], float] = {}
        """Of the single words, by the stems that a name shares with the query: many names share the same."""
        self._content, self._others = list[tuple[frozenset[str], float]](), list[tuple[frozenset[str], float]]()
        for word, share in rareness.items():
            if word.expression not in content:
                self._others.append((frozenset(word.stems), share))
            elif len(word.stems) > 1:
                self._content.append((frozenset(word.stems), share))

    @property
    def stems(self) -> Collection[str]:
        """Return all stems by which it finds names."""
        return self._stems.union(*(stems for stems, _ in (*self._content, *self._others)))

    def best_of(self, named: NameStems, numbers: Mapping[str, int]) -> dict[int, _NameMatch]:
        """Score files as `best` does, all at once.

        Args:
            named: The stems of their names.
            numbers: Those of this query's stems that are in any name.
        """
        known = sorted((numbers[stem], self._single.get(stem, 0.0)) for stem in self._stems if stem in numbers)
        if not known or not named.files:
            return {}
        stems = named.stems
        # One more that no stem has, so that each has a place.
        own = np.array([*(number for number, _ in known), np.iinfo(np.int32).max], np.int32)
        at = own.searchsorted(stems)
        is_shared = own[at] == stems
        heads = first_of_groups(named.names)
        sizes = sizes_of_groups(heads, len(stems))
        counts = np.add.reduceat(is_shared, heads, dtype=np.intp)
        weights = np.array([*(share for _, share in known), 0.0])[at]
        weights[named.is_repeated] = 0.0
        totals = np.add.reduceat(weights * is_shared, heads)
        for word_stems, share in self._content:
            holds = np.ones(len(heads), np.bool_)
            for stem in word_stems:
                holds &= np.logical_or.reduceat(stems == numbers.get(stem, -1), heads)
            totals += share * holds
        scores = np.minimum(totals, 1.0) * (_PARTLY_NAMED * counts / sizes)
        is_whole = counts == sizes
        ordered = [numbers.get(stem, -1) for stem in self._ordered]
        for place in is_whole.nonzero()[0].tolist():
            name = stems[heads[place] : heads[place] + sizes[place]].tolist()
            score = self._score_whole(name, ordered, float(totals[place]), numbers)
            scores[place] = scores[place] if score is None else score
        first_names = heads.searchsorted(named.file_heads)
        best = np.maximum.reduceat(scores, first_names)
        if is_whole.any():
            is_best = scores == best.repeat(sizes_of_groups(first_names, len(scores)))
            wholes = np.logical_or.reduceat(is_whole & is_best, first_names)
        else:
            wholes = np.zeros(len(best), np.bool_)
        return dict(zip(named.files, zip(best.tolist(), wholes.tolist(), strict=True), strict=True))

    def _score_whole(
        self, name: Sequence[int], ordered: Sequence[int], total: float, numbers: Mapping[str, int]
    ) -> float | None:
        """Score a name of which the query, *ordered* by number, holds all stems; None where not in this order."""
        length = len(name)
        if not any(ordered[at : at + length] == name for at in range(len(ordered) - length + 1)):
            return None
        if length == self._length:
            return 1.0
        if not total:
            own = {*name}
            total = sum(share for stems, share in self._others if own.issuperset(numbers.get(s, -1) for s in stems))
        return min(total, 1.0)

    def best(self, names: Iterable[Sequence[str]]) -> _NameMatch:
        """Score a file by the best of its names."""
        found = [self._score(name, shared) for name in names if (shared := self._stems.intersection(name))]
        return max(found) if found else _NO_NAME

    def _score(self, name: Sequence[str], shared: frozenset[str]) -> _NameMatch:
        """Score a name by its stems, of which *shared* are the query's, and tell whether the query holds all of them.

        A query that is nothing but the name gives 1. One that holds the name as it is written gives the rareness of its
        words, added up to 1 at most: common words are in many a question that doesn't mean the note. One that holds
        only some of its words, or not in order, gives the rareness of these, times their share and ``_PARTLY_NAMED``.
        Stop words count only in a name of nothing else.
        """
        count = sum(map(shared.__contains__, name))
        is_whole = count == len(name)
        stands = is_whole and _STEM_MARK.join(("", *name, "")) in self._text
        if stands and len(name) == self._length:
            return 1.0, True
        total = self._totals.get(shared)
        if total is None:
            total = self._totals[shared] = sum(self._single.get(stem, 0.0) for stem in shared)
        if self._content:
            total += sum(share for stems, share in self._content if stems.issubset(name))
        if stands and not total:
            total = sum(share for stems, share in self._others if stems.issubset(name))
        share = 1.0 if stands else _PARTLY_NAMED * count / len(name)
        return min(total, 1.0) * share, is_whole


MAX_NAME_HITS = 100
"""Names that count for a question: those with most of its words, rare ones first."""
_MAX_CACHED_TOTALS = 32
"""Filters for which the number of allowed chunks is cached."""
_MAX_CACHED_NAMES = 10_000
"""Files whose names' stems are cached, about 0.5 kB each."""
_NameStems = Sequence[Sequence[str]]
"""The stems of each name of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameScores:
    """How well a query names notes."""

    by_file: dict[int, float]
    """By file id, 0 to 1; see `NamingQuestion.best`. 0 where only a heading contains a word."""
    is_cut: bool = False
    """Whether more names than ``MAX_NAME_HITS`` contain a word of it, and the others didn't count."""


class KeywordRanker:
    """A ranker of one index's chunks and notes by words."""

    def __init__(self, folder: Path | None = None) -> None:
        """Start with an empty cache; *folder* is the index's own, where a large one has its file of postings."""
        self.stemmer = Stemmer()
        self._folder = folder
        self._fts5 = Fts5Engine()
        self._postings: PostingsEngine | None = None
        self._counts = {table.name: RowCounts(table) for table in fts5.TABLES}
        self._names = StateCache[dict[int, _NameStems]](1)
        self._totals = StateCache[int](_MAX_CACHED_TOTALS)
        self._ready: tuple[Mapping[str, object], PostingsEngine | None] = {}, None
        """What the index said of itself when it was last asked, in one snapshot the very same object, and the engine
        over its file, where it has one."""
        self._read: _ReadQuery | None = None
        """The last query."""

    def close(self) -> None:
        """Close the stemmer and the file of postings."""
        self.stemmer.close()
        if self._postings is not None:
            self._postings.close()

    def _read_words(self, query: Query) -> _ReadQuery:
        known = self._read
        if known is None or known.query is not query:
            self._read = known = _ReadQuery.of(query, self.stemmer)
        return known

    def best(self, connection: sqlite3.Connection, table: WordTable, question: WordQuestion) -> Mapping[int, float]:
        """Return the rows with the highest scores, best first, from whichever engine is ready."""
        postings = self._ready_postings(connection)
        if postings is not None:
            try:
                return postings.best(connection, table, question)
            except (LookupError, ValueError):
                # The derived file is damaged: the answer comes from what it was derived from.
                self._discard(postings)
        return self._fts5.best(connection, table, question)

    def _heaviest(
        self, connection: sqlite3.Connection, table: WordTable, question_words: Sequence[QueryWord]
    ) -> Sequence[QueryWord]:
        """Return the words of a passage that weigh most: repetitions times inverse document frequency."""
        if len(question_words) <= MAX_RANKED_WORDS:
            return question_words
        counts, total = self._counts[table.name].of(connection, [word.expression for word in question_words])
        weights = {
            word: word.times * fts5.inverse_document_frequency(counts[word.expression], total)
            for word in question_words
            if counts[word.expression]
        }
        return sorted(weights, key=lambda word: (-weights[word], word.expression))[:MAX_RANKED_WORDS]

    def _ready_postings(self, connection: sqlite3.Connection) -> PostingsEngine | None:
        """Return the engine over the file of postings where this state of the index has one."""
        if self._folder is None:
            return None
        meta, (seen, ready) = database.meta_of(connection), self._ready
        if meta is seen:
            return ready
        ready = None
        if fts5.names_file(connection):
            if self._postings is None:
                from knapper.index.words.bm25 import PostingsEngine  # noqa: PLC0415 - only a large index needs it

                self._postings = PostingsEngine(self._folder)
            ready = self._postings if self._postings.is_ready(connection) else None
        self._ready = meta, ready
        return ready

    def _discard(self, postings: PostingsEngine) -> None:
        """Do without a file that turned out to be damaged."""
        postings.discard()
        self._ready = {}, None

    def chunks(
        self,
        connection: sqlite3.Connection,
        query: Query,
        *,
        limit: int,
        allowed: NDArray[np.bool_] | None,
        include_log: bool = False,
    ) -> Mapping[int, float]:
        """Return the best chunks by BM25, best first; those of the program's log only with *include_log*."""
        question = WordQuestion(
            words=self._heaviest(connection, fts5.CHUNKS, self._read_words(query).content),
            phrases=[term.expression() for term in query.phrases],
            excluded=[term.expression() for term in query.excluded],
            limit=limit,
            allowed=allowed,
            include_log=include_log,
        )
        return self.best(connection, fts5.CHUNKS, question)

    def names(
        self,
        connection: sqlite3.Connection,
        query: Query,
        *,
        allowed: NDArray[np.bool_] | None,
        rareness: Callable[[Sequence[QueryWord]], Mapping[QueryWord, float]] | None = None,
    ) -> NameScores:
        """Score files whose title, aliases or headings contain words of the query; stop words only as a whole name.

        Args:
            connection: The index.
            query: What is looked for.
            allowed: Mask by file id of the files whose names may be found; None allows all.
            rareness: Tells how rare words are in the texts of these files; None counts them in the index.
        """
        # All words, as a name may consist of stop words alone, such as "To do" or "The Who".
        read = self._read_words(query)
        chosen = [
            word if word.times == 1 else replace(word, times=1)
            for word in self._heaviest(connection, fts5.NAMES, read.every)
        ]
        question = WordQuestion(words=chosen, limit=MAX_NAME_HITS + 1, allowed=allowed)
        ranked: list[int] = ScoredIds.of(self.best(connection, fts5.NAMES, question)).ids.tolist()
        files = ranked[:MAX_NAME_HITS]
        if not files:
            return NameScores(by_file={})
        naming = NamingQuestion(
            stems=read.stems,
            content=(content := {term.expression() for term in query.content}),
            rareness=rareness(chosen) if rareness else self._rareness(connection, chosen, allowed=allowed),
        )
        matches = self._match_names(connection, naming, files)
        others = _find_other_spellings(connection, query, [i for i, (score, _) in matches.items() if score >= 1])
        matches = {**matches, **dict.fromkeys(others, (_OTHER_SPELLING, True))}
        if query.content != query.words:
            meant = self._holding(connection, [word for word in chosen if word.expression in content], files)
            matches = {i: match for i, match in matches.items() if i in meant or match[1]}
        return NameScores(by_file={i: score for i, (score, _) in matches.items()}, is_cut=len(ranked) > MAX_NAME_HITS)

    def _holding(
        self, connection: sqlite3.Connection, words: Sequence[QueryWord], files: Sequence[int]
    ) -> Collection[int]:
        """Return those of *files* whose names or headings hold one of the words."""
        postings = self._ready_postings(connection)
        if postings is not None:
            try:
                return postings.holding(connection, words, files)
            except (LookupError, ValueError):
                self._discard(postings)
        match = " OR ".join(word.expression for word in words)
        if not match:
            return ()
        rows = connection.execute(
            "SELECT rowid FROM title_words WHERE title_words MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
            (match, json.dumps(files)),
        )
        return {int(i) for (i,) in rows}

    def _rareness(
        self, connection: sqlite3.Connection, question: Sequence[QueryWord], *, allowed: NDArray[np.bool_] | None
    ) -> dict[QueryWord, float]:
        """Return how rare words are in the texts of the allowed files; nothing tells of words in the others."""
        whole = [word for word in question if word.stems]
        counts, total = self._count_chunks(connection, whole, allowed=allowed)
        return {word: fts5.rareness(counts[word.expression], total) for word in whole}

    def _count_chunks(
        self, connection: sqlite3.Connection, question: Sequence[QueryWord], *, allowed: NDArray[np.bool_] | None
    ) -> tuple[Mapping[str, int], int]:
        """Count the allowed chunks with each word, by its expression, and all of them."""
        postings = self._ready_postings(connection)
        if postings is not None:
            try:
                return postings.counts(connection, fts5.CHUNKS, question, allowed=allowed)
            except (LookupError, ValueError):
                self._discard(postings)
        expressions = [word.expression for word in question]
        if allowed is None:
            return self._counts[fts5.CHUNKS.name].of(connection, expressions)
        counts = fts5.count_rows(connection, fts5.CHUNKS, expressions, allowed=allowed)
        mask_name = hashlib.sha256(allowed.tobytes()).hexdigest()

        def count_allowed() -> int:
            condition = fts5.allowed_condition(connection, allowed, shift=database.CHUNK_BITS)
            return _fetch_count(connection, f"SELECT COUNT(*) FROM chunks WHERE true{condition}")

        return counts, self._totals.get(connection, mask_name, count_allowed)

    def lengths(self, connection: sqlite3.Connection, files: Sequence[int], *, most: int) -> Sequence[int]:
        """Count the chunks of each file, in the given order, up to *most*."""
        postings = self._ready_postings(connection)
        if postings is not None:
            try:
                return postings.lengths(connection, fts5.CHUNKS, files, most=most)
            except (LookupError, ValueError):
                self._discard(postings)
        rows = connection.execute(
            "SELECT f.value, (SELECT COUNT(*) FROM (SELECT 1 FROM chunks c"
            " WHERE c.id >= f.value << ?1 AND c.id < (f.value + 1) << ?1 LIMIT ?2)) FROM json_each(?3) f",
            (database.CHUNK_BITS, most, json.dumps(files)),
        )
        count_of: Mapping[int, int] = dict(rows)
        return [int(count_of[file]) for file in files]

    def unknown(self, connection: sqlite3.Connection, query: Query, *, allowed: NDArray[np.bool_] | None) -> list[str]:
        """Return the query's words that are in no text or name of an allowed file."""
        texts = [term.text for term in query.words if not term.prefix]
        unknown = {
            text: QueryWord(
                expression=Term(text=text).expression(),
                token=stems[0] if len(stems) == 1 and CUT_MARK not in stems[0] else "",
            )
            for text, stems in zip(texts, self.stemmer.stems(texts), strict=True)
        }
        for table in fts5.TABLES:
            known = self._present(connection, table, list(unknown.values()), allowed=allowed) if unknown else ()
            unknown = {text: word for text, word in unknown.items() if word.expression not in known}
        return list(unknown)

    def _present(
        self,
        connection: sqlite3.Connection,
        table: WordTable,
        words: Sequence[QueryWord],
        *,
        allowed: NDArray[np.bool_] | None,
    ) -> set[str]:
        """Return the FTS5 expressions of those words that a row, of an allowed file, matches."""
        postings = self._ready_postings(connection)
        expressions, present = {word.expression for word in words}, set[str]()
        if postings is not None:
            try:
                counts, _ = postings.counts(connection, table, [word for word in words if word.token], allowed=allowed)
                present = {expression for expression, count in counts.items() if count}
                expressions.difference_update(counts)
            except (LookupError, ValueError):
                self._discard(postings)
        if not expressions:
            return present
        return present | fts5.present_expressions(connection, table, sorted(expressions), allowed=allowed)

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

    def _match_names(
        self, connection: sqlite3.Connection, naming: NamingQuestion, files: Sequence[int]
    ) -> Mapping[int, _NameMatch]:
        """Score the names of files, from the derived file as far as possible, in the given order."""
        postings = self._ready_postings(connection)
        matches: dict[int, _NameMatch] = {}
        stored: Collection[int] = ()
        if postings is not None:
            try:
                named, numbers = postings.name_stems(connection, files, naming.stems)
                stored = {*named.files}
                matches = naming.best_of(named, numbers)
            except (LookupError, ValueError):
                self._discard(postings)
        others = [file for file in files if file not in stored]
        if others:
            cached = self._names.get(connection, "", dict)
            cached_stems = {i: stems_of_file for i in others if (stems_of_file := cached.get(i)) is not None}
            names = (
                fts5.read_names(connection, [i for i in others if i not in cached_stems])
                if len(cached_stems) < len(others)
                else []
            )
            new_stems: defaultdict[int, list[Sequence[str]]] = defaultdict(list)
            for (i, _), stems in zip(names, self.stemmer.stems([name for _, name in names]), strict=True):
                new_stems[i].extend([tokenizer.without_run_ends(stems)] if stems else [])
            if len(cached) > _MAX_CACHED_NAMES:
                cached.clear()
            cached.update(new_stems)
            stems_by_file = {**cached_stems, **new_stems}
            matches |= {file: naming.best(stems_by_file.get(file, ())) for file in others}
        return {file: matches.get(file, _NO_NAME) for file in files}


def _find_other_spellings(connection: sqlite3.Connection, query: Query, files: Sequence[int]) -> Collection[int]:
    """Return those of *files*, which the query names, that it spells otherwise; none where none is spelled so."""
    if len(files) < 2:
        return ()
    spelling = _spell(tokenizer.segment(query.plain))
    exact = {i for i, name in fts5.read_names(connection, files) if _spell(name) == spelling}
    return [i for i in files if i not in exact] if exact else ()


def _spell(name: str) -> str:
    return " ".join(name.casefold().split())


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
