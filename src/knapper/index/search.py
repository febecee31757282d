"""Answer a question with hits: rank by words, by names and by meaning, and join the rankings."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from knapper.index import fuse, segment
from knapper.index.embed import Embedder, EmbedderError
from knapper.index.filters import Filter
from knapper.index.fuse import Fusion, Scored, Weights
from knapper.index.ports import Look, Looks
from knapper.index.segment import Query
from knapper.index.store import Row

Mode = Literal["hybrid", "semantic", "keyword"]
_POOL = 200
"""Chunks that each ranking hands on."""
_SECOND = 0.5
"""What further chunks of a note keep of its score, so that other notes get their turn."""
_PROPERTIES = 0.6
"""What a chunk of properties keeps of its score when a note's chunks are put in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Hold what is asked, and of which notes."""

    text: str
    mode: Mode = "hybrid"
    limit: int = 5
    per_note: int = 2
    where: Filter = field(default_factory=Filter)
    fusion: Fusion | None = None
    """None takes the searcher's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Hold a chunk that matched, its score, and where that comes from."""

    row: Row
    score: float
    parts: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Hold what was found, and what went wrong meanwhile."""

    hits: tuple[Hit, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was corrected in the query, and why meaning wasn't asked where it should have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rankings:
    """Hold the three rankings of one question."""

    keyword: dict[int, float]
    dense: dict[int, float]
    names: dict[int, float]


class Searcher:
    """Search one index; any thread may."""

    def __init__(self, looks: Looks, embedder: Callable[[], Embedder | None], *, fusion: Fusion = "convex") -> None:
        """Search by *looks*, and ask for the embedder only where meaning is wanted."""
        self._looks = looks
        self._embedder = embedder
        self._fusion: Fusion = fusion
        self._weights = Weights()

    def search(self, question: Question) -> Answer:
        """Give the best chunks, best first, at most ``per_note`` of one note.

        Raises:
            EmbedderError: Only meaning was asked for, and the embedder doesn't answer.
        """
        query, corrected = self._read(question)
        if not query.plain:
            return Answer(remarks=("the query holds no word to look for",))
        vector, model, remark = self._vector(query, question.mode)
        fusion = question.fusion or self._fusion
        with self._looks.look(model) as look:
            rankings = _rank(look, question, query, vector)
            chunks = self._join(rankings, fusion)
            if vector is not None and rankings.dense and fusion == "convex":
                chunks = self._learn(look, rankings, chunks, vector)
            hits = self._hits(look, question, chunks, rankings.names)
        if hits and question.mode == "hybrid" and not (rankings.keyword or rankings.names):
            remark = remark or "no note holds any of these words: these are the nearest in meaning"
        return Answer(hits=tuple(hits), remarks=tuple(filter(None, (corrected, remark))))

    def _read(self, question: Question) -> tuple[Query, str]:
        """Read the query; a word that nothing holds is taken for the likest one of a name, and that is said."""
        query = segment.terms(question.text)
        with self._looks.look("") as look:
            meant = look.corrections(query, question.where)
        if not meant:
            return query, ""
        text = question.text
        for word, other in meant.items():
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", other, text)
        said = ", ".join(f"'{other}' for '{word}'" for word, other in meant.items())
        return segment.terms(text), f"no note holds it as typed: searched for {said}"

    def _vector(self, query: Query, mode: Mode) -> tuple[NDArray[np.float32] | None, str, str]:
        """Embed the question; where that fails, words alone must do, and it is said why."""
        if mode == "keyword":
            return None, "", ""
        try:
            embedder = self._embedder()
            if embedder is None:
                off = "search by meaning is switched off (embeddings.kind is none)"
                return None, "", off if mode == "semantic" else ""
            return embedder.query(query.plain), embedder.model_id, ""
        except EmbedderError as error:
            if mode == "semantic":
                raise
            return None, "", f"searched by words only: {error.message}"

    def _join(self, rankings: _Rankings, fusion: Fusion) -> dict[int, Scored]:
        if fusion == "rrf":
            return fuse.reciprocal(rankings.keyword, rankings.dense, k=self._weights.rrf_k)
        return fuse.convex(rankings.keyword, rankings.dense, share=self._weights.dense)

    def _learn(
        self, look: Look, rankings: _Rankings, chunks: Mapping[int, Scored], vector: NDArray[np.float32]
    ) -> dict[int, Scored]:
        """Ask for meaning again, moved towards what the best chunks say."""
        best = sorted(chunks.values(), key=lambda chunk: (-chunk.score, chunk.id))[: self._weights.teachers]
        teachers, known = look.vectors([chunk.id for chunk in best])
        moved = fuse.towards(vector, known, [chunks[i].score for i in teachers], by=self._weights.feedback)
        ids, rows = look.vectors(rankings.dense)
        dense = dict(zip(ids, (rows @ moved).tolist(), strict=True))
        return fuse.convex(rankings.keyword, dense, share=self._weights.dense)

    def _hits(
        self, look: Look, question: Question, chunks: Mapping[int, Scored], names: Mapping[int, float]
    ) -> list[Hit]:
        by_note: defaultdict[int, list[Scored]] = defaultdict(list)
        for chunk in chunks.values():
            by_note[look.note(chunk.id)].append(chunk)
        notes = fuse.notes(by_note, names, self._weights)
        found: list[tuple[float, int, Scored]] = []
        for note in sorted(notes, key=lambda n: (-notes[n], n))[: question.limit]:
            best = _shown(look, note, by_note[note])[: question.per_note]
            top = best[0].score if best else 0.0
            for place, chunk in enumerate(best):
                share = _SECOND * min(chunk.score / top, 1.0) if place and top > 0 else 1.0
                found.append((notes[note] * share, note, chunk))
        found.sort(key=lambda one: (-one[0], one[2].id))
        rows = {row.id: row for row in look.rows([chunk.id for _, _, chunk in found[: question.limit]])}
        return [
            Hit(row=rows[chunk.id], score=score, parts=_parts(chunk, notes[note], names.get(note, 0.0)))
            for score, note, chunk in found[: question.limit]
            if chunk.id in rows
        ]


def _rank(look: Look, question: Question, query: Query, vector: NDArray[np.float32] | None) -> _Rankings:
    keyword: dict[int, float] = {}
    names: dict[int, float] = {}
    dense: dict[int, float] = {}
    if question.mode != "semantic" or vector is None:
        keyword = look.keyword(query, question.where, limit=_POOL)
        names = look.names(query, question.where)
    if vector is not None:
        dense = look.vector(vector, question.where, limit=_POOL)
    if query.phrases or query.excluded:
        kept = look.passing(query, dense)
        dense = {i: score for i, score in dense.items() if i in kept}
        held = {look.note(i) for i in (*keyword, *dense)}  # a name can't tell whether the text keeps to them
        names = {note: score for note, score in names.items() if note in held}
    return _Rankings(keyword=keyword, dense=dense, names=names)


def _shown(look: Look, note: int, found: Sequence[Scored]) -> list[Scored]:
    """Order a note's chunks for showing: properties say less than text, and its first text stands for a name alone."""
    if not found:
        first = look.first(note)
        return [] if first is None else [Scored(id=first, score=0.0, keyword=0.0, dense=0.0)]
    properties = look.properties([chunk.id for chunk in found])
    return sorted(found, key=lambda c: (-c.score * (_PROPERTIES if c.id in properties else 1.0), c.id))


def _parts(chunk: Scored, note: float, name: float) -> dict[str, float]:
    return {"keyword": chunk.keyword, "dense": chunk.dense, "chunk": chunk.score, "name": name, "note": note}
