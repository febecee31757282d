"""Say what hears that nobody waits for the answer of a call any more."""

from collections.abc import Callable

OnCancel = Callable[[Callable[[], None]], Callable[[], None]]
"""Has a function called, in any thread, once nobody waits any more; gives what takes that back."""


def never(heard: Callable[[], None]) -> Callable[[], None]:
    """Wait for the answer to the end."""
    del heard
    return _nothing


def _nothing() -> None:
    pass
