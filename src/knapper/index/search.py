"""Answer a question with hits: rank by words, by names and by meaning, and join the rankings."""

import heapq
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from knapper.index import fuse, ranking, related, segment
from knapper.index.embed import Embedder, EmbedderError
from knapper.index.filters import Filter
from knapper.index.fuse import Fusion, Joined, Weights
from knapper.index.ports import Look, Looks
from knapper.index.ranking import Hit, Ranking
from knapper.index.related import Beside, Related, Why
from knapper.index.segment import Query

Mode = Literal["hybrid", "semantic", "keyword"]
_Nearest = Callable[[], Mapping[int, float]]
"""Waits for the chunks nearest to a vector."""
_POOL = 200
"""Chunks that each ranking hands on."""


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
class Answer:
    """Hold what was found, and what went wrong meanwhile."""

    hits: tuple[Hit, ...] = ()
    remarks: tuple[str, ...] = ()
    """What was corrected in the query, and why meaning wasn't asked where it should have been."""
    related: tuple[Related, ...] = ()
    """Instead of hits, where it was asked for what matters beside a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rankings:
    """Hold the three rankings of one question."""

    keyword: Mapping[int, float]
    dense: Mapping[int, float]
    names: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Hold a question as it was read."""

    question: Question
    query: Query
    vector: NDArray[np.float32] | None = None
    model: str = ""
    remarks: list[str] = field(default_factory=list[str])
    """What was corrected, and why meaning wasn't asked where it should have been."""


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
        asked = self._asked(question)
        with self._looks.look(asked.model) as look:
            asked = _fitting(look, asked)
            found = self._ranked(look, asked, _begin(look, asked.vector, asked.question.where))
            shown = ranking.texts(look, found, found.best(question.limit))
            hits = ranking.hits(look, found, shown, limit=question.limit, per_note=question.per_note)
        return Answer(hits=tuple(hits), remarks=tuple(asked.remarks))

    def related(self, question: Question, beside: Beside | None) -> Answer:
        """Give the notes that matter for a question while a note is open, which isn't among them, best first."""
        asked = self._asked(question)
        with self._looks.look(asked.model or self._model()) as look:
            asked = _fitting(look, asked)
            centre = fuse.centre(look.vectors(look.chunks(beside.path))[1]) if beside else None
            nearest = _begin(look, asked.vector, question.where)
            alike = _begin(look, centre, question.where)
            linked = beside.linked() if beside else ()
            rankings: dict[Why, Ranking] = {"task": self._ranked(look, asked, nearest)}
            if beside:
                rankings["current_note"] = self._alike(look, alike(), beside, question.where)
            current = beside.path if beside else None
            found = related.joined(look, rankings, current, linked, limit=question.limit)
        return Answer(related=found, remarks=tuple(asked.remarks))

    def _asked(self, question: Question) -> _Asked:
        """Read what is asked, and embed it."""
        query, corrected = self._read(question)
        if not query.plain:
            return _Asked(question=question, query=query, remarks=["the query holds no word to look for"])
        vector, model, remark = self._vector(query, question.mode)
        remarks = [*filter(None, (corrected, remark))]
        return _Asked(question=question, query=query, vector=vector, model=model, remarks=remarks)

    def _ranked(self, look: Look, asked: _Asked, nearest: _Nearest) -> Ranking:
        """Rank notes and their chunks; what has to be known of it is among the remarks then."""
        question, vector = asked.question, asked.vector
        rankings = _rank(look, asked, nearest)
        fusion = question.fusion or self._fusion
        chunks = self._join(rankings, fusion)
        if vector is not None and rankings.dense and fusion == "convex":
            chunks = self._learn(look, rankings, chunks, vector)
        if rankings.dense and question.mode == "hybrid" and not (rankings.keyword or rankings.names):
            asked.remarks.append("no note holds any of these words: these are the nearest in meaning")
        return ranking.of(look, chunks, rankings.names, self._weights)

    def _alike(self, look: Look, nearest: Mapping[int, float], beside: Beside, where: Filter) -> Ranking:
        """Rank notes by how near they are to one, or by its words where no vectors tell that."""
        if nearest:
            return ranking.of(look, fuse.convex({}, nearest, share=1.0), {}, self._weights)
        asked = self._asked(Question(text=beside.words(), mode="keyword", where=where))
        return self._ranked(look, asked, _begin(look, asked.vector, where))

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
        model = ""
        try:
            embedder = self._embedder()
            if embedder is None:
                off = "search by meaning is switched off (embeddings.kind is none)"
                return None, "", off if mode == "semantic" else ""
            model = embedder.model_id  # by which notes can be compared even where it doesn't answer now
            return embedder.query(query.plain), model, ""
        except EmbedderError as error:
            if mode == "semantic":
                raise
            return None, model, f"searched by words only: {error.message}"

    def _model(self) -> str:
        """Tell whose vectors notes are compared by, whether or not the question has one; empty for nobody's."""
        with suppress(EmbedderError):  # whoever asks for the question's vector hears of it
            embedder = self._embedder()
            return embedder.model_id if embedder else ""
        return ""

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


def _changed() -> EmbedderError:
    return EmbedderError(
        "the embedder gives other vectors than it gave to the index: the model behind its name was changed",
        hint="run `knap index --full`",
        code="embedder_changed",
    )


def _fitting(look: Look, asked: _Asked) -> _Asked:
    """Leave the question's vector out where it can't be compared with those of the index.

    Raises:
        EmbedderError: Only meaning was asked for.
    """
    if asked.vector is None or look.fits(asked.vector):
        return asked
    if asked.question.mode == "semantic":
        raise _changed()
    remark = f"searched by words only: {_changed().message}; {_changed().hint}"
    return replace(asked, vector=None, remarks=[*asked.remarks, remark])


def _begin(look: Look, vector: NDArray[np.float32] | None, where: Filter) -> _Nearest:
    """Begin to look for what is near to a question, or to the middle of a note."""
    return dict if vector is None else look.nearest(vector, where, limit=_POOL)


def _rank(look: Look, asked: _Asked, nearest: _Nearest) -> _Rankings:
    question, query = asked.question, asked.query
    keyword: dict[int, float] = {}
    names: dict[int, float] = {}
    if question.mode != "semantic" or asked.vector is None:
        keyword = look.keyword(query, question.where, limit=_POOL)
        names = look.names(query, question.where)
    dense = nearest()
    if query.phrases or query.excluded:
        kept = look.passing(query, dense)
        dense = {i: score for i, score in dense.items() if i in kept}
        held = {look.note(i) for i in (*keyword, *dense)}  # a name can't tell whether the text keeps to them
        names = {note: score for note, score in names.items() if note in held}
    return _Rankings(keyword=keyword, dense=dense, names=names)
