"""Find the paths whose names are like a mistyped one's."""

from collections.abc import Iterable, Sequence
from typing import Final

from knapper.vault.paths import folder, key, stem

SHOWN: Final = 3
"""As many as a hint names."""
_LIKE: Final = 60
"""Of 100: how much of two names has to be the same."""


def places(path: str, stems: Sequence[str]) -> list[tuple[float, int]]:
    """Give the likeness and the place of those of *stems* that are like a path's own, in no certain order.

    Args:
        path: What was asked for.
        stems: Names without their endings, folded by `knapper.vault.paths.key`.
    """
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 35 ms that only a mistyped path should cost

    hits = process.extract(key(stem(path)), stems, scorer=fuzz.ratio, processor=None, score_cutoff=_LIKE, limit=None)
    return [(score, place) for _, score, place in hits]


def ordered(path: str, found: Iterable[tuple[float, str]]) -> list[str]:
    """Put paths with their likeness in order, the most like first; those in the path's own folder win ties."""
    here = folder(path)
    ranked = sorted(found, key=lambda one: (-one[0], folder(one[1]) != here, len(one[1]), one[1]))
    return [other for _, other in ranked]


def nearest(path: str, names: Iterable[str], *, limit: int = SHOWN) -> list[str]:
    """Return the paths whose names are most like a path's name, best first."""
    others = list(dict.fromkeys(names))
    hits = places(path, [key(stem(other)) for other in others])
    return ordered(path, ((score, others[place]) for score, place in hits))[:limit]
