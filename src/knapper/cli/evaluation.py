"""Measure search against a judged collection."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import cast

from knapper.errors import BadInput

_COLUMNS = 3
_LAYOUT = 'it holds vault/, queries.jsonl ({"_id", "text"} a line) and notes.tsv (query id, note path, grade)'


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What `knap eval` measures with."""

    vault: Path
    queries: Mapping[str, str]
    """Text by id; those that have a judgement."""
    grades: Mapping[str, Mapping[str, int]]
    """By query, grade by note."""


def read_collection(folder: Path) -> Collection:
    """Read a collection.

    Raises:
        BadInput: Something is missing, or a line can't be used; the message names file and line.
    """
    vault = folder / "vault"
    if not vault.is_dir():
        raise BadInput(f"{folder} is no collection: there is no {vault}", hint=_LAYOUT)
    queries = _read_queries(folder / "queries.jsonl")
    grades = _read_grades(folder / "notes.tsv", queries, vault)
    if not grades:
        raise BadInput(f"{folder / 'notes.tsv'} judges nothing", hint=_LAYOUT)
    judged = {query: text for query, text in queries.items() if query in grades}
    return Collection(vault=vault, queries=judged, grades=grades)


def _read_queries(file: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in _read_lines(file):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _line_error(file, number, "it isn't JSON") from error
        if not isinstance(row, dict):
            raise _line_error(file, number, "it isn't an object")
        fields = cast("dict[str, object]", row)
        name, text = fields.get("_id"), fields.get("text")
        if not isinstance(name, str) or not isinstance(text, str):
            raise _line_error(file, number, "'_id' and 'text' must be texts")
        if name in queries:
            raise _line_error(file, number, f"the query '{name}' stands there twice")
        queries[name] = text
    return queries


def _read_grades(file: Path, queries: Mapping[str, str], vault: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in _read_lines(file):
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise _line_error(file, number, f"it has {len(columns)} columns, not {_COLUMNS}")
        query, note, grade = columns
        if query not in queries:
            raise _line_error(file, number, f"there is no query '{query}'")
        if not grade.strip().lstrip("-").isdecimal():
            raise _line_error(file, number, f"the grade '{grade}' isn't a whole number")
        if not (vault / note).is_file():
            raise _line_error(file, number, f"there is no note '{note}' in {vault}")
        grades.setdefault(query, {})[note] = int(grade)
    return grades


def _read_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it isn't UTF-8 text"
        raise BadInput(f"{file} can't be read: {cause}", hint=_LAYOUT) from error


def _line_error(file: Path, number: int, cause: str) -> BadInput:
    return BadInput(f"{file}:{number}: {cause}", hint=_LAYOUT)


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first *k*.

    A ranking ``["b", "a"]`` with grades ``{"a": 2, "b": 1}`` gives (1 + 2 / log2 3) / (2 + 1 / log2 3) = 0.86.

    Args:
        ranking: Best first, each once.
        grades: By what is ranked; what is missing has grade 0.
        k: How far down to look, at least 1.

    Returns:
        0 to 1; 0 where nothing has a grade above 0.

    Source: Järvelin and Kekäläinen, TOIS 2002, with the gain equal to the grade.
    """
    ideal = _cumulative_gain(sorted((max(grade, 0) for grade in grades.values()), reverse=True)[:k])
    return _cumulative_gain([max(grades.get(name, 0), 0) for name in ranking[:k]]) / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    """Return one divided by the first relevant place; 0 where there is none."""
    return next((1 / place for place, name in enumerate(ranking, 1) if grades.get(name, 0) > 0), 0.0)


def recall(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the share of all that is relevant which stands among the first *k*; 0 where nothing is."""
    relevant = {name for name, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def hit(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return 1 where something relevant stands among the first *k*, else 0."""
    return 1.0 if any(grades.get(name, 0) > 0 for name in ranking[:k]) else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a *share* of the values doesn't exceed, by the nearest rank; 0 where there are none."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def average_metrics(rankings: Mapping[str, Sequence[str]], judged: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Average every measure over the judged queries; one without a ranking counts as 0."""
    pairs = [(rankings.get(query, ()), grades) for query, grades in judged.items()]
    return {
        "ndcg@5": _mean([ndcg(ranking, grades, 5) for ranking, grades in pairs]),
        "ndcg@10": _mean([ndcg(ranking, grades, 10) for ranking, grades in pairs]),
        "mrr": _mean([reciprocal_rank(ranking, grades) for ranking, grades in pairs]),
        "hit@1": _mean([hit(ranking, grades, 1) for ranking, grades in pairs]),
        "recall@10": _mean([recall(ranking, grades, 10) for ranking, grades in pairs]),
    }


def _cumulative_gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


_METRIC_LABELS = {
    "queries": "queries",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "mrr": "MRR",
    "hit@1": "hit@1",
    "recall@10": "recall@10",
    "p50_ms": "p50 (ms)",
    "p95_ms": "p95 (ms)",
}


def render_metrics(result: Mapping[str, object]) -> str:
    """Lay them out in columns."""
    return "\n".join(f"{label:<9}  {_format_value(result[name]):>8}" for name, label in _METRIC_LABELS.items())


def _format_value(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
