"""Show measures of search."""

from collections.abc import Mapping

_LABELS = {
    "queries": "queries",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "mrr": "MRR",
    "hit@1": "hit@1",
    "recall@10": "recall@10",
    "p50_ms": "p50 (ms)",
    "p95_ms": "p95 (ms)",
}


def text(result: Mapping[str, object]) -> str:
    """Lay them out in columns."""
    return "\n".join(f"{label:<9}  {_shown(result[name]):>8}" for name, label in _LABELS.items())


def _shown(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
