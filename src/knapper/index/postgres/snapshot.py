"""Rank a published vault's chunks in PostgreSQL: exact BM25 and nearest vectors, each with its filter in the query."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from knapper.index import database
from knapper.index.documents import Filter, FilterMasks, StateCache
from knapper.index.postgres import rows
from knapper.index.postgres.lists import Hits, RankedWord, StateLists, WordLists
from knapper.index.postgres.rows import GAP
from knapper.index.snapshot import find_corrections
from knapper.index.tokenizer import Query, Stemmer, Term
from knapper.index.words import fts5, fulltext
from knapper.index.words.fts5 import CHUNKS, QueryWord, inverse_document_frequency
from knapper.index.words.fulltext import KeywordRanker, NameScores
from knapper.index.words.postings import K1
from knapper.system.arrays import np
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from knapper.index.postgres.connection import Session
    from knapper.index.postgres.schema import TableState
    from knapper.index.store import ChunkRow

_MAX_CACHED_MASKS: Final = 32
_GRAPH_SHARE: Final = 0.25
"""Share of the files that a filter has to leave for the graph to be followed; for less, all vectors are compared."""
_GRAPH_CANDIDATES: Final = 700
"""How many neighbours the graph is followed for (``hnsw.ef_search``): at a million vectors .956 of the nearest ten
in 13 ms; the 1,000 that pgvector allows at most find .962 in 20."""
_FURTHER: Final = 32
"""Vectors beyond the limit that are compared exactly, as the server compares them in half precision."""
_LAST_CHARACTER: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedState:
    """One state of a published vault: the database's, and the local mirror of its records."""

    session: Session
    meta: Mapping[str, str]
    at: TableState
    mirror: sqlite3.Connection


