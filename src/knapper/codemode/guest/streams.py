"""Give what a script prints to the host, a stretch at a time."""

import io
from collections.abc import Callable
from typing import Final

from knapper.codemode.guest import results

_STRETCH: Final = 4_096


class Printed(io.TextIOBase):
    """Collect printed text."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._parts: list[str] = []
        self._length = 0

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, text: str, /) -> int:
        """Take printed text."""
        self._parts.append(text)
        self._length += len(text)
        if self._length >= _STRETCH:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Give the host what was collected."""
        text = "".join(self._parts)
        self._parts.clear()
        self._length = 0
        if text:
            self._emit(results.clean(text))
