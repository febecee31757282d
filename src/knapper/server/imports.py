"""Import what is heavy when it is first wanted, by one thread at a time.

A thread that imports a part of a package waits for the whole; another one that imports the whole waits for its parts.
Where both happen at once, one of them is given half a package, and fails.
"""

import threading
from typing import Final

ALONE: Final = threading.RLock()
"""Held by whoever imports late."""
