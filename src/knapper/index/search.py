"""Answer a search request with hits: rank by words, names and meaning, fuse the rankings, and read the best chunks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from knapper.errors import SetupError
from knapper.index import tokenizer
from knapper.index.documents import EVERYTHING, Filter
from knapper.index.models import base as rerankers
from knapper.index.models.base import Embedder, EmbedderError, PausingReranker, Reranking
from knapper.index.snapshot import (
    FusedScores,
    Fusion,
    IndexSnapshot,
    NoteRanking,
    RankingWeights,
    SnapshotCache,
    fuse_ranks,
    fuse_scores,
    keep_matching,
    name_empty_notes,
    normalize_scores,
    rank_by_words,
    rank_nearest,
    rank_notes,
)
from knapper.index.store import ChunkRow
from knapper.index.tokenizer import Query
from knapper.index.words import fulltext
from knapper.system.arrays import np
from knapper.vault.paths import NotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mean_direction(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the normalised mean of vectors; None where it is zero."""
    summed = vectors.sum(axis=0, dtype=np.float32)
    length = float(np.linalg.norm(summed))
    return summed / np.float32(length) if length > 0 else None


_FURTHER_CHUNK_SHARE = 0.5
"""Factor for each further chunk of a note, so that other notes are shown, too."""
_NO_COSINE = float("-inf")
_PROPERTIES_SHARE = 0.6
"""Factor for a chunk of properties when a note's chunks are sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A matching chunk with its score and the score's parts."""

    row: ChunkRow
    score: float
    """Relative to the best hit of its query."""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    cosine: float | None = None
    """Between the chunk's vector and the query's, by which hits of different queries can be compared; None where
    either has none."""
    copies: tuple[ChunkRow, ...] = ()
    """The same text in other notes, where the query asked for each text once."""


def read_hits(
    snapshot: IndexSnapshot, ranking: NoteRanking, places: Sequence[int], *, limit: int, per_note: int
) -> list[Hit]:
    """Read the best chunks of notes, best first: properties below text, and a text where only a name matched.

    Args:
        snapshot: Of the index.
        ranking: Of its notes.
        places: Of notes in the ranking.
        limit: Most hits.
        per_note: Most hits of one note.
    """
    matches = {place: ranking.matches(place) or _show_named(snapshot, ranking, place) for place in places}
    note_scores: list[float] = ranking.scores[[*matches]].tolist()
    doubtful = _find_doubtful(matches, note_scores, limit=limit, per_note=per_note)
    properties = snapshot.properties(doubtful) if doubtful else ()
    candidates: list[tuple[float, int, int]] = []
    for (place, scores), note_score in zip(matches.items(), note_scores, strict=True):
        if len(scores) == 1 and per_note > 0:
            candidates.append((note_score, next(iter(scores)), place))
            continue
        ordered = sorted(
            (-score * (_PROPERTIES_SHARE if chunk in properties else 1.0), chunk) for chunk, score in scores.items()
        )
        top = scores[ordered[0][1]] if ordered else 0.0
        for rank, (_, chunk) in enumerate(ordered[:per_note]):
            share = _FURTHER_CHUNK_SHARE * min(scores[chunk] / top, 1.0) if rank and top > 0 else 1.0
            candidates.append((note_score * share, chunk, place))
    candidates.sort(key=lambda one: (-one[0], one[1]))
    chosen = candidates[:limit]
    if not chosen:
        return []
    scores, chunks, places = zip(*chosen, strict=True)
    rows = {row.id: row for row in snapshot.rows(chunks)}
    return [
        Hit(row=rows[chunk], score=score, parts=parts, cosine=cosine if cosine > _NO_COSINE else None)
        for score, chunk, (parts, cosine) in zip(scores, chunks, _score_parts(ranking, chunks, places), strict=True)
        if chunk in rows
    ]


def _show_named(snapshot: IndexSnapshot, ranking: NoteRanking, place: int) -> dict[int, float]:
    """Return the chunk to show for a note of which only the name matched, without a score of its own."""
    first_chunk = snapshot.representative_chunk(int(ranking.notes[place]))
    return {} if first_chunk is None else {first_chunk: 0.0}


