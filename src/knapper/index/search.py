"""Answer a question with hits: rank by words, by names and by meaning, and join the rankings."""

import heapq
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
from knapper.index.fuse import Fusion, Joined, Weights
from knapper.index.ports import Look, Looks
from knapper.index.segment import Query
from knapper.index.store import Row
from knapper.vault.paths import NotePath

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
            if vector is not None and not look.fits(vector):
                if question.mode == "semantic":
                    raise _changed()
                vector, remark = None, f"searched by words only: {_changed().message}; {_changed().hint}"
            rankings = _rank(look, question, query, vector)
            chunks = self._join(rankings, fusion)
            if vector is not None and rankings.dense and fusion == "convex":
                chunks = self._learn(look, rankings, chunks, vector)
            hits = self._hits(look, question, chunks, rankings.names)
        if hits and question.mode == "hybrid" and not (rankings.keyword or rankings.names):
            remark = remark or "no note holds any of these words: these are the nearest in meaning"
        return Answer(hits=tuple(hits), remarks=tuple(filter(None, (corrected, remark))))

    def near(self, note: NotePath, where: Filter, *, limit: int) -> Callable[[], tuple[Hit, ...]]:
        """Begin to look for the notes nearest in meaning to a whole note, which is among them itself.

        Returns:
            Waits for them, and gives them with the best first, each by its best chunk; none where the note has no
            vectors (yet), or nobody embeds.

        Raises:
            EmbedderError: The embedder can't be used.
        """
        embedder = self._embedder()
        if embedder is None:
            return tuple[Hit, ...]
        model = embedder.model_id
        with self._looks.look(model) as look:
            centre = fuse.centre(look.vectors(look.chunks(note))[1])
            if centre is None:
                return tuple[Hit, ...]
            nearest = look.vector(centre, where, limit=_POOL)
        question = Question(text="", limit=limit, per_note=1, where=where)

        def found() -> tuple[Hit, ...]:
            ranked = nearest()
            with self._looks.look(model) as look:  # another state, in which an id may stand for another chunk
                chunks = fuse.convex({}, look.within(ranked, where), share=1.0)
                return tuple(self._hits(look, question, chunks, {}))

        return found

    def _read(self, question: Question) -> tuple[Query, str]:
        """Read the query; a word that nothing holds is taken for the likest one of a name, and that is said."""
        query = segment.terms(question.text)
        with self._looks.look("") as look:
            meant = look.corrections(query, question.where)
        if not meant:
            return query, ""
        text = segment.folded(question.text)  # as the words are that were taken from it
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

    def _join(self, rankings: _Rankings, fusion: Fusion) -> Joined:
        if fusion == "rrf":
            return fuse.reciprocal(rankings.keyword, rankings.dense, k=self._weights.rrf_k)
        return fuse.convex(rankings.keyword, rankings.dense, share=self._weights.dense)

    def _learn(self, look: Look, rankings: _Rankings, chunks: Joined, vector: NDArray[np.float32]) -> Joined:
        """Ask for meaning again, moved towards what the best chunks say."""
        scores = chunks.scores
        best = heapq.nsmallest(self._weights.teachers, scores, key=lambda i: (-scores[i], i))
        teachers, known = look.vectors(best)
        moved = fuse.towards(vector, known, [scores[i] for i in teachers], by=self._weights.feedback)
        ids, rows = look.vectors(rankings.dense)
        dense = dict(zip(ids, (rows @ moved).tolist(), strict=True))
        return fuse.convex(rankings.keyword, dense, share=self._weights.dense)

    def _hits(self, look: Look, question: Question, chunks: Joined, names: Mapping[int, float]) -> list[Hit]:
        by_note: defaultdict[int, list[int]] = defaultdict(list)
        note_of = look.note
        for chunk in chunks.scores:
            by_note[note_of(chunk)].append(chunk)
        scored = {note: [chunks.scores[chunk] for chunk in held] for note, held in by_note.items()}
        notes = fuse.notes(scored, names, self._weights)
        best = heapq.nsmallest(question.limit, notes, key=lambda note: (-notes[note], note))
        shown = _shown(look, {note: by_note.get(note, []) for note in best}, chunks.scores)
        found: list[tuple[float, int, int]] = []
        for note in best:
            top = chunks.scores.get(shown[note][0], 0.0) if shown[note] else 0.0
            for place, chunk in enumerate(shown[note][: question.per_note]):
                share = _SECOND * min(chunks.scores[chunk] / top, 1.0) if place and top > 0 else 1.0
                found.append((notes[note] * share, chunk, note))
        found.sort(key=lambda one: (-one[0], one[1]))
        rows = {row.id: row for row in look.rows([chunk for _, chunk, _ in found[: question.limit]])}
        return [
            Hit(row=rows[chunk], score=score, parts=_parts(chunks, chunk, notes[note], names.get(note, 0.0)))
            for score, chunk, note in found[: question.limit]
            if chunk in rows
        ]


def _changed() -> EmbedderError:
    return EmbedderError(
        "the embedder gives other vectors than it gave to the index: the model behind its name was changed",
        hint="run `knap index --full`",
        code="embedder_changed",
    )


def _rank(look: Look, question: Question, query: Query, vector: NDArray[np.float32] | None) -> _Rankings:
    keyword: dict[int, float] = {}
    names: dict[int, float] = {}
    nearest = look.vector(vector, question.where, limit=_POOL) if vector is not None else dict[int, float]
    if question.mode != "semantic" or vector is None:
        keyword = look.keyword(query, question.where, limit=_POOL)
        names = look.names(query, question.where)
    dense = nearest()
    if query.phrases or query.excluded:
        kept = look.passing(query, dense)
        dense = {i: score for i, score in dense.items() if i in kept}
        held = {look.note(i) for i in (*keyword, *dense)}  # a name can't tell whether the text keeps to them
        names = {note: score for note, score in names.items() if note in held}
    return _Rankings(keyword=keyword, dense=dense, names=names)


def _shown(look: Look, by_note: Mapping[int, Sequence[int]], scores: Mapping[int, float]) -> dict[int, list[int]]:
    """Order notes' chunks for showing: properties say less than text, and a first text stands for a name alone."""
    properties = look.properties([chunk for held in by_note.values() for chunk in held])
    shown: dict[int, list[int]] = {}
    for note, held in by_note.items():
        if held:
            ranked = [(-scores[chunk] * (_PROPERTIES if chunk in properties else 1.0), chunk) for chunk in held]
            shown[note] = [chunk for _, chunk in sorted(ranked)]
        else:
            first = look.first(note)
            shown[note] = [] if first is None else [first]
    return shown


def _parts(chunks: Joined, chunk: int, note: float, name: float) -> dict[str, float]:
    keyword, dense = chunks.keyword.get(chunk, 0.0), chunks.dense.get(chunk, 0.0)
    return {"keyword": keyword, "dense": dense, "chunk": chunks.scores.get(chunk, 0.0), "name": name, "note": note}