OpenState = Callable[[], AbstractContextManager[PublishedState]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileIds:
    """The files' ids in the mirror, ascending, and in the database."""

    local: NDArray[np.int64]
    stored: NDArray[np.int64]


class PublishedSnapshots:
    """A thread-safe cache of filter masks between snapshots of a published vault."""

    def __init__(self, allowed: FilterMasks, open_state: OpenState, mirror: Path) -> None:
        """Rank in the states that *open_state* opens; *mirror* is the folder of the local copy."""
        self._open_state = open_state
        self.keywords = KeywordRanker(mirror)
        self.lists = WordLists()
        self.allowed = allowed
        self.masks: StateCache[bytes] = StateCache(_MAX_CACHED_MASKS)
        self.ids: StateCache[_FileIds] = StateCache(1)

    @contextmanager
    def snapshot(self, model: str) -> Generator[PublishedSnapshot]:
        """Open one state of the vault for several queries; *model* is the one whose vectors are used."""
        with self._open_state() as state:
            yield PublishedSnapshot(cache=self, state=state, model=model)

    @property
    def stemmer(self) -> Stemmer:
        """Return what stems the words of queries and names."""
        return self.keywords.stemmer

    def close(self) -> None:
        """Close what splits words."""
        self.keywords.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSnapshot:
    """One consistent state of a published vault; see `knapper.index.snapshot.IndexSnapshot`."""

    cache: PublishedSnapshots
    state: PublishedState
    model: str
    _known_vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict[int, "NDArray[np.float32]"], repr=False)
    """Vectors that were read already: ranking and the hits' cosines need the same ones."""

    def keyword(self, query: Query, where: Filter, *, limit: int) -> Mapping[int, float]:
        """Add up the lists of the words in memory; what isn't one whole token is found in SQL."""
        rows = self._find_tokens(query)
        words = self._rank(fulltext.query_words(query, self.cache.stemmer), rows)
        content = sorted(words, key=lambda one: -one.gain)[: fulltext.MAX_RANKED_WORDS]
        phrases: list[RankedWord] = []
        for term in query.phrases:
            hits = self._find_hits(self._stems(term), rows, prefix=term.prefix)
            phrases.append(RankedWord(gain=self._gain(len(hits.chunks)), hits=hits, is_phrase=True))
        ranked = [one for one in (*content, *phrases) if one.token or (one.hits and one.hits.chunks)]
        if not ranked or any(one.hits is not None and not one.hits.chunks for one in phrases):
            return {}
        excluded: list[RankedWord] = []
        for term in query.excluded:
            stems = self._stems(term)
            if len(stems) == 1 and not term.prefix:
                token, count = rows.get(stems[0], (0, 0))
                excluded += [RankedWord(gain=1.0, token=token, count=count)] if count else []
            else:
                hits = self._find_hits(stems, rows, prefix=term.prefix)
                excluded += [RankedWord(gain=1.0, hits=hits)] if hits.chunks else []
        with self._lists() as lists:
            norms = self._norms(lists, where)
            return lists.best(self.state.session, ranked, norms, excluded=excluded, limit=limit)

    def _lists(self) -> AbstractContextManager[StateLists]:
        return self.cache.lists.at(self.state.session, self.state.at, self.state.meta)

    def _norms(self, lists: StateLists, where: Filter) -> NDArray[np.float64]:
        """Return the norms of the chunks that a filter leaves; the policy is part of it.

        The mirror's state is part of their name: while another process reads all records again, it lacks files.
        """
        name = "" if where.trivial else f"{database.state_of(self.state.mirror)}|{where.cache_key}"
        return lists.norms(self.state.session, name, lambda: self._shown(where), has_log=where.include_log)

    def names(self, query: Query, where: Filter) -> NameScores:
        """Rank titles, aliases and headings in the mirror."""
        names = self.cache.keywords.names(
            self.state.mirror,
            query,
            allowed=self._mask(where),
            rareness=lambda question: self._rareness(question, self._find_tokens(query), where),
        )
        sql = "SELECT id, inode FROM files WHERE id IN (SELECT value FROM json_each(?))"
        stored_of = dict(self.state.mirror.execute(sql, (json.dumps([*names.by_file]),)).fetchall())
        return replace(names, by_file={stored_of[i]: score for i, score in names.by_file.items()})

    def nearest(self, vector: NDArray[np.float32], where: Filter, *, limit: int) -> Callable[[], Mapping[int, float]]:
        """Follow the graph where the filter leaves enough of it; compare all vectors where it gives too few."""
        if self.state.meta.get("model") != self.model or not self._dimensions or len(vector) != self._dimensions:
            return dict
        found: list[tuple[Any, ...]] = []
        if self._follows_graph(where):
            # The graph goes on where the filter or the role's policy drops what it gave. It gives up after a number of
            # vectors that the server sets, so a role that sees few of them gets too few rows.
            self._select("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)", [])
            self._select("SELECT set_config('hnsw.ef_search', %s, true)", [str(_GRAPH_CANDIDATES)])
            found = self._nearest_of(f"(vector::halfvec({self._dimensions}))", vector, where, limit + _FURTHER)
        if len(found) < limit + _FURTHER:
            found = self._nearest_of("vector", vector, where, limit + _FURTHER)
        read = rows.read_vectors([wire for _, wire in found])
        self._known_vectors.update(zip((int(i) for i, _ in found), read, strict=True))
        cosines = read @ vector if found else np.empty(0)
        scored = [(float(cosine), int(i)) for cosine, (i, _) in zip(cosines.tolist(), found, strict=True) if cosine > 0]
        ranked = sorted(scored, key=lambda one: (-one[0], one[1]))[:limit]
        return lambda: {i: cosine for cosine, i in ranked}

    def _nearest_of(self, column: str, vector: NDArray[np.float32], where: Filter, limit: int) -> list[tuple[Any, ...]]:
        conditions, values = self._conditions("chunk", where)
        literal = f"[{','.join(map(repr, vector.astype(np.float16).astype(float).tolist()))}]"
        sql = (
            f"SELECT chunk, vector FROM vectors WHERE {' AND '.join(conditions)}"
            f" ORDER BY {column} <#> %s::halfvec LIMIT %s"
        )
        return self._select(sql, [*values, literal, limit], binary=True)

    @property
    def new_vectors_hint(self) -> str:
        """Name both machines."""
        return "use the model here that the machine with the files uses; for another, run `knap index --full` there"

    def fits(self, vector: NDArray[np.float32]) -> bool:
        """Compare model and dimensions."""
        return self.state.meta.get("model") == self.model and self._dimensions in {0, len(vector)}

    def floor(self) -> float | None:
        """Read what the machine with the files learnt for the model."""
        known = self.state.meta.get("floor") if self.state.meta.get("model") == self.model else ""
        return float(known) if known else None

    def vectors(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Read them from the database."""
        if not ids or self.state.meta.get("model") != self.model:
            return [], np.empty((0, 0), np.float32)
        known = self._known_vectors
        missing = [i for i in ids if i not in known]
        if missing:
            found = self._select("SELECT chunk, vector FROM vectors WHERE chunk = ANY(%s)", [missing], binary=True)
            read = rows.read_vectors([wire for _, wire in found])
            known.update(zip((int(i) for i, _ in found), read, strict=True))
        present = [i for i in ids if i in known]
        return present, np.stack([known[i] for i in present]) if present else np.empty((0, 0), np.float32)

    def matching(self, query: Query, ids: Collection[int]) -> set[int]:
        """Look the phrases up in these chunks alone."""
        rows = self._find_tokens(query)
        remaining = {*ids}
        for term in (*query.phrases, *query.excluded):
            holding = {*self._find_hits(self._stems(term), rows, prefix=term.prefix, within=list(remaining)).chunks}
            remaining = remaining - holding if term in query.excluded else remaining & holding
        return remaining

    def unknown(self, query: Query, where: Filter) -> Sequence[str]:
        """Look for the words in the mirror's names, and then in the database's texts."""
        terms = {term.text: term for term in query.words if not term.prefix}
        expressions = {text: term.expression() for text, term in terms.items()}
        named = fts5.present_expressions(
            self.state.mirror, fts5.NAMES, list(expressions.values()), allowed=self._mask(where)
        )
        unnamed = {text: term for text, term in terms.items() if expressions[text] not in named}
        rows = self._find_tokens(query) if unnamed else {}
        return [text for text, term in unnamed.items() if not self._is_present(term, where, rows)]

    def corrections(self, query: Query, where: Filter) -> Mapping[str, str]:
        """Compare with the names in the mirror that share trigrams."""
        unknown = self.unknown(query, where)
        return find_corrections(self.state.mirror, unknown, allowed=self._mask(where)) if unknown else {}

    def note(self, chunk_id: int) -> int:
        """Read it from the chunk's id."""
        return chunk_id >> database.CHUNK_BITS

    def chunks(self, note: NotePath) -> list[int]:
        """Query the range of the note's chunk ids."""
        rows = self._select(
            "SELECT c.id FROM files f JOIN chunks c ON c.id >= f.id << %s AND c.id < (f.id + 1) << %s"
            " WHERE f.path = %s AND c.kind != 'log'",
            [database.CHUNK_BITS, database.CHUNK_BITS, note],
        )
        return [int(i) for (i,) in rows]

    def paths(self, notes: Collection[int]) -> dict[int, NotePath]:
        """Query by file id."""
        rows = self._select("SELECT id, path FROM files WHERE id = ANY(%s)", [list(notes)])
        return {int(i): NotePath(path) for i, path in rows}

    def representative_chunk(self, note: int) -> int | None:
        """Return the first text, or the properties where there is none, but never a log entry."""
        rows = self._select(
            "SELECT id FROM chunks WHERE id >= %s AND id < %s AND kind != 'log'"
            " ORDER BY kind = 'frontmatter', position LIMIT 1",
            database.chunk_range(note),
        )
        return int(rows[0][0]) if rows else None

    def lengths(self, notes: Sequence[int], *, most: int) -> Sequence[int]:
        """Look up the number of each file's chunks, which came with the lists."""
        with self._lists() as lists:
            return lists.lengths(notes, most=most)

    def properties(self, ids: Collection[int]) -> set[int]:
        """Query by kind."""
        rows = self._select("SELECT id FROM chunks WHERE kind = 'frontmatter' AND id = ANY(%s)", [list(ids)])
        return {int(i) for (i,) in rows}

    def rows(self, ids: Sequence[int]) -> list[ChunkRow]:
        """Read chunks by id in the given order, without those that were removed."""
        found = dict(self._select("SELECT id, row FROM chunks WHERE id = ANY(%s)", [list(ids)]))
        return [rows.decode_chunk(i, found[i]) for i in ids if i in found]

    def count(self, where: Filter) -> tuple[int, int]:
        """Count the chunks of the files that match, and those with a vector of the model."""
        conditions, values = self._conditions("id", replace(where, include_log=True))
        condition = " AND ".join(conditions)
        chunks = self._select(f"SELECT COUNT(*) FROM chunks WHERE {condition}", values)[0][0]
        if self.state.meta.get("model") != self.model:
            return int(chunks), 0
        conditions, values = self._conditions("chunk", replace(where, include_log=True))
        condition = " AND ".join(conditions)
        return int(chunks), int(self._select(f"SELECT COUNT(*) FROM vectors WHERE {condition}", values)[0][0])

    def _select(self, sql: str, values: Sequence[Any], *, binary: bool = False) -> list[tuple[Any, ...]]:
        return self.state.session.execute(sql, values, binary=binary).fetchall()

    @property
    def _dimensions(self) -> int:
        return int(self.state.meta.get("dimensions") or "0")

    @property
    def _total(self) -> int:
        return int(self.state.meta.get("chunks", "0"))

    @property
    def _mean_length(self) -> float:
        return max(int(self.state.meta.get("words", "0")), 1) / max(self._total, 1)

    @property
    def _ids(self) -> _FileIds:
        return self.cache.ids.get(self.state.mirror, "", self._read_ids)

    def _read_ids(self) -> _FileIds:
        sql = "SELECT group_concat(id || ' ' || inode, ' ') FROM (SELECT id, inode FROM files ORDER BY id)"
        pairs = np.fromstring(self.state.mirror.execute(sql).fetchone()[0] or "", np.int64, sep=" ")
        return _FileIds(local=pairs[::2], stored=pairs[1::2])

    def _mask(self, where: Filter) -> NDArray[np.bool_] | None:
        return self.cache.allowed.mask(self.state.mirror, where)

    def _shown(self, where: Filter) -> NDArray[np.bool_] | None:
        """Return the filter's mask over the database's ids; None where it leaves all."""
        mask = self._mask(where)
        if mask is None:
            return None
        ids = self._ids
        shown = np.zeros(int(ids.stored.max(initial=0)) + 1, np.bool_)
        shown[ids.stored] = mask[ids.local]
        return shown

    def _conditions(self, chunk: str, where: Filter) -> tuple[list[str], list[Any]]:
        """Return the conditions that a filter sets on chunks; the policy is one of them."""
        conditions, values = ["true"], list[Any]()
        if not where.trivial:

            def pack() -> bytes:
                shown = self._shown(where)
                return b"" if shown is None else np.packbits(shown, bitorder="little").tobytes()

            bits = self.cache.masks.get(self.state.mirror, where.cache_key, pack)
            file = f"({chunk} >> {database.CHUNK_BITS})"
            conditions.append(f"CASE WHEN {file} < %s THEN get_bit(%s::bytea, {file}) = 1 ELSE false END")
            values += [8 * len(bits), bits]
        if not where.include_log:
            conditions.append(f"{chunk} NOT IN (SELECT id FROM chunks WHERE kind = 'log')")
        return conditions, values

    def _follows_graph(self, where: Filter) -> bool:
        if self.state.meta.get("graph") != "1":
            return False
        mask = self._mask(where)
        return mask is None or bool(np.count_nonzero(mask) >= _GRAPH_SHARE * max(len(self._ids.local), 1))

    def _stems(self, term: Term) -> Sequence[str]:
        return [rows.term_key(stem) for stem in self.cache.stemmer.stems([term.text])[0]]

    def _find_tokens(self, query: Query) -> dict[str, tuple[int, int]]:
        """Return the ids and counts of all words of a query that the vault has."""
        terms = (*query.words, *query.phrases, *query.excluded)
        stems = sorted({stem for term in terms for stem in self._stems(term)})
        rows = self._select("SELECT term, id, rows FROM terms WHERE term = ANY(%s) AND rows > 0", [stems])
        return {str(term): (int(i), int(count)) for term, i, count in rows}

    def _rank(self, question: Sequence[QueryWord], found: Mapping[str, tuple[int, int]]) -> list[RankedWord]:
        ranked: list[RankedWord] = []
        for word in question:
            if word.token:
                token, count = found.get(rows.term_key(word.token), (0, 0))
                gain = word.times * self._gain(count)
                ranked += [RankedWord(gain=gain, token=token, count=count)] if count else []
                continue
            prefix = word.expression.endswith("*")
            term = Term(text=word.expression.removesuffix("*")[1:-1].replace('""', '"'), prefix=prefix)
            hits = self._find_hits(self._stems(term), found, prefix=prefix)
            gain = word.times * self._gain(len(hits.chunks))
            ranked += [RankedWord(gain=gain, hits=hits)] if hits.chunks else []
        return ranked

    def _gain(self, count: int) -> float:
        return inverse_document_frequency(count, self._total) * (K1 + 1)

    def _rareness(
        self, question: Sequence[QueryWord], found: Mapping[str, tuple[int, int]], where: Filter
    ) -> dict[QueryWord, float]:
        """Return how rare words are in the texts of the files that may be found, counted in the database."""
        where = replace(where, include_log=True)
        counts, total = dict(found.values()), self._total
        if not where.trivial:
            with self._lists() as lists:
                norms = self._norms(lists, where)
                counts, total = lists.counts(self.state.session, counts, norms)
        rareness: dict[QueryWord, float] = {}
        for word in question:
            stems = [rows.term_key(stem) for stem in word.stems]
            if len(stems) == 1:
                token, _ = found.get(stems[0], (0, 0))
                rareness[word] = fts5.rareness(counts.get(token, 0), total)
            elif stems:
                chunks = self._find_hits(stems, found, prefix=False).chunks
                count = len(chunks)
                if chunks and not where.trivial:
                    conditions, values = self._conditions("p.chunk", where)
                    sql = f"SELECT COUNT(*) FROM unnest(%s::bigint[]) AS p(chunk) WHERE {' AND '.join(conditions)}"
                    count = int(self._select(sql, [chunks, *values])[0][0])
                rareness[word] = fts5.rareness(count, total)
        return rareness

    def _find_hits(
        self,
        stems: Sequence[str],
        rows: Mapping[str, tuple[int, int]],
        *,
        prefix: bool,
        within: Sequence[int] | None = None,
    ) -> Hits:
        """Find the chunks with a phrase, or a word that begins so, and how much it weighs in each."""
        groups = [[rows[stem][0]] if stem in rows else [] for stem in stems]
        if prefix and stems:
            last = stems[-1]
            sql = "SELECT id FROM terms WHERE term >= %s AND term < %s AND rows > 0"
            groups[-1] = [int(i) for (i,) in self._select(sql, [last, last + _LAST_CHARACTER])]
        if not groups or not all(groups):
            return Hits(chunks=[], weights=[], words=[])
        limits, values = ("", []) if within is None else (" AND {}.{} = ANY(%s)", [list(within)])
        if len(groups) == 1:
            sql = (
                "SELECT p.chunk, sum(p.weight)::int, min(p.words) FROM postings p WHERE p.term = ANY(%s)"
                f"{limits.format('p', 'chunk')} GROUP BY p.chunk"
            )
            parameters: list[Any] = [groups[0], *values]
        else:
            sql, parameters = _phrase_sql(groups)
            sql, parameters = sql.format(limits=limits.format("c", "id")), [*parameters, *values]
        hits = self._select(sql, parameters)
        return Hits(chunks=[i for i, _, _ in hits], weights=[w for _, w, _ in hits], words=[n for _, _, n in hits])

    def _is_present(self, term: Term, where: Filter, rows: Mapping[str, tuple[int, int]]) -> bool:
        """Return whether a chunk of an allowed file holds a word."""
        stems = self._stems(term)
        if not stems:
            return False
        conditions, values = self._conditions("p.chunk", replace(where, include_log=True))
        if len(stems) == 1:
            token = rows.get(stems[0], (0, 0))[0]
            sql = f"SELECT 1 FROM postings p WHERE p.term = %s AND {' AND '.join(conditions)} LIMIT 1"
            return bool(token and self._select(sql, [token, *values]))
        hits = self._find_hits(stems, rows, prefix=False)
        sql = f"SELECT 1 FROM unnest(%s::bigint[]) AS p(chunk) WHERE {' AND '.join(conditions)} LIMIT 1"
        return bool(hits.chunks and self._select(sql, [hits.chunks, *values]))


def _phrase_sql(groups: Sequence[Sequence[int]]) -> tuple[str, list[Any]]:
    """Return the query for a phrase: chunks with all its words, of which the order is then looked at."""
    places = ["t.tokens[i] = ANY(%s)", *(f"t.tokens[i + {n}] = ANY(%s)" for n in range(1, len(groups)))]
    weights = list(CHUNKS.columns.values())
    # The gaps between the columns tell in which one a place is.
    weight = f"CASE WHEN i < t.a THEN {weights[0]} WHEN i < t.b THEN {weights[1]} ELSE {weights[2]} END"
    holding = "SELECT chunk FROM postings WHERE term = ANY(%s)"
    candidates = " INTERSECT ".join(holding for _ in groups)
    sql = (
        "SELECT c.id, h.weight::int, c.words FROM chunks c"
        f" CROSS JOIN LATERAL (SELECT c.tokens || '{{{{}}}}'::int[] AS tokens, array_position(c.tokens, {GAP}) AS a,"
        f" (array_positions(c.tokens, {GAP}))[2] AS b OFFSET 0) AS t"
        f" CROSS JOIN LATERAL (SELECT sum({weight}) AS weight FROM generate_subscripts(t.tokens, 1) AS i"
        f" WHERE {' AND '.join(places)}) AS h"
        f" WHERE c.id IN ({candidates}) AND h.weight > 0{{limits}}"
    )
    return sql, [*groups, *groups]
