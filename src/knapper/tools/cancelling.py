"""Say what hears that nobody waits for the answer of a call any more."""

import threading
from collections.abc import Callable

OnCancel = Callable[[Callable[[], None]], Callable[[], None]]
"""Has a function called, in any thread, once nobody waits any more; gives what takes that back."""


def never(heard: Callable[[], None]) -> Callable[[], None]:
    """Wait for the answer to the end."""
    del heard
    return _nothing


def _nothing() -> None:
    pass


class Cancelling:
    """Say once that nobody waits any more; any thread may tell and listen."""

    def __init__(self) -> None:
        """Nobody has told yet."""
        self._lock = threading.Lock()
        self._told = False
        self._heard: dict[object, Callable[[], None]] = {}

    @property
    def is_told(self) -> bool:
        """Tell whether nobody waits any more."""
        return self._told

    def tell(self) -> None:
        """Say that nobody waits any more."""
        with self._lock:
            self._told = True
            listeners = list(self._heard.values())
            self._heard.clear()
        for heard in listeners:
            heard()

    def on(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Have *heard* called once that is told, or now if it is already; gives what takes that back."""
        key = object()
        with self._lock:
            if not self._told:
                self._heard[key] = heard
                return lambda: self._forget(key)
        heard()
        return _nothing

    def _forget(self, key: object) -> None:
        with self._lock:
            self._heard.pop(key, None)
