"""Look at a vault once for all that is asked at the same time."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from knapper.index.engine import Engine
    from knapper.index.status import Freshness
    from knapper.vault.access import Policy


KEPT_S: Final = 2.0
"""How long a look is good for; what an agent's own changes touch is taken in at once, look or no look."""


class SharedLook:
    """Bring an index up to date for calls that come together: the first one looks, and the others wait for it.

    Without it, each of an agent's calls side by side goes through the whole vault, where nobody watches it.
    """

    def __init__(self, index: "Engine", clock: Callable[[], float] = time.monotonic) -> None:
        """Take the index."""
        self._index = index
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, Policy, Freshness] | None = None

    def __call__(self, policy: "Policy", *, meaning: bool) -> "Freshness":
        """Say what answers may miss, as `Engine.freshen` does.

        Args:
            policy: The asker's.
            meaning: Vectors are wanted too.
        """
        with self._lock:
            if self._kept is None or self._kept[1] is not policy or self._clock() - self._kept[0] > KEPT_S:
                found = self._index.freshen(policy=policy)
                self._kept = (self._clock(), policy, found)
            found = self._kept[2]
        return found if meaning else replace(found, pending=0)
