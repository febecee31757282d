"""Join the rankings of a question's chunks and names, and score notes by them."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from knapper.index.snapshot import IndexSnapshot

Fusion = Literal["convex", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """The constants of the ranking; ``docs/benchmarks.md`` describes how they were chosen."""

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
    """The scores of chunks by id with their parts, each in 0..1."""

    scores: Mapping[int, float]
    keyword: Mapping[int, float]
    """Only the chunks that the ranking contains."""
    dense: Mapping[int, float]


def normalize_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Normalise scores to 0..1; equal ones all become 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    width = high - low
    return {i: (score - low) / width if width > 0 else 1.0 for i, score in scores.items()}


def fuse_scores(keyword: Mapping[int, float], dense: Mapping[int, float], *, share: float) -> FusedScores:
    """Add the normalised scores of both rankings, the second with the weight *share*; a missing chunk scores 0.

    Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023.
    """
    keyword_scores, dense_scores = normalize_scores(keyword), normalize_scores(dense)
    if not keyword or not dense:
        share = 0.0 if keyword else 1.0
    keyword_share = 1 - share
    scores = {i: keyword_share * score for i, score in keyword_scores.items()}
    for i, score in dense_scores.items():
        scores[i] = scores.get(i, 0.0) + share * score
    return FusedScores(scores=scores, keyword=keyword_scores, dense=dense_scores)


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
    return FusedScores(
        scores=reciprocal_rank_fusion([by_words, by_meaning], k=k),
        keyword=normalize_scores(keyword),
        dense=normalize_scores(dense),
    )


def score_notes(
    chunks: Mapping[int, Sequence[float]],
    lengths: Mapping[int, int],
    names: Mapping[int, float],
    weights: RankingWeights,
) -> dict[int, float]:
    """Score notes by id: their best chunks, weighted by rank, plus the scores of their names.

    Args:
        chunks: The scores of each note's matching chunks.
        lengths: How many chunks each of these notes has, matching or not; more than there are ranks count the same.
        names: By note.
        weights: The constants of the ranking.
    """
    ranks, scales = weights.ranks, weights.scales()
    scores: dict[int, float] = {}
    enough, first = len(ranks), ranks[0]
    for note, chunk_scores in chunks.items():
        if len(chunk_scores) == 1:  # most notes, of some hundreds
            total = first * chunk_scores[0]
        else:
            total = sum(w * s for w, s in zip(ranks, sorted(chunk_scores, reverse=True), strict=False))
        length = lengths[note]
        scores[note] = total / scales[length - 1 if length < enough else enough - 1]
    for note, score in names.items():
        scores[note] = scores.get(note, 0.0) + weights.name * score
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRanking:
    """The scores of the matches of one query, before any row is read."""

    chunks: FusedScores
    names: Mapping[int, float]
    """By note id: what the name adds."""
    lengths: Mapping[int, int]
    """By note id: how many chunks it has, up to as many as there are ranks; none where only its name matched."""
    chunks_by_note: Mapping[int, Sequence[int]]
    """The matching chunks of each note; none where only its name matched."""
    notes: Mapping[int, float]

    def best(self, limit: int) -> list[int]:
        """Return the notes with the highest scores, best first."""
        return heapq.nsmallest(limit, self.notes, key=lambda note: (-self.notes[note], note))


def rank_notes(
    snapshot: IndexSnapshot, chunks: FusedScores, names: Mapping[int, float], weights: RankingWeights
) -> NoteRanking:
    """Score the notes of the matching chunks and names."""
    chunks_by_note: defaultdict[int, list[int]] = defaultdict(list)
    scores_by_note: defaultdict[int, list[float]] = defaultdict(list)
    note_of = snapshot.note
    for chunk, score in chunks.scores.items():
        note = note_of(chunk)
        chunks_by_note[note].append(chunk)
        scores_by_note[note].append(score)
    # The lengths of notes with enough matching chunks don't have to be read.
    enough = len(weights.ranks)
    lengths = {
        note: len(note_chunks) if len(note_chunks) < enough else enough for note, note_chunks in chunks_by_note.items()
    }
    read = snapshot.lengths([note for note, length in lengths.items() if length < enough], most=enough)
    for note, length in read.items():
        if length > lengths[note]:  # a chunk that was removed meanwhile by another process still counts
            lengths[note] = length
    scores = score_notes(scores_by_note, lengths, names, weights)
    return NoteRanking(chunks=chunks, names=names, lengths=lengths, chunks_by_note=chunks_by_note, notes=scores)


def keep_matching(snapshot: IndexSnapshot, ranking: NoteRanking, matching: Collection[int]) -> NoteRanking:
    """Keep the notes that match the query; scores stay as they are.

    Args:
        snapshot: The index.
        ranking: Of all candidates.
        matching: The chunks that contain a word of the query, or are near enough in meaning.

    Returns:
        The notes with such a chunk, each with only these, and those whose name matches.
    """
    if len(matching) == len(ranking.chunks.scores):  # all of them, as by words alone
        return ranking
    found = {snapshot.note(chunk) for chunk in matching}.union(ranking.names)
    matching_chunks = {
        note: [chunk for chunk in chunks if chunk in matching] or chunks
        for note, chunks in ranking.chunks_by_note.items()
    }
    notes = {note: score for note, score in ranking.notes.items() if note in found}
    return replace(ranking, chunks_by_note=matching_chunks, notes=notes)


def rank_nearest(snapshot: IndexSnapshot, cosines: Mapping[int, float]) -> NoteRanking:
    """Rank notes by the cosine of their nearest chunk alone, for an offer where nothing matches."""
    chunks_by_note: defaultdict[int, list[int]] = defaultdict(list)
    for chunk in cosines:
        chunks_by_note[snapshot.note(chunk)].append(chunk)
    notes = {note: max(cosines[chunk] for chunk in chunks) for note, chunks in chunks_by_note.items()}
    scores = FusedScores(scores=cosines, keyword={}, dense=cosines)
    return NoteRanking(chunks=scores, names={}, lengths={}, chunks_by_note=chunks_by_note, notes=notes)
