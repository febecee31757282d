"""Tell what a mistyped word may have meant."""

from collections.abc import Iterable

_LEAST_LIKENESS = 60


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like *word*; empty where none is."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415  # 30 ms that only a mistyped word should cost

    hit = process.extractOne(word.casefold(), sorted(known), scorer=fuzz.ratio, score_cutoff=_LEAST_LIKENESS)
    return hit[0] if hit else ""


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Make a hint of the nearest known word, or give *otherwise*."""
    near = nearest(word, known)
    return f"did you mean '{near}'?" if near else otherwise
