"""Close what is open at the end of a block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Closing(ABC):
    """Be used in a ``with`` statement, and closed at its end."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""

    def __enter__(self) -> Self:
        """Use it in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