def _find_doubtful(
    matches: Mapping[int, Mapping[int, float]], note_scores: Sequence[float], *, limit: int, per_note: int
) -> list[int]:
    """Return the chunks of which it matters for the best hits whether they are properties.

    Args:
        matches: The chunks of each note, with their scores.
        note_scores: Of the notes.
        limit: Most hits.
        per_note: Most hits of one note.
    """
    # So many notes have a first hit with at least this score.
    least = sorted(note_scores, reverse=True)[limit - 1] if 0 < limit <= len(note_scores) else 0.0
    doubtful: list[int] = []
    for scores, note_score in zip(matches.values(), note_scores, strict=True):
        if len(scores) > 1:
            shown = per_note if _FURTHER_CHUNK_SHARE * note_score >= least else 1
            # Below that, a chunk isn't shown even where all above it are properties.
            lowest = _PROPERTIES_SHARE * sorted(scores.values(), reverse=True)[: max(shown, 1)][-1]
            near = [chunk for chunk, score in scores.items() if score >= lowest]
            doubtful += near if len(near) > 1 else ()
    return doubtful


def _score_parts(
    ranking: NoteRanking, chunks: Sequence[int], places: Sequence[int]
) -> Iterator[tuple[dict[str, float], float]]:
    """Yield the parts of the score of each chunk, whose note is at the place in the ranking, and its cosine."""
    at = [*places]
    of_notes = zip(ranking.notes[at].tolist(), ranking.lengths[at].tolist(), ranking.scores[at].tolist(), strict=True)
    # A chunk that is shown for its note's name alone has no score.
    for (note, length, note_score), of_chunk in zip(of_notes, ranking.chunks.of(chunks), strict=True):
        keyword, dense, score, cosine = of_chunk
        parts = {
            "keyword": keyword,
            "dense": dense,
            "chunk": score,
            "name": ranking.names.get(note, 0.0),
            "passages": float(length),
            "note": note_score,
        }
        yield parts, cosine


RelatedReason = Literal["task", "current_note", "linked"]
_REASON_WEIGHTS: Final[Mapping[RelatedReason, float]] = {"task": 1.0, "current_note": 0.35, "linked": 0.1}
"""Weight of each ranking; the task has the largest."""
RELATED_POOL_FACTOR: Final = 3
"""Candidates from each ranking, as a multiple of the requested notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNote:
    """The note that is open during a query; its slow parts are computed when needed."""

    path: NotePath
    linked: Callable[[], Collection[NotePath]]
    """The notes that it links to, or that link to it."""
    words: Callable[[], str]
    """Its text, for use where it has no vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedHit:
    """A chunk of a related note, with the reasons."""

    hit: Hit
    score: float
    why: tuple[RelatedReason, ...]


@dataclass(slots=True, kw_only=True)
class _RelatedScore:
    """A note's joined score."""

    best: NoteRanking
    """The first ranking with the note, whose chunk is shown."""
    place: int
    """Of the note in it."""
    score: float = 0.0
    why: list[RelatedReason] = field(default_factory=list[RelatedReason])


def join_rankings(
    snapshot: IndexSnapshot,
    rankings: Mapping[RelatedReason, NoteRanking],
    current: NotePath | None,
    linked: Collection[NotePath],
    *,
    limit: int,
) -> tuple[RelatedHit, ...]:
    """Join rankings by scores relative to each one's best; notes linked with the open note come first."""
    notes: dict[int, _RelatedScore] = {}
    for why, ranking_of_reason in rankings.items():
        places = [
            place
            for place in ranking_of_reason.best(RELATED_POOL_FACTOR * limit)
            if ranking_of_reason.matches(place)
            or snapshot.representative_chunk(int(ranking_of_reason.notes[place])) is not None
        ]
        best_score = max((float(ranking_of_reason.scores[place]) for place in places), default=0.0)
        for place in places if best_score > 0 else ():
            note = int(ranking_of_reason.notes[place])
            related_score = notes.setdefault(note, _RelatedScore(best=ranking_of_reason, place=place))
            related_score.score += _REASON_WEIGHTS[why] * float(ranking_of_reason.scores[place]) / best_score
            related_score.why.append(why)
    paths = snapshot.paths(notes)
    for note, path in paths.items():
        if path in linked:
            notes[note].score += _REASON_WEIGHTS["linked"]
            notes[note].why.append("linked")
    ranked = sorted((note for note in paths if paths[note] != current), key=lambda i: (-notes[i].score, paths[i]))
    # The best chunk of each from its first ranking.
    by_ranking: defaultdict[int, list[_RelatedScore]] = defaultdict(list)
    for note in ranked[:limit]:
        by_ranking[id(notes[note].best)].append(notes[note])
    hits_by_note: dict[int, Hit] = {}
    for group in by_ranking.values():
        places = [one.place for one in group]
        for hit in read_hits(snapshot, group[0].best, places, limit=len(group), per_note=1):
            hits_by_note[snapshot.note(hit.row.id)] = hit
    return tuple(
        RelatedHit(hit=hits_by_note[note], score=notes[note].score, why=tuple(notes[note].why))
        for note in ranked[:limit]
        if note in hits_by_note
    )


