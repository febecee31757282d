"""Join rankings into one: of chunks by words and by meaning, then of notes by their chunks and names."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Fusion = Literal["convex", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Hold the constants of the ranking; ``docs/benchmarks.md`` tells how they were chosen."""

    dense: float = 0.5
    """Share of meaning in a chunk's score; words have the rest."""
    name: float = 0.9
    """What a note's name adds at most."""
    ranks: tuple[float, ...] = (1.0, 0.5, 0.25)
    """Weights of a note's best chunks in its score."""
    rrf_k: int = 60
    teachers: int = 5
    """Best chunks whose meaning the question is moved towards before meaning is asked again."""
    feedback: float = 0.3
    """How far it is moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Hold the scores of chunks by id, and where they come from, each in 0..1."""

    scores: Mapping[int, float]
    keyword: Mapping[int, float]
    """What a ranking lacks isn't in it."""
    dense: Mapping[int, float]


def spread(scores: Mapping[int, float]) -> dict[int, float]:
    """Stretch scores to 0..1; equal ones all become 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    width = high - low
    return {i: (score - low) / width if width > 0 else 1.0 for i, score in scores.items()}


def convex(keyword: Mapping[int, float], dense: Mapping[int, float], *, share: float) -> Joined:
    """Add the spread scores of both rankings, the second with the weight *share*; what a ranking lacks counts 0 there.

    Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023.
    """
    words, meaning = spread(keyword), spread(dense)
    if not keyword or not dense:
        share = 0.0 if keyword else 1.0
    rest = 1 - share
    scores = {i: rest * score for i, score in words.items()}
    for i, score in meaning.items():
        scores[i] = scores.get(i, 0.0) + share * score
    return Joined(scores=scores, keyword=words, dense=meaning)


def rrf(rankings: Sequence[Sequence[int]], *, k: int = 60) -> dict[int, float]:
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


def reciprocal(keyword: Mapping[int, float], dense: Mapping[int, float], *, k: int) -> Joined:
    """Join the same two rankings by reciprocal rank instead."""
    by_words = sorted(keyword, key=lambda i: -keyword[i])
    by_meaning = sorted(dense, key=lambda i: -dense[i])
    return Joined(scores=rrf([by_words, by_meaning], k=k), keyword=spread(keyword), dense=spread(dense))


def towards(
    query: NDArray[np.float32], vectors: NDArray[np.float32], scores: Sequence[float], *, by: float
) -> NDArray[np.float32]:
    """Move a question towards what the best chunks say, each with its weight.

    Source: Rocchio, "Relevance feedback in information retrieval", 1971, with the best hits taken for relevant.
    """
    if not len(vectors):
        return query
    centre = np.array(scores, np.float32) @ vectors
    length = float(np.linalg.norm(centre))
    return (query + by / length * centre).astype(np.float32) if length > 0 else query


def centre(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Give the direction that vectors have in common; None where they have none."""
    summed = vectors.sum(axis=0, dtype=np.float32)
    length = float(np.linalg.norm(summed))
    return summed / np.float32(length) if length > 0 else None


def notes(chunks: Mapping[int, Sequence[float]], names: Mapping[int, float], weights: Weights) -> dict[int, float]:
    """Score notes by id: the weighted sum of the scores of their best chunks, and what their names add."""
    ranks = weights.ranks
    scores: dict[int, float] = {}
    for note, found in chunks.items():
        if len(found) == 1:
            scores[note] = ranks[0] * found[0]
        else:
            scores[note] = sum(w * s for w, s in zip(ranks, sorted(found, reverse=True), strict=False))
    for note, score in names.items():
        scores[note] = scores.get(note, 0.0) + weights.name * score
    return scores
