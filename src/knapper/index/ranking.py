"""Put notes in order by what was found in them, and choose which of their texts are shown."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from knapper.index import fuse
from knapper.index.fuse import Joined, Weights
from knapper.index.ports import Look
from knapper.index.store import Row

_SECOND = 0.5
"""What further chunks of a note keep of its score, so that other notes get their turn."""
_PROPERTIES = 0.6
"""What a chunk of properties keeps of its score when a note's chunks are put in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Hold a chunk that matched, its score, and where that comes from."""

    row: Row
    score: float
    parts: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Hold the scores of what answers one question; nothing of it was read yet."""

    chunks: Joined
    names: Mapping[int, float]
    """Of notes by id: what their names add."""
    held: Mapping[int, Sequence[int]]
    """The chunks among those found that each note holds; none where only its name was."""
    notes: Mapping[int, float]

    def best(self, limit: int) -> list[int]:
        """Give the notes with the highest scores, best first."""
        return heapq.nsmallest(limit, self.notes, key=lambda note: (-self.notes[note], note))


def of(look: Look, chunks: Joined, names: Mapping[int, float], weights: Weights) -> Ranking:
    """Score the notes that chunks and names were found of."""
    held: defaultdict[int, list[int]] = defaultdict(list)
    scored: defaultdict[int, list[float]] = defaultdict(list)
    note_of = look.note
    for chunk, score in chunks.scores.items():
        note = note_of(chunk)
        held[note].append(chunk)
        scored[note].append(score)
    return Ranking(chunks=chunks, names=names, held=held, notes=fuse.notes(scored, names, weights))


def texts(look: Look, ranking: Ranking, notes: Iterable[int]) -> dict[int, list[int]]:
    """Order notes' chunks for showing: properties say less than text, and a first text stands for a name alone."""
    held = {note: ranking.held.get(note, ()) for note in notes}
    scores = ranking.chunks.scores
    properties = look.properties([chunk for some in held.values() for chunk in some])
    shown: dict[int, list[int]] = {}
    for note, some in held.items():
        if some:
            ranked = [(-scores[chunk] * (_PROPERTIES if chunk in properties else 1.0), chunk) for chunk in some]
            shown[note] = [chunk for _, chunk in sorted(ranked)]
        else:
            first = look.first(note)
            shown[note] = [] if first is None else [first]
    return shown


def hits(look: Look, ranking: Ranking, shown: Mapping[int, Sequence[int]], *, limit: int, per_note: int) -> list[Hit]:
    """Read the best of the chunks that are *shown* of each note, best first."""
    chunks, notes, names = ranking.chunks, ranking.notes, ranking.names
    found: list[tuple[float, int, int]] = []
    for note, some in shown.items():
        top = chunks.scores.get(some[0], 0.0) if some else 0.0
        for place, chunk in enumerate(some[:per_note]):
            share = _SECOND * min(chunks.scores[chunk] / top, 1.0) if place and top > 0 else 1.0
            found.append((notes[note] * share, chunk, note))
    found.sort(key=lambda one: (-one[0], one[1]))
    rows = {row.id: row for row in look.rows([chunk for _, chunk, _ in found[:limit]])}
    return [
        Hit(row=rows[chunk], score=score, parts=_parts(chunks, chunk, notes[note], names.get(note, 0.0)))
        for score, chunk, note in found[:limit]
        if chunk in rows
    ]


def _parts(chunks: Joined, chunk: int, note: float, name: float) -> dict[str, float]:
    keyword, dense = chunks.keyword.get(chunk, 0.0), chunks.dense.get(chunk, 0.0)
    return {"keyword": keyword, "dense": dense, "chunk": chunks.scores.get(chunk, 0.0), "name": name, "note": note}