SearchMode = Literal["hybrid", "semantic", "keyword"]
_PendingScores = Callable[[], Mapping[int, float]]
"""Returns the chunks nearest to a vector, waiting for them where needed."""
_RANKING_POOL = 200
"""Candidate chunks of each ranking."""
MAX_NEAREST: Final = 5
"""Hits that are offered where nothing matches."""
_MIN_NEARNESS: Final = 0.35
"""Cosine from which on notes count as near where nothing was learnt for the model."""
_MAX_SHOWN_WORDS: Final = 3
"""Words that a remark names."""
_MIN_COPIED_CHARS: Final = 200
"""A text of this length is a copy wherever it stands again; a shorter one only in a note of the same title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search query with its filter and options."""

    text: str
    mode: SearchMode = "hybrid"
    limit: int = 5
    per_note: int = 2
    where: Filter = EVERYTHING
    merges_copies: bool = False
    """Whether a text that several notes hold is one hit."""
    reranks: bool = False
    """Whether a reranker, where there is one, puts the best into a better order; never by words alone."""
    fusion: Fusion | None = None
    """None takes the searcher's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, and remarks on the search."""

    hits: tuple[Hit, ...] = ()
    nearest: tuple[Hit, ...] = ()
    """Where nothing matches: what is nearest in meaning, though below the floor."""
    remarks: tuple[str, ...] = ()
    """Corrections in the query, and why meaning wasn't used, or only for some words, where it should have been."""
    limits: tuple[str, ...] = ()
    """Which of the ranking's own limits were reached, for those who want to know how it came about."""
    related: tuple[RelatedHit, ...] = ()
    """Related notes instead of hits, where these were requested."""
    query: Query = field(default_factory=Query)
    """What was looked for, with corrections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChunkScores:
    """The three rankings of one query."""

    keyword: Mapping[int, float]
    dense: Mapping[int, float]
    names: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedSearch:
    """A parsed and embedded query."""

    question: SearchRequest
    query: Query
    vector: NDArray[np.float32] | None = None
    model: str = ""
    meaning: float = 0.0
    """Weight of meaning beside words."""
    remarks: list[str] = field(default_factory=list[str])
    """Corrections in the query, and why meaning wasn't used where it should have been."""
    limits: list[str] = field(default_factory=list[str])
    """Which of the ranking's own limits were reached."""


