"""Read one consistent state of the index, rank its chunks and names, and score notes by both.

Has the interface that a search uses, its implementation over SQLite, and the fusion of rankings.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, compress, islice
from typing import TYPE_CHECKING, Literal, Protocol

from knapper.index import database
from knapper.index.documents import Filter, FilterMasks
from knapper.index.store import ChunkRow, IndexStore, floor_key
from knapper.index.tokenizer import TEXT_WORD, Query, Stemmer
from knapper.index.vectors import VectorCache
from knapper.index.words.fulltext import KeywordRanker, NameScores
from knapper.system.arrays import ScoredIds, first_of_groups, np, sizes_of_groups
from knapper.vault import paths
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray


RANKING_THREAD_PREFIX = "ranking"
"""Name prefix of the ranking threads, which wait for work until the index is closed."""


class IndexSnapshot(Protocol):
    """One consistent state of the index; higher scores are better."""

    @property
    def new_vectors_hint(self) -> str:
        """Return how vectors of another model are replaced."""
        ...

    def keyword(self, query: Query, where: Filter, *, limit: int) -> Mapping[int, float]:
        """Return the best chunks by the query's words, best first."""
        ...

    def names(self, query: Query, where: Filter) -> NameScores:
        """Score notes by how much of a title, alias or heading is in the query."""
        ...

    def nearest(self, vector: NDArray[np.float32], where: Filter, *, limit: int) -> Callable[[], Mapping[int, float]]:
        """Start the search for the chunks nearest to a vector; other queries can run meanwhile.

        Returns:
            A function that waits for the chunks and returns them with their cosine, nearest first.
        """
        ...

    def fits(self, vector: NDArray[np.float32]) -> bool:
        """Return whether a query's vector can be compared with the stored ones."""
        ...

    def floor(self) -> float | None:
        """Return the cosine from which on a chunk counts as found by its meaning; None where it isn't known."""
        ...

    def vectors(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return the vectors of those chunks that have one: their ids, and a row for each."""
        ...

    def matching(self, query: Query, ids: Collection[int]) -> set[int]:
        """Return those chunks that contain the query's phrases and nothing that it excludes."""
        ...

    def unknown(self, query: Query, where: Filter) -> Sequence[str]:
        """Return the query's words that are in no text or name of a file that may be found."""
        ...

    def corrections(self, query: Query, where: Filter) -> Mapping[str, str]:
        """Return for unknown words the most similar word of a name."""
        ...

    def note(self, chunk_id: int) -> int:
        """Return the id of a chunk's note."""
        ...

    def chunks(self, note: NotePath) -> list[int]:
        """Return the ids of a note's chunks, without log entries."""
        ...

    def paths(self, notes: Collection[int]) -> dict[int, NotePath]:
        """Return the path of each note."""
        ...

    def representative_chunk(self, note: int) -> int | None:
        """Return the chunk to show for a note of which only the name matched; None where it has no chunks."""
        ...

    def lengths(self, notes: Sequence[int], *, most: int) -> Sequence[int]:
        """Count the chunks of each note, in the given order, up to *most*."""
        ...

    def properties(self, ids: Collection[int]) -> set[int]:
        """Return those chunks that are a note's properties."""
        ...

    def rows(self, ids: Sequence[int]) -> list[ChunkRow]:
        """Read chunks by id in the given order, without those that were removed."""
        ...


class SnapshotCache(Protocol):
    """Opens snapshots of the index, and caches what they share."""

    def snapshot(self, model: str) -> AbstractContextManager[IndexSnapshot]:
        """Open one state of the index for several queries.

        Args:
            model: The model whose vectors are used; empty for none.
        """
        ...

    @property
    def stemmer(self) -> Stemmer:
        """Return what stems the words of queries and names."""
        ...

    def close(self) -> None:
        """Close what is shared."""
        ...


_MIN_PARALLEL_VECTORS = 10_000
"""Vectors from which on comparing them takes much longer than passing that to another thread: 0.1 ms."""


class SqliteSnapshotCache:
    """A thread-safe cache of word counts, filter masks and one model's vectors between snapshots."""

    def __init__(
        self, store: IndexStore, allowed: FilterMasks | None = None, *, min_parallel: int = _MIN_PARALLEL_VECTORS
    ) -> None:
        """Read from *store*; from *min_parallel* vectors on, other threads rank beside the calling one."""
        self._store = store
        self._many = min_parallel
        self._keywords = KeywordRanker(store.database.path.parent)
        self._folder = store.database.path.parent
        self._vectors = VectorCache("", self._folder)
        self.allowed = allowed or FilterMasks()
        # Half the number of processors: parallel multiplications wait for the same memory anyway.
        self._executor = ThreadPoolExecutor(
            max((os.cpu_count() or 1) // 2, 1), thread_name_prefix=RANKING_THREAD_PREFIX
        )

    @contextmanager
    def snapshot(self, model: str) -> Generator[SqliteSnapshot]:
        """Open one state of the index for several queries; *model* is the one whose vectors are used."""
        if model and self._vectors.model != model:
            self._vectors = VectorCache(model, self._folder)
        with self._store.database.snapshot() as connection:
            yield SqliteSnapshot(
                store=self._store,
                connection=connection,
                keywords=self._keywords,
                vector_cache=self._vectors,
                allowed=self.allowed,
                executor=self._executor,
                many=self._many,
            )

    @property
    def stemmer(self) -> Stemmer:
        """Return what stems the words of queries and names."""
        return self._keywords.stemmer

    def close(self) -> None:
        """End the threads, after waiting for their current work."""
        self._executor.shutdown()
        self._keywords.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteSnapshot:
    """One consistent state of the index; see `IndexSnapshot`."""

    store: IndexStore
    connection: sqlite3.Connection
    keywords: KeywordRanker
    vector_cache: VectorCache
    allowed: FilterMasks
    executor: Executor
    many: int

    def keyword(self, query: Query, where: Filter, *, limit: int) -> Mapping[int, float]:
        """Rank by FTS5's BM25."""
        allowed, include_log = self._mask(where), where.include_log
        return self.keywords.chunks(self.connection, query, limit=limit, allowed=allowed, include_log=include_log)

    def names(self, query: Query, where: Filter) -> NameScores:
        """Rank titles, aliases and headings."""
        return self.keywords.names(self.connection, query, allowed=self._mask(where))

    def nearest(self, vector: NDArray[np.float32], where: Filter, *, limit: int) -> Callable[[], Mapping[int, float]]:
        """Multiply it with all vectors in memory; in another thread where they are many, parallel to SQLite's work."""
        self.vector_cache.sync(self.connection)
        allowed = self._mask(where)
        logged = () if where.include_log else [int(i) for (i,) in self.connection.execute(database.LOG_CHUNKS_SQL)]
        ranking = self.vector_cache.begin(vector, limit=limit, allowed=allowed, without=logged)
        # Only what needs no Python: a thread that waits for the interpreter takes half of the time again.
        scans = self.executor.submit(ranking.scan) if ranking.work >= self.many else None

        def read() -> Mapping[int, float]:
            try:
                return ranking.best(scans.result() if scans else ranking.scan())
            except LookupError:  # the file of vectors is damaged: without it, all are read into memory
                self.vector_cache.sync(self.connection)
                return self.vector_cache.rank(vector, limit=limit, allowed=allowed, without=logged)

        return read

    @property
    def new_vectors_hint(self) -> str:
        """Name the command."""
        return "run `knap index --full`"

    def fits(self, vector: NDArray[np.float32]) -> bool:
        """Compare the dimensions."""
        self.vector_cache.sync(self.connection)
        return self.vector_cache.fits(vector)

    def floor(self) -> float | None:
        """Read what was learnt for the model."""
        floor = database.meta_of(self.connection).get(floor_key(self.vector_cache.model))
        return None if floor is None else float(str(floor))

    def vectors(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return them from memory."""
        self.vector_cache.sync(self.connection)
        return self.vector_cache.rows_of(ids)

    def matching(self, query: Query, ids: Collection[int]) -> set[int]:
        """Query the full-text index."""
        return self.keywords.matching(self.connection, query, ids)

    def unknown(self, query: Query, where: Filter) -> Sequence[str]:
        """Query the full-text index."""
        return self.keywords.unknown(self.connection, query, allowed=self._mask(where))

    def corrections(self, query: Query, where: Filter) -> Mapping[str, str]:
        """Compare with the names that share trigrams."""
        unknown = self.unknown(query, where)
        return find_corrections(self.connection, unknown, allowed=self._mask(where)) if unknown else {}

    def note(self, chunk_id: int) -> int:
        """Read it from the chunk's id."""
        return chunk_id >> database.CHUNK_BITS

    def chunks(self, note: NotePath) -> list[int]:
        """Query the range of the note's chunk ids."""
        rows = self.connection.execute(
            "SELECT c.id FROM files f JOIN chunks c ON c.id >= f.id << ?1 AND c.id < (f.id + 1) << ?1"
            " WHERE f.path = ?2 AND c.kind != 'log'",
            (database.CHUNK_BITS, note),
        )
        return [int(i) for (i,) in rows]

    def paths(self, notes: Collection[int]) -> dict[int, NotePath]:
        """Query by file id."""
        rows = self.connection.execute(
            "SELECT id, path FROM files WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(notes)),)
        )
        return {int(i): NotePath(path) for i, path in rows}

    def representative_chunk(self, note: int) -> int | None:
        """Return the first text, or the properties where there is none, but never a log entry."""
        row = self.connection.execute(
            "SELECT id FROM chunks WHERE id >= ? AND id < ? AND kind != 'log'"
            " ORDER BY kind = 'frontmatter', position LIMIT 1",
            database.chunk_range(note),
        ).fetchone()
        return int(row[0]) if row else None

    def lengths(self, notes: Sequence[int], *, most: int) -> Sequence[int]:
        """Count in the range of each note's chunk ids."""
        return self.keywords.lengths(self.connection, notes, most=most)

    def properties(self, ids: Collection[int]) -> set[int]:
        """Query by kind."""
        rows = self.connection.execute(
            "SELECT c.id FROM json_each(?) j CROSS JOIN chunks c ON c.id = j.value WHERE c.kind = 'frontmatter'",
            (json.dumps(sorted(ids)),),
        )
        return {int(i) for (i,) in rows}

    def rows(self, ids: Sequence[int]) -> list[ChunkRow]:
        """Read them from the store."""
        return self.store.rows(ids)

    def _mask(self, where: Filter) -> NDArray[np.bool_] | None:
        return self.allowed.mask(self.connection, where)


def rank_by_words(snapshot: IndexSnapshot, query: Query, where: Filter, *, limit: int) -> Mapping[int, float]:
    """Return the best chunks by BM25, best first: with all phrases, also where they hold none of the other words.

    What such a chunk has for its phrases alone is its score for the whole query, so both rankings are one.
    """
    scores = snapshot.keyword(query, where, limit=limit)
    if not (query.phrases and query.words):
        return scores
    of_phrases = snapshot.keyword(replace(query, words=(), content=()), where, limit=limit)
    ranked = sorted({**of_phrases, **scores}.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:limit])


def name_empty_notes(snapshot: IndexSnapshot, ranking: NoteRanking) -> list[str]:
    """Return a remark for each note that a query names and that can't be shown, as there is nothing in it."""
    named = [note for note, score in ranking.names.items() if score >= 1]
    lengths = snapshot.lengths(named, most=1) if named else ()
    empty = [note for note, length in zip(named, lengths, strict=True) if not length]
    return [f"{paths.quote_path(path)} has this name and is empty" for path in snapshot.paths(empty).values()]


MIN_CORRECTED_LETTERS = 4
"""Minimum characters; a shorter word resembles too many others."""
_MAX_CANDIDATES = 100
_MIN_LIKENESS = 78.0
"""Minimum similarity of a word, of 100."""


def _corrected_words(part: str) -> Iterator[tuple[str, str]]:
    """Yield the letters of a name's part, and of its words, each with how a query spells it.

    ``(obsidian-kanban)`` gives ``obsidiankanban`` with ``obsidian-kanban``, ``obsidian`` and ``kanban``.
    """
    words = TEXT_WORD.findall(part)
    whole = part[part.index(words[0]) : part.rindex(words[-1]) + len(words[-1])] if words else ""
    # What stands between the words may be an operator of queries.
    for word in (*words, *([whole] if len(words) > 1 and not {*whole}.intersection('"*') else ())):
        yield "".join(filter(str.isalnum, word)), word


def find_corrections(
    connection: sqlite3.Connection, words: Sequence[str], *, allowed: NDArray[np.bool_] | None
) -> dict[str, str]:
    """Return for each word the most similar word of a title or alias, where one is similar enough.

    Args:
        connection: The index.
        words: Words that aren't in the index.
        allowed: Mask by file id of the files whose names may be used; None allows all.

    Returns:
        ``{"apearance": "appearance"}``, without words that nothing resembles.
    """
    correction_of: dict[str, str] = {}
    for word in words:
        word_key = paths.name_key(word)
        if len(word_key) < MIN_CORRECTED_LETTERS or not word_key.isalpha():
            continue
        from rapidfuzz import fuzz  # noqa: PLC0415 - 30 ms that only a mistyped word should cost

        # Among the names that share most trigrams with the word.
        pieces = sorted({word_key[at : at + 3] for at in range(len(word_key) - 2)})
        ranked = connection.execute(
            "SELECT rowid FROM name_grams WHERE name_grams MATCH ? ORDER BY bm25(name_grams), rowid",
            (" OR ".join(f'"{piece}"' for piece in pieces),),
        )
        # The filter comes before the limit: names that the client may not find don't take the place of others.
        visible = (int(i) for (i,) in ranked if allowed is None or (i < len(allowed) and allowed[i]))
        rows = connection.execute(
            "SELECT title_row FROM files WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(islice(visible, _MAX_CANDIDATES))),),
        )
        words_by_letters = {
            letters: word
            for (row,) in rows
            for part in paths.name_key(str(json.loads(row)[3])).split()
            for letters, word in _corrected_words(part)
        }
        likeness, best = max(
            ((fuzz.ratio(word_key, letters), word) for letters, word in words_by_letters.items()), default=(0.0, "")
        )
        if likeness >= _MIN_LIKENESS:
            correction_of[word] = best
    return correction_of


Fusion = Literal["convex", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """The constants of the ranking; ``docs/benchmark-notes.md`` describes how they were chosen."""

    dense: float = 0.3
    """Weight of meaning in a chunk's score where the vault knows all words of the question; words have the rest."""
    dense_of_transformer: float = 0.45
    """The same for an embedder that reads texts as a whole."""
    dense_without_words: float = 0.8
    """Weight of meaning where the vault knows none of them, as in another language; it falls with their share."""
    name: float = 0.8
    """Maximum that a note's name adds."""
    ranks: tuple[float, ...] = (1.0, 0.5, 0.25)
    """Weights of a note's best chunks in its score."""
    evenness: float = 0.7
    """How much their sum is divided by what its chunks could weigh: 0 favours long notes, 1 takes the mean."""
    rrf_k: int = 60

    def scales(self) -> list[float]:
        """Return what the sum of a note's best chunks is divided by, where it has one chunk, two, and so on."""
        return [total**self.evenness for total in accumulate(self.ranks)]

    def meaning(self, known: float, *, base: float | None, is_instant: bool) -> float:
        """Return the weight of meaning for a question.

        Args:
            known: Share of its words that the vault knows, 0 to 1.
            base: The weight where it knows all of them; None takes what suits the embedder.
            is_instant: Whether the embedder only adds up vectors of words.
        """
        if base is None:
            base = self.dense if is_instant else self.dense_of_transformer
        return base + max(self.dense_without_words - base, 0.0) * (1 - known)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedScores:
    """The scores of chunks with their parts, each in 0..1: arrays with an element for each chunk."""

    chunks: NDArray[np.int64]
    """Ids, ascending."""
    scores: NDArray[np.float64]
    keyword: NDArray[np.float64]
    """0 where the ranking by words doesn't contain the chunk."""
    dense: NDArray[np.float64]
    """0 where that by meaning doesn't."""
    has_word: NDArray[np.bool_]
    """Whether the ranking by words contains it."""
    cosines: NDArray[np.float64]
    """Not normalised; below all others where the ranking by meaning doesn't contain it."""

    def of(self, chunks: Sequence[int]) -> list[list[float]]:
        """Return the keyword, dense and joint score of each chunk, and its cosine; as of none where it isn't ranked."""
        ids = np.array(chunks, np.int64)
        at = self.chunks.searchsorted(ids)
        is_known = at < len(self.chunks)
        is_known[is_known] = self.chunks[at[is_known]] == ids[is_known]
        places = at[is_known]
        columns = np.zeros((4, len(ids)))
        columns[3] = -np.inf
        for column, part in zip(columns, (self.keyword, self.dense, self.scores, self.cosines), strict=True):
            column[is_known] = part[places]
        return columns.T.tolist()

    def below(self, is_near: NDArray[np.bool_]) -> FusedScores:
        """Return the chunks of the ranking by meaning that aren't near, scored by their cosines alone."""
        is_far = ~is_near & (self.cosines > -np.inf)
        cosines = self.cosines[is_far]
        nothing = np.zeros(len(cosines))
        return FusedScores(
            chunks=self.chunks[is_far],
            scores=cosines,
            keyword=nothing,
            dense=cosines,
            has_word=nothing > 0,
            cosines=cosines,
        )


def normalize_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Normalise scores to 0..1; equal ones all become 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    width = high - low
    if width <= 0:
        return dict.fromkeys(scores, 1.0)
    return {i: (score - low) / width for i, score in scores.items()}


def _normalized(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normalise scores as `normalize_scores` does."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones(len(scores))


def _align(keyword: Mapping[int, float], dense: Mapping[int, float], share: float) -> FusedScores:
    """Bring both rankings into arrays of the same chunks, normalised, and add their scores; *share* is the second's."""
    worded, meant = ScoredIds.of(keyword), ScoredIds.of(dense)
    count = len(worded.ids)
    given = np.concatenate((worded.ids, meant.ids))
    order = given.argsort(kind="stable")
    ordered = given[order]
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    places = np.empty(len(order), np.intp)
    places[order] = is_first.cumsum() - 1
    chunks = ordered[is_first]
    laid_out = np.zeros((2, len(chunks)))
    by_words, by_meaning = laid_out
    of_words, of_meaning = places[:count], places[count:]
    by_words[of_words] = _normalized(worded.scores)
    by_meaning[of_meaning] = _normalized(meant.scores)
    has_word, cosines = np.zeros(len(chunks), np.bool_), np.full(len(chunks), -np.inf)
    has_word[of_words] = True
    cosines[of_meaning] = meant.scores
    return FusedScores(
        chunks=chunks,
        scores=(1 - share) * by_words + share * by_meaning,
        keyword=by_words,
        dense=by_meaning,
        has_word=has_word,
        cosines=cosines,
    )


def fuse_scores(keyword: Mapping[int, float], dense: Mapping[int, float], *, share: float) -> FusedScores:
    """Add the normalised scores of both rankings, the second with the weight *share*; a missing chunk scores 0.

    Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023.
    """
    if not keyword or not dense:
        share = 0.0 if keyword else 1.0
    return _align(keyword, dense, share)


def reciprocal_rank_fusion(rankings: Sequence[Sequence[int]], *, k: int = 60) -> dict[int, float]:
    """Merge rankings by reciprocal rank.

    Two rankings of 3 ids that share 1 give 5 ids.

    Args:
        rankings: Ids of each ranking, best first.
        k: Damping, in ranks; a larger one flattens the head.

    Returns:
        Scores by id, highest at 1.

    Raises:
        ValueError: *k* is below 1.

    Source: Cormack, Clarke and Buettcher, SIGIR 2009, equation 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}, and has to be 1 or more")
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, i in enumerate(ranking, start=1):
            scores[i] += 1 / (k + rank)
    best = max(scores.values(), default=1.0)
    return {i: score / best for i, score in scores.items()}


def fuse_ranks(keyword: Mapping[int, float], dense: Mapping[int, float], *, k: int) -> FusedScores:
    """Fuse the same two rankings by reciprocal rank instead."""
    by_words = sorted(keyword, key=lambda i: -keyword[i])
    by_meaning = sorted(dense, key=lambda i: -dense[i])
    fused, scores = _align(keyword, dense, 0.0), reciprocal_rank_fusion([by_words, by_meaning], k=k)
    return replace(fused, scores=np.array([scores[chunk] for chunk in fused.chunks.tolist()], np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRanking:
    """The scores of the matches of one query, before any row is read: arrays with an element for each note."""

    chunks: FusedScores
    names: Mapping[int, float]
    """By note id: what the name adds."""
    notes: NDArray[np.int64]
    """Ids, each once."""
    scores: NDArray[np.float64]
    lengths: NDArray[np.int64]
    """How many chunks it has, up to as many as there are ranks; 0 where only its name matched."""
    starts: NDArray[np.int64]
    """Where its chunks begin among all; nowhere where only its name matched."""
    stops: NDArray[np.int64]
    is_shown: NDArray[np.bool_] | None = None
    """By chunk: which are shown of a note, where it has any of these; None for all."""

    def best(self, limit: int) -> list[int]:
        """Return the places of the notes with the highest scores, best first; of equal ones the lower id first."""
        scores, places = self.scores, np.arange(len(self.scores))
        if 0 < limit < len(scores):
            places = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
        return places[np.lexsort((self.notes[places], -scores[places]))[:limit]].tolist()

    def matches(self, place: int) -> dict[int, float]:
        """Return the matching chunks of the note at a place, with their scores; empty where only its name matched."""
        own = slice(int(self.starts[place]), int(self.stops[place]))
        scored = zip(self.chunks.chunks[own].tolist(), self.chunks.scores[own].tolist(), strict=True)
        is_shown: list[bool] = [] if self.is_shown is None else self.is_shown[own].tolist()
        return dict(compress(scored, is_shown)) if any(is_shown) else dict(scored)

    def only(self, is_kept: NDArray[np.bool_], is_shown: NDArray[np.bool_]) -> NoteRanking:
        """Return the ranking with these notes, and which chunks are shown of each."""
        return NoteRanking(
            chunks=self.chunks,
            names=self.names,
            notes=self.notes[is_kept],
            scores=self.scores[is_kept],
            lengths=self.lengths[is_kept],
            starts=self.starts[is_kept],
            stops=self.stops[is_kept],
            is_shown=is_shown,
        )


def rank_notes(
    snapshot: IndexSnapshot, chunks: FusedScores, names: Mapping[int, float], weights: RankingWeights
) -> NoteRanking:
    """Score the notes of the matching chunks and names: the best chunks of each, plus what its name adds."""
    groups = chunks.chunks >> database.CHUNK_BITS
    heads = first_of_groups(groups)
    stops = np.append(heads[1:], len(groups))[: len(heads)]
    notes = groups[heads]
    # How many chunks each note has, at least as many as are matching.
    most = len(weights.ranks)
    lengths = np.minimum(stops - heads, most)
    # Those of notes with enough matching chunks don't have to be read.
    short = (lengths < most).nonzero()[0]
    read = snapshot.lengths(notes[short].tolist(), most=most)
    # A chunk that was removed meanwhile by another process still counts.
    lengths[short] = np.maximum(lengths[short], read) if len(short) else 0
    counts = sizes_of_groups(heads, len(groups))
    ordered = chunks.scores[np.lexsort((-chunks.scores, groups))]
    totals = weights.ranks[0] * ordered[heads]
    for rank, weight in enumerate(weights.ranks[1:], 1):
        having = (counts > rank).nonzero()[0]
        totals[having] += weight * ordered[heads[having] + rank]
    scores = totals / np.array(weights.scales())[lengths - 1]
    named, added = np.array([*names], np.int64), weights.name * np.array([*names.values()], np.float64)
    at = notes.searchsorted(named)
    is_found = notes.take(at, mode="clip") == named if len(notes) else np.zeros(len(named), np.bool_)
    scores[at[is_found]] += added[is_found]
    others = named[~is_found]
    nothing = np.zeros(len(others), np.int64)
    return NoteRanking(
        chunks=chunks,
        names=names,
        notes=np.concatenate((notes, others)),
        scores=np.concatenate((scores, added[~is_found])),
        lengths=np.concatenate((lengths, nothing)),
        starts=np.concatenate((heads, nothing)),
        stops=np.concatenate((stops, nothing)),
    )


def keep_matching(ranking: NoteRanking, is_matching: NDArray[np.bool_]) -> NoteRanking:
    """Keep the notes that match the query; scores stay as they are.

    Args:
        ranking: Of all candidates.
        is_matching: By chunk: whether it contains a word of the query, or is near enough in meaning.

    Returns:
        The notes with such a chunk, each with only these, and those whose name matches.
    """
    if is_matching.all():  # as by words alone
        return ranking
    before = np.zeros(len(is_matching) + 1, np.intp)
    is_matching.cumsum(out=before[1:])
    is_kept = before[ranking.stops] > before[ranking.starts]
    # Few are left over, so that looking these up is quicker than all names.
    for place in (~is_kept).nonzero()[0].tolist():
        is_kept[place] = int(ranking.notes[place]) in ranking.names
    return ranking.only(is_kept, is_matching)


def rank_nearest(chunks: FusedScores) -> NoteRanking:
    """Rank notes by the cosine of their nearest chunk alone, for an offer where nothing matches."""
    groups = chunks.chunks >> database.CHUNK_BITS
    heads = first_of_groups(groups)
    return NoteRanking(
        chunks=chunks,
        names={},
        notes=groups[heads],
        scores=np.maximum.reduceat(chunks.scores, heads) if len(heads) else np.zeros(0),
        lengths=np.zeros(len(heads), np.int64),
        starts=heads,
        stops=np.append(heads[1:], len(groups))[: len(heads)],
    )
