"""Compare two configurations of search by their measures of the same queries."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from knapper.errors import BadInput

COMPARED: Final = ("ndcg@10", "mrr", "hit@1", "recall@10")
_SAMPLES: Final = 10_000
_BLOCK: Final = 500
"""Samples that are drawn at a time, which limits the memory for many queries."""
_INTERVAL: Final = (2.5, 97.5)
_TIE: Final = 1e-9
_HINT: Final = "make it with `knap eval DIR --per-query --json > FILE`"
Measures = Mapping[str, Mapping[str, float]]
"""By query, values by measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How one measure differs between two configurations, query by query."""

    before: float
    now: float
    low: float
    """Of the 95 % confidence interval of the mean difference."""
    high: float
    p: float
    """Probability of at least such a mean difference if the configurations were alike."""
    better: int
    """Queries that are better now."""
    equal: int
    worse: int

    def as_dict(self) -> dict[str, float]:
        """Return it in the shape of ``--json``."""
        return {
            "before": round(self.before, 4),
            "now": round(self.now, 4),
            "difference": round(self.now - self.before, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "p": round(self.p, 4),
            "better": self.better,
            "equal": self.equal,
            "worse": self.worse,
        }


def read_measures(file: Path) -> Measures:
    """Read the measures of each query from an earlier result.

    Raises:
        BadInput: The file can't be read, or holds no measures of queries.
    """
    try:
        result: object = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it isn't UTF-8 text"
        raise BadInput(f"{file} can't be read: {cause}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file} isn't JSON", hint=_HINT) from error
    rows = cast("dict[str, object]", result).get("per_query") if isinstance(result, dict) else None
    if not isinstance(rows, list):
        raise BadInput(f"{file} holds no measures of queries", hint=_HINT)
    measures: dict[str, Mapping[str, float]] = {}
    for number, row in enumerate(cast("list[object]", rows), 1):
        fields = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        values = {name: fields.get(name) for name in COMPARED}
        if not isinstance(fields.get("id"), str) or not all(map(_is_measure, values.values())):
            raise BadInput(f"{file}: query {number} has no id, or lacks a measure from 0 to 1", hint=_HINT)
        measures[str(fields["id"])] = cast("Mapping[str, float]", values)
    return measures


def _is_measure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def compare_measures(before: Measures, now: Measures) -> dict[str, Difference]:
    """Compare the measures of the queries that both have.

    Raises:
        BadInput: They have none in common.
    """
    shared = [query for query in now if query in before]
    if not shared:
        raise BadInput("the results have no query in common", hint="compare results of the same collection")
    return {
        name: compare_pairs([before[query][name] for query in shared], [now[query][name] for query in shared])
        for name in COMPARED
    }


def compare_pairs(before: Sequence[float], now: Sequence[float]) -> Difference:
    """Compare values in pairs: by a randomization test, and with an interval by bootstrap; the same at each call.

    Source: Smucker, Allan and Carterette, "A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation", CIKM 2007.
    """
    differences = np.asarray(now, np.float64) - np.asarray(before, np.float64)
    mean = float(differences.mean())
    generator = np.random.default_rng(0)
    flipped, resampled = _sample_means(differences, generator)
    low, high = np.percentile(resampled, _INTERVAL)
    as_large = int((np.abs(flipped) >= abs(mean) - _TIE).sum())
    return Difference(
        before=float(np.mean(before)),
        now=float(np.mean(now)),
        low=float(low),
        high=float(high),
        p=(1 + as_large) / (1 + _SAMPLES),
        better=int((differences > _TIE).sum()),
        equal=int((np.abs(differences) <= _TIE).sum()),
        worse=int((differences < -_TIE).sum()),
    )


def _sample_means(
    differences: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means of the differences with random signs, and of differences drawn with repetition."""
    flipped: list[NDArray[np.float64]] = []
    resampled: list[NDArray[np.float64]] = []
    count = len(differences)
    for _ in range(_SAMPLES // _BLOCK):
        signs = 1 - 2 * generator.integers(0, 2, (_BLOCK, count), np.int8)
        flipped.append(signs @ differences / count)
        resampled.append(differences[generator.integers(0, count, (_BLOCK, count))].mean(axis=1))
    return np.concatenate(flipped), np.concatenate(resampled)


def render_differences(differences: Mapping[str, Difference], queries: int) -> str:
    """Lay out a comparison in columns."""
    header = f"{'':<10}{'before':>8}{'now':>8}{'change':>9}  {'95 % interval':<19}{'p':>7}  better/equal/worse"
    lines = [
        f"{name:<10}{one.before:>8.4f}{one.now:>8.4f}{one.now - one.before:>+9.4f}"
        f"  {f'{one.low:+.4f} to {one.high:+.4f}':<19}{one.p:>7.4f}  {one.better}/{one.equal}/{one.worse}"
        for name, one in differences.items()
    ]
    return "\n".join([f"{queries} queries in both:", header, *lines])