class Searcher:
    """A thread-safe searcher of one index."""

    def __init__(
        self,
        snapshots: SnapshotCache,
        embedder: Callable[[], Embedder | None],
        *,
        fusion: Fusion = "convex",
        meaning: float | None = None,
        reranking: Reranking | None = None,
    ) -> None:
        """Use *snapshots*; the embedder is opened only for search by meaning, the reranker for what it shall rank.

        Args:
            snapshots: Of the index.
            embedder: Opens it.
            fusion: Default method of joining rankings.
            meaning: Weight of meaning, 0 to 1, where the vault knows a question's words; None takes the embedder's.
            reranking: What puts the best passages into a better order.
        """
        self._snapshots = snapshots
        self._reranker = PausingReranker(reranking) if reranking else None
        self._embedder = embedder
        self._fusion: Fusion = fusion
        self._meaning = meaning
        self._weights = RankingWeights()

    def search(self, request: SearchRequest) -> SearchResult:
        """Return the best chunks, best first, at most ``per_note`` of one note.

        Raises:
            EmbedderError: Only meaning was requested, and the embedder doesn't answer.
        """
        reranker = self._reranker
        if reranker is None or not request.reranks or request.mode == "keyword":
            return self._search(request)
        found = self._search(replace(request, limit=max(request.limit, reranker.passages)))
        hits, remark = rerank_hits(reranker, request.text, found.hits)
        return replace(found, hits=hits[: request.limit], remarks=(*found.remarks, *filter(None, [remark])))

    def close(self) -> None:
        """Close the reranker, if one was opened; snapshots and embedder are their owner's."""
        if self._reranker is not None:
            self._reranker.close()

    def _search(self, request: SearchRequest) -> SearchResult:
        model = self._instant_model(request.mode)
        if model is not None:
            with self._snapshots.snapshot(model) as snapshot:
                return self._answer(snapshot, self._prepare(request, snapshot))
        prepared = self._prepare(request)
        with self._snapshots.snapshot(prepared.model) as snapshot:
            return self._answer(snapshot, prepared)

    def _instant_model(self, mode: SearchMode) -> str | None:
        """Return the model that a query is embedded with; None where nobody may hold a snapshot open for so long."""
        if mode == "keyword":
            return ""
        # The error is reported where the query is embedded.
        with suppress(EmbedderError):
            embedder = self._embedder()
            return embedder.model_id if embedder is not None and embedder.instant else None
        return None

    def _answer(self, snapshot: IndexSnapshot, prepared: _PreparedSearch) -> SearchResult:
        """Rank, and read the hits."""
        prepared = _without_unfit_vector(snapshot, prepared)
        pending_scores = _start_nearest(snapshot, prepared.vector, prepared.question.where)
        ranking, rest = self._rank_notes(snapshot, prepared, pending_scores)
        hits = _read_query_hits(snapshot, prepared, ranking)
        prepared.remarks.extend(name_empty_notes(snapshot, ranking))
        nearest = () if hits else _read_query_hits(snapshot, prepared, rank_nearest(rest()))[:MAX_NEAREST]
        return SearchResult(
            hits=hits,
            nearest=nearest,
            remarks=tuple(prepared.remarks),
            limits=tuple(prepared.limits),
            query=prepared.query,
        )

    def related(self, request: SearchRequest, open_note: OpenNote | None) -> SearchResult:
        """Return the notes related to a query and an open note, without that note, best first."""
        prepared = self._prepare(request)
        with self._snapshots.snapshot(prepared.model or self._model()) as snapshot:
            prepared = _without_unfit_vector(snapshot, prepared)
            note_direction = mean_direction(snapshot.vectors(snapshot.chunks(open_note.path))[1]) if open_note else None
            query_scores = _start_nearest(snapshot, prepared.vector, request.where)
            similar_scores = _start_nearest(snapshot, note_direction, request.where)
            linked_paths = open_note.linked() if open_note else ()
            ranking, rest = self._rank_notes(snapshot, prepared, query_scores)
            rankings: dict[RelatedReason, NoteRanking] = {"task": ranking}
            if open_note:
                nearest_notes = similar_scores()
                if nearest_notes:
                    fused = fuse_scores({}, nearest_notes, share=1.0)
                    rankings["current_note"] = rank_notes(snapshot, fused, {}, self._weights)
                else:
                    # A note without vectors is compared by its words.
                    words = self._prepare(SearchRequest(text=open_note.words(), mode="keyword", where=request.where))
                    words_scores = _start_nearest(snapshot, words.vector, request.where)
                    rankings["current_note"] = self._rank_notes(snapshot, words, words_scores)[0]
            open_path = open_note.path if open_note else None
            joined = join_rankings(snapshot, rankings, open_path, linked_paths, limit=request.limit)
            # A ranking by the open note has the cosines with that note's own vector.
            hits = _with_cosines(snapshot, prepared, [replace(one.hit, cosine=None) for one in joined])
            related_hits = tuple(replace(one, hit=hit) for one, hit in zip(joined, hits, strict=True))
            nearest = () if related_hits else _read_query_hits(snapshot, prepared, rank_nearest(rest()))
            nearest = tuple(hit for hit in nearest if hit.row.note != open_path)[:MAX_NEAREST]
        return SearchResult(
            related=related_hits, nearest=nearest, remarks=tuple(prepared.remarks), limits=tuple(prepared.limits)
        )

    def near_notes(self, path: NotePath, where: Filter, *, limit: int) -> list[tuple[NotePath, float]]:
        """Return the notes nearest to one in meaning, nearest first, each with the cosine of its nearest chunk.

        Args:
            path: The note; it isn't among them.
            where: Which notes may be found.
            limit: How many at most; none that is below the floor of the model.
        """
        model = self._model()
        if not model:
            return []
        with self._snapshots.snapshot(model) as snapshot:
            direction = mean_direction(snapshot.vectors(snapshot.chunks(path))[1])
            floor = snapshot.floor()
            cosines: dict[int, float] = {}
            for chunk, cosine in _start_nearest(snapshot, direction, where)().items():
                if cosine >= (_MIN_NEARNESS if floor is None else floor):
                    _ = cosines.setdefault(snapshot.note(chunk), cosine)  # the nearest chunk of a note comes first
            paths = snapshot.paths(cosines)
        ranked = ((paths[note], cosine) for note, cosine in cosines.items() if paths.get(note, path) != path)
        return list(islice(ranked, limit))

    def _prepare(self, request: SearchRequest, snapshot: IndexSnapshot | None = None) -> _PreparedSearch:
        """Parse and embed the query; the words are looked up in a snapshot, of its own where none is given."""
        with nullcontext(snapshot) if snapshot else self._snapshots.snapshot("") as words:
            query, known, correction_remark = self._parse_query(words, request)
        if not query.plain:
            return _PreparedSearch(question=request, query=query, remarks=["the query holds no word to look for"])
        vector, model, remark = self._embed_query(query, request.mode)
        remarks = [*filter(None, (correction_remark, _omission_remark(query, request.mode), remark))]
        if not (query.words or query.phrases):  # a model may know what emoji mean, so the search goes on
            remarks.append("the query holds no word to look for: emoji and signs aren't indexed")
        share = 0.0
        if vector is not None:
            embedder = self._embedder()
            is_instant = embedder is None or embedder.instant
            share = self._weights.meaning(known, base=self._meaning, is_instant=is_instant)
        return _PreparedSearch(
            question=request, query=query, vector=vector, model=model, meaning=share, remarks=remarks
        )

    def _rank_notes(
        self, snapshot: IndexSnapshot, prepared: _PreparedSearch, nearest: _PendingScores
    ) -> tuple[NoteRanking, Callable[[], FusedScores]]:
        """Rank the matching notes and chunks, and add remarks where needed; also tell the chunks that aren't near."""
        question = prepared.question
        rankings = _score_chunks(snapshot, prepared, nearest)
        chunks = (
            fuse_ranks(rankings.keyword, rankings.dense, k=self._weights.rrf_k)
            if (question.fusion or self._fusion) == "rrf"
            else fuse_scores(rankings.keyword, rankings.dense, share=prepared.meaning)
        )
        floor = snapshot.floor()
        is_near = chunks.cosines > -np.inf if floor is None else chunks.cosines >= floor
        if question.mode == "hybrid" and not (rankings.keyword or rankings.names) and is_near.any():
            prepared.remarks.append(
                f"no {question.where.notes_meant} holds any of these words: these are the nearest in meaning"
            )
        ranking = rank_notes(snapshot, chunks, rankings.names, self._weights)
        return keep_matching(ranking, is_near | chunks.has_word), lambda: chunks.below(is_near)

    def _parse_query(self, snapshot: IndexSnapshot, request: SearchRequest) -> tuple[Query, float, str]:
        """Parse the query; an unknown word is replaced by the most similar one of a name, with a remark.

        An unknown word that is the whole query, and that none resembles, is taken for the beginning of others.

        Returns:
            The query; the share of its words that the client's part of the vault knows; and the remark.
        """
        query = tokenizer.parse_query(request.text)
        untyped = f"no {request.where.notes_meant} holds it as typed: searched for"
        unknown = set(snapshot.unknown(query, request.where))
        replacements: Mapping[str, str] = snapshot.corrections(query, request.where) if unknown else {}
        unknown.difference_update(replacements)
        count = len(query.content)
        known = 1 - sum(term.text in unknown for term in query.content) / count if count else 1.0
        if not replacements:
            begun = query.as_beginning(unknown) if request.mode != "semantic" else None
            if begun is None or not snapshot.keyword(begun, request.where, limit=1):
                return query, known, ""
            return begun, 1.0, f"{untyped} words that begin with '{begun.words[0].text}'"
        # In the same form as the unknown words, which were taken from the folded text.
        text = tokenizer.fold_forms(request.text)
        for word, other in replacements.items():
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", other, text)
        shown_replacements = ", ".join(f"'{other}' for '{word}'" for word, other in replacements.items())
        return tokenizer.parse_query(text), known, f"{untyped} {shown_replacements}"

    def _embed_query(self, query: Query, mode: SearchMode) -> tuple[NDArray[np.float32] | None, str, str]:
        """Embed the query; where that fails, only words are used, with a remark."""
        if mode == "keyword":
            return None, "", ""
        model = ""
        try:
            embedder = self._embedder()
            if embedder is None:
                disabled_remark = "search by meaning is switched off (embeddings.kind is none)"
                return None, "", disabled_remark if mode == "semantic" else ""
            # The stored vectors of this model can be compared even where the embedder doesn't answer now.
            model = embedder.model_id
            vector, remark = _embed_known(embedder, query.plain)
        except EmbedderError as error:
            if mode == "semantic":
                raise
            return None, model, f"searched by words only: {error.message}"
        return vector, model, remark

    def _model(self) -> str:
        """Return the model whose vectors compare notes, even where the query has no vector; empty for none."""
        # The error is reported where the query is embedded.
        with suppress(EmbedderError):
            embedder = self._embedder()
            return embedder.model_id if embedder else ""
        return ""


