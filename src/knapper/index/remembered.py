"""Remember what was computed of the index for as long as it stays the same."""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from knapper.index import states

_Value = TypeVar("_Value")


class Remembered(Generic[_Value]):
    """Keep the latest few answers, each for one state of the index; any thread may ask."""

    def __init__(self, most: int) -> None:
        """Keep *most* answers."""
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int, str], _Value] = OrderedDict()

    def get(self, connection: sqlite3.Connection, name: str, make: Callable[[], _Value]) -> _Value:
        """Give what is remembered under a name for the state that a connection sees, or make it."""
        key = (*states.state_of(connection), name)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        made = make()
        with self._lock:
            self._known[key] = made
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return made
