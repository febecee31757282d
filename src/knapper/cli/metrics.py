"""Score rankings against graded judgements."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Give the normalised discounted cumulative gain of the first *k*.

    A ranking ``["b", "a"]`` with grades ``{"a": 2, "b": 1}`` gives (1 + 2 / log2 3) / (2 + 1 / log2 3) = 0.86.

    Args:
        ranking: Best first, each once.
        grades: By what is ranked; what is missing has grade 0.
        k: How far down to look, at least 1.

    Returns:
        0 to 1; 0 where nothing has a grade above 0.

    Source: Järvelin and Kekäläinen, TOIS 2002, with the gain equal to the grade.
    """
    ideal = _gain(sorted((max(grade, 0) for grade in grades.values()), reverse=True)[:k])
    return _gain([max(grades.get(name, 0), 0) for name in ranking[:k]]) / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    """Give one divided by the first relevant place; 0 where there is none."""
    return next((1 / place for place, name in enumerate(ranking, 1) if grades.get(name, 0) > 0), 0.0)


def recall(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Give the share of all that is relevant which stands among the first *k*; 0 where nothing is."""
    relevant = {name for name, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def hit(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Give 1 where something relevant stands among the first *k*, else 0."""
    return 1.0 if any(grades.get(name, 0) > 0 for name in ranking[:k]) else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value that a *share* of the values doesn't exceed, by the nearest rank; 0 where there are none."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def averages(rankings: Mapping[str, Sequence[str]], judged: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Average every measure over the judged queries; one without a ranking counts as 0."""
    pairs = [(rankings.get(query, ()), grades) for query, grades in judged.items()]
    return {
        "ndcg@5": _mean([ndcg(ranking, grades, 5) for ranking, grades in pairs]),
        "ndcg@10": _mean([ndcg(ranking, grades, 10) for ranking, grades in pairs]),
        "mrr": _mean([reciprocal_rank(ranking, grades) for ranking, grades in pairs]),
        "hit@1": _mean([hit(ranking, grades, 1) for ranking, grades in pairs]),
        "recall@10": _mean([recall(ranking, grades, 10) for ranking, grades in pairs]),
    }


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