def _read_query_hits(snapshot: IndexSnapshot, prepared: _PreparedSearch, ranking: NoteRanking) -> tuple[Hit, ...]:
    """Read the best hits of a ranking, as many as the query asks for."""
    question = prepared.question
    limit = 2 * question.limit if question.merges_copies else question.limit
    while True:
        hits = read_hits(snapshot, ranking, ranking.best(limit), limit=limit, per_note=question.per_note)
        merged = merge_copies(hits) if question.merges_copies else hits
        if len(merged) >= question.limit or len(hits) < limit:
            return _with_cosines(snapshot, prepared, merged[: question.limit])
        limit *= 2


def merge_copies(hits: Sequence[Hit]) -> list[Hit]:
    """Join hits of one text in several notes: the best stays, and lists the others as its copies."""
    first_by_text: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        row = hit.row
        # Short texts are alike by chance, such as equal properties, or the empty sections of a template.
        title = "" if len(row.text) >= _MIN_COPIED_CHARS else row.title
        key = row.text, title
        first = first_by_text.get(key)
        if first is None:
            first_by_text[key] = hit
        elif row.note != first.row.note:
            first_by_text[key] = replace(first, copies=(*first.copies, row))
    return list(first_by_text.values())


def rerank_hits(reranker: PausingReranker, query: str, hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], str]:
    """Put the best hits into the order of a reranker; where it fails, they stay as they are, with a remark.

    Their scores become 1 for the best, and fall to that of the first hit which wasn't judged, so that they still tell
    the order; ``rerank`` in the parts is what the reranker gave.
    """
    judged, others = hits[: reranker.passages], hits[reranker.passages :]
    if len(judged) <= 1:
        return tuple(hits), ""
    from knapper.index.chunker import embedding_text  # noqa: PLC0415 - the parser's 60 ms, which most searches don't need

    documents = [embedding_text(hit.row.title, hit.row.path, hit.row.text) for hit in judged]
    try:
        scores = reranker.score(query, documents)
    except SetupError as error:
        return tuple(hits), f"not reranked: {error.message}"
    shares = normalize_scores(scores)
    floor = others[0].score if others else 0.0
    return (
        *(
            replace(
                judged[place],
                score=floor + (1 - floor) * shares.get(place, 0.0),
                parts={**judged[place].parts, **({"rerank": scores[place]} if place in scores else {})},
            )
            for place in rerankers.order(scores, len(judged))
        ),
        *others,
    ), ""


