"""Answer a question with hits: rank by words, by names and by meaning, and join the rankings."""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from knapper.index import fuse, schema, segment, typos
from knapper.index.allowed import Allowed
from knapper.index.embed import Embedder, EmbedderError
from knapper.index.filters import Filter
from knapper.index.fuse import Fusion, Scored, Weights
from knapper.index.keyword import Keywords
from knapper.index.segment import Query
from knapper.index.store import Row, Store
from knapper.index.vectors import Vectors

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
    """Search one store; any thread may."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder | None], *, fusion: Fusion = "convex") -> None:
        """Search *store*, and ask for the embedder only where meaning is wanted."""
        self._store = store
        self._embedder = embedder
        self._fusion: Fusion = fusion
        self._weights = Weights()
        self._keywords = Keywords()
        self.allowed = Allowed()
        self._vectors: Vectors | None = None

    def search(self, question: Question) -> Answer:
        """Give the best chunks, best first, at most ``per_note`` of one note.

        Raises:
            EmbedderError: Only meaning was asked for, and the embedder doesn't answer.
        """
        query, corrected = self._read(question)
        if not query.plain:
            return Answer()
        vector, remark = self._vector(query, question.mode)
        with self._store.database.snapshot() as connection:
            allowed = self.allowed.mask(connection, question.where)
            rankings = self._rank(connection, question, query, vector, allowed)
            fusion = question.fusion or self._fusion
            chunks = self._join(rankings, fusion)
            if vector is not None and fusion == "convex":
                chunks = self._learn(rankings, chunks, vector)
            notes = fuse.notes(chunks, rankings.names, self._weights)
            hits = self._hits(connection, question, chunks, notes, rankings.names)
        return Answer(hits=tuple(hits), remarks=tuple(filter(None, (corrected, remark))))

    def _read(self, question: Question) -> tuple[Query, str]:
        """Read the query; a word that nothing holds is taken for the likest one of a name, and that is said."""
        query = segment.terms(question.text)
        with self._store.database.snapshot() as connection:
            unknown = self._keywords.unknown(connection, query)
            if not unknown:
                return query, ""
            allowed = self.allowed.mask(connection, question.where)
            meant = typos.corrections(connection, unknown, allowed=allowed)
        text = question.text
        for word, other in meant.items():
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", other, text)
        said = ", ".join(f"'{other}' for '{word}'" for word, other in meant.items())
        return (segment.terms(text), f"no note holds it as typed: searched for {said}") if meant else (query, "")

    def _vector(self, query: Query, mode: Mode) -> tuple[NDArray[np.float32] | None, str]:
        """Embed the question; where that fails, words alone must do, and it is said why."""
        if mode == "keyword":
            return None, ""
        try:
            embedder = self._embedder()
            if embedder is None:
                return None, "search by meaning is switched off (embeddings.kind is none)" if mode == "semantic" else ""
            if self._vectors is None or self._vectors.model != embedder.model_id:
                self._vectors = Vectors(embedder.model_id)
            return embedder.query(query.plain), ""
        except EmbedderError as error:
            if mode == "semantic":
                raise
            return None, f"searched by words only: {error.message}"

    def _rank(
        self,
        connection: sqlite3.Connection,
        question: Question,
        query: Query,
        vector: NDArray[np.float32] | None,
        allowed: NDArray[np.bool_] | None,
    ) -> _Rankings:
        keyword: dict[int, float] = {}
        names: dict[int, float] = {}
        dense: dict[int, float] = {}
        if question.mode != "semantic" or vector is None:
            keyword = self._keywords.chunks(connection, query, limit=_POOL, allowed=allowed)
            names = self._keywords.names(connection, query, allowed=allowed)
        if vector is not None and self._vectors is not None:
            self._vectors.sync(connection)
            dense = self._vectors.rank(vector, limit=_POOL, allowed=allowed)
            if query.phrases or query.excluded:
                kept = self._keywords.passing(connection, query, list(dense))
                dense = {i: score for i, score in dense.items() if i in kept}
        if query.phrases or query.excluded:  # a name alone can't tell whether the text keeps to them
            held = {schema.file_of(i) for i in (*keyword, *dense)}
            names = {file: score for file, score in names.items() if file in held}
        return _Rankings(keyword=keyword, dense=dense, names=names)

    def _join(self, rankings: _Rankings, fusion: Fusion) -> dict[int, Scored]:
        if fusion == "rrf":
            return fuse.reciprocal(rankings.keyword, rankings.dense, k=self._weights.rrf_k)
        return fuse.convex(rankings.keyword, rankings.dense, share=self._weights.dense)

    def _learn(
        self, rankings: _Rankings, chunks: Mapping[int, Scored], vector: NDArray[np.float32]
    ) -> dict[int, Scored]:
        """Ask for meaning again, moved towards what the best chunks say."""
        if self._vectors is None or not rankings.dense:
            return dict(chunks)
        best = sorted(chunks.values(), key=lambda chunk: (-chunk.score, chunk.id))[: self._weights.teachers]
        moved = self._vectors.towards(vector, {chunk.id: chunk.score for chunk in best}, by=self._weights.feedback)
        dense = self._vectors.cosines(moved, rankings.dense)
        return fuse.convex(rankings.keyword, dense, share=self._weights.dense)

    def _hits(
        self,
        connection: sqlite3.Connection,
        question: Question,
        chunks: Mapping[int, Scored],
        notes: Mapping[int, float],
        names: Mapping[int, float],
    ) -> list[Hit]:
        by_file: defaultdict[int, list[Scored]] = defaultdict(list)
        for chunk in chunks.values():
            by_file[schema.file_of(chunk.id)].append(chunk)
        found: list[tuple[float, int, Scored]] = []
        for file in sorted(notes, key=lambda f: (-notes[f], f))[: question.limit]:
            best = _shown(connection, file, by_file[file])[: question.per_note]
            top = best[0].score if best else 0.0
            for place, chunk in enumerate(best):
                share = _SECOND * min(chunk.score / top, 1.0) if place and top > 0 else 1.0
                found.append((notes[file] * share, file, chunk))
        found.sort(key=lambda one: (-one[0], one[2].id))
        rows = {row.id: row for row in self._store.rows([chunk.id for _, _, chunk in found[: question.limit]])}
        return [
            Hit(row=rows[chunk.id], score=score, parts=_parts(chunk, notes[file], names.get(file, 0.0)))
            for score, file, chunk in found[: question.limit]
            if chunk.id in rows
        ]


def _shown(connection: sqlite3.Connection, file: int, found: Sequence[Scored]) -> list[Scored]:
    """Order a note's chunks for showing: properties say less than text, and its first text stands for a name alone."""
    if not found:
        first = connection.execute(
            "SELECT id FROM chunks WHERE id >= ? AND id < ? ORDER BY kind = 'frontmatter', position LIMIT 1",
            schema.chunk_range(file),
        )
        return [Scored(id=int(i), score=0.0, keyword=0.0, dense=0.0) for (i,) in first]
    rows = connection.execute(
        "SELECT id FROM chunks WHERE kind = 'frontmatter' AND id IN (SELECT value FROM json_each(?))",
        (json.dumps([chunk.id for chunk in found]),),
    )
    properties = {int(i) for (i,) in rows}
    return sorted(found, key=lambda c: (-c.score * (_PROPERTIES if c.id in properties else 1.0), c.id))


def _parts(chunk: Scored, note: float, name: float) -> dict[str, float]:
    return {"keyword": chunk.keyword, "dense": chunk.dense, "chunk": chunk.score, "name": name, "note": note}
