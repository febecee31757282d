"""Answer quickly which of many spans holds a place."""

from bisect import bisect_right
from collections.abc import Iterable

Span = tuple[int, int]


class Cover:
    """Hold spans that don't overlap, in order.

    ``Cover([(2, 5)]).at(3)`` is ``(2, 5)``, and ``.at(5)`` is None.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans: tuple[Span, ...] = merged(spans)
        self._starts: list[int] = [start for start, _ in self.spans]

    def at(self, place: int) -> Span | None:
        """Find the span that holds the byte at *place*."""
        index = bisect_right(self._starts, place) - 1
        if index < 0 or self.spans[index][1] <= place:
            return None
        return self.spans[index]

    def holds(self, place: int) -> bool:
        """Tell whether some span holds the byte at *place*."""
        return self.at(place) is not None


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort spans and join those that overlap."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)