def _with_cosines(snapshot: IndexSnapshot, prepared: _PreparedSearch, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Add the cosine with the query's own vector to hits without one, such as those found by their words."""
    without = [hit.row.id for hit in hits if hit.cosine is None]
    if prepared.vector is None or not without:
        return tuple(hits)
    ids, rows = snapshot.vectors(without)
    # Without any stored vector, rows have no length that fits the query's.
    cosine_by_id = dict(zip(ids, (rows @ prepared.vector).tolist(), strict=True)) if ids else {}
    return tuple(
        hit
        if hit.cosine is not None
        else Hit(row=hit.row, score=hit.score, parts=hit.parts, cosine=cosine_by_id.get(hit.row.id), copies=hit.copies)
        for hit in hits
    )


def _embed_known(embedder: Embedder, text: str) -> tuple[NDArray[np.float32] | None, str]:
    """Embed a question, with a remark on words that mean nothing to the model; None where these are all it has."""
    words = [word for word in dict.fromkeys(text.split()) if any(character.isalnum() for character in word)]
    # Every model knows the letters of ASCII.
    unknown = embedder.unknown_words([word for word in words if not word.isascii()])
    if not unknown:
        return embedder.query(text), ""
    if len(unknown) == len(words):
        return None, "searched by words only: the embedding model doesn't know the letters of this question"
    shown = ", ".join(f"'{word}'" for word in unknown[:_MAX_SHOWN_WORDS])
    more = f" and {len(unknown) - _MAX_SHOWN_WORDS} more" if len(unknown) > _MAX_SHOWN_WORDS else ""
    return embedder.query(text), f"the embedding model doesn't know the letters of {shown}{more}: found by words only"


def _omission_remark(query: Query, mode: SearchMode) -> str:
    """Return that not all of a passage's words were looked for; empty where all were."""
    count = len(query.content)
    if count <= fulltext.MAX_RANKED_WORDS or mode == "semantic":
        return ""
    which = f"its first {count}" if query.is_cut else f"its {count}"
    return f"a long question: of {which} different words, the {fulltext.MAX_RANKED_WORDS} that weigh most were used"


def _model_changed_error(snapshot: IndexSnapshot) -> EmbedderError:
    return EmbedderError(
        "the embedder gives other vectors than it gave to the index: the model behind its name was changed",
        hint=snapshot.new_vectors_hint,
        code="embedder_changed",
    )


def _without_unfit_vector(snapshot: IndexSnapshot, prepared: _PreparedSearch) -> _PreparedSearch:
    """Drop the query's vector where it can't be compared with those of the index.

    Raises:
        EmbedderError: Only meaning was requested.
    """
    if prepared.vector is None or snapshot.fits(prepared.vector):
        return prepared
    if prepared.question.mode == "semantic":
        raise _model_changed_error(snapshot)
    error = _model_changed_error(snapshot)
    remark = f"searched by words only: {error.message}; {error.hint}"
    return replace(prepared, vector=None, remarks=[*prepared.remarks, remark])


def _start_nearest(snapshot: IndexSnapshot, vector: NDArray[np.float32] | None, where: Filter) -> _PendingScores:
    """Start the ranking by similarity to a query, or to the mean of a note."""
    return dict if vector is None else snapshot.nearest(vector, where, limit=_RANKING_POOL)


def _score_chunks(snapshot: IndexSnapshot, prepared: _PreparedSearch, nearest: _PendingScores) -> _ChunkScores:
    question, query = prepared.question, prepared.query
    keyword: Mapping[int, float] = {}
    names: Mapping[int, float] = {}
    if question.mode != "semantic" or prepared.vector is None:
        keyword = rank_by_words(snapshot, query, question.where, limit=_RANKING_POOL)
        name_scores = snapshot.names(query, question.where)
        names = name_scores.by_file
        if name_scores.is_cut:
            prepared.limits.append(
                f"of the names with a word of the question, the best {fulltext.MAX_NAME_HITS} counted"
            )
    dense = nearest()
    for way, ranking in (("words", keyword), ("meaning", dense)):
        if len(ranking) == _RANKING_POOL:
            prepared.limits.append(f"of the passages found by their {way}, the best {_RANKING_POOL} were ranked")
    if query.phrases or query.excluded:
        matching = snapshot.matching(query, dense)
        dense = {i: score for i, score in dense.items() if i in matching}
        # A name doesn't show whether the text meets phrases and exclusions, so its note needs a matching chunk.
        notes_with_chunks = {snapshot.note(i) for i in (*keyword, *dense)}
        names = {note: score for note, score in names.items() if note in notes_with_chunks}
    return _ChunkScores(keyword=keyword, dense=dense, names=names)
