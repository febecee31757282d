"""Say what an engine that keeps chunks has to offer: the seam at which another one can take SQLite's place.

Reading goes through ``Look``; filters are data that the engine pushes into its own query.
Joining rankings, scoring notes and correcting typos live above, in `search`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from knapper.index.filters import Filter
    from knapper.index.segment import Query
    from knapper.index.store import Row
    from knapper.vault.paths import NotePath


RANKING = "ranking"
"""Begins the names of threads that only compute: they wait for work until the index is closed."""


class Look(Protocol):
    """Answer questions about one state of what is kept; scores are higher where better."""

    def keyword(self, query: Query, where: Filter, *, limit: int) -> dict[int, float]:
        """Give the best chunks by the query's words, best first."""
        ...

    def names(self, query: Query, where: Filter) -> dict[int, float]:
        """Score notes by how much of a title, alias or heading the query says, 0 to 1."""
        ...

    def nearest(self, vector: NDArray[np.float32], where: Filter, *, limit: int) -> Callable[[], Mapping[int, float]]:
        """Begin to look for the chunks nearest in meaning to a vector, while other questions are asked.

        Returns:
            Waits for them, and gives them with their cosine, nearest first.
        """
        ...

    def fits(self, vector: NDArray[np.float32]) -> bool:
        """Tell whether a question's vector can be compared with those that are kept."""
        ...

    def vectors(self, ids: Collection[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Give the vectors of those chunks that have one: their ids, and a row for each."""
        ...

    def passing(self, query: Query, ids: Collection[int]) -> set[int]:
        """Give those chunks that hold the query's phrases and none of what it excludes."""
        ...

    def corrections(self, query: Query, where: Filter) -> Mapping[str, str]:
        """Give for words that nothing holds the likest word of a name."""
        ...

    def note(self, chunk_id: int) -> int:
        """Give the id of a chunk's note."""
        ...

    def chunks(self, note: NotePath) -> list[int]:
        """Give the ids of a note's chunks, without what the program logged."""
        ...

    def paths(self, notes: Collection[int]) -> dict[int, NotePath]:
        """Give the path of each note."""
        ...

    def first(self, note: int) -> int | None:
        """Give the chunk that stands for a note that only its name has found; None where it has none."""
        ...

    def properties(self, ids: Collection[int]) -> set[int]:
        """Give those chunks that hold a note's properties."""
        ...

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Read chunks by id, in the order asked; those that are gone are left out."""
        ...


class Looks(Protocol):
    """Give looks at what is kept right now."""

    def look(self, model: str) -> AbstractContextManager[Look]:
        """Hold one state while several questions are asked.

        Args:
            model: Whose vectors count; empty for none.
        """
        ...
