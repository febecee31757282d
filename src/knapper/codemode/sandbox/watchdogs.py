"""Kill a process when its time is up: what waits for it then reads its end, on every system."""

import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager


class Watchdog:
    """Watch one process, from a thread of its own that is started once.

    Starting a thread waits until it runs, which takes longer than a short script where the machine is busy.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Begin to watch; nothing happens before there is a limit."""
        self._process = process
        self._changed = threading.Condition()
        self._until: float | None = None
        self._has_bitten = False
        self._turn = 0
        self._is_over = False
        self._sleeps_until: float | None = None
        threading.Thread(target=self._watch, name=f"watchdog {process.pid}", daemon=True).start()

    @property
    def has_bitten(self) -> bool:
        """Tell whether the process was killed since it was last given time."""
        return self._has_bitten

    @contextmanager
    def limit(self, seconds: float) -> Generator[Callable[[], None]]:
        """Give the process so much time; it is killed if the block takes longer.

        The block is given what kills it at once, and does nothing any more after the block.
        """
        with self._changed:
            self._has_bitten = False
            self._turn += 1
            turn = self._turn
            self._until = time.monotonic() + seconds
            if self._sleeps_until is None or self._sleeps_until > self._until:
                self._changed.notify()
        try:
            yield lambda: self._bite(turn)
        finally:
            with self._changed:
                self._until = None  # it wakes at the old time, and finds nothing to do

    def _bite(self, turn: int) -> None:
        with self._changed:
            if self._turn == turn and self._until is not None:
                self._until = None
                self._has_bitten = True
                self._process.kill()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over:
                now = time.monotonic()
                if self._until is not None and now >= self._until:
                    self._until = None
                    self._has_bitten = True
                    self._process.kill()
                self._sleeps_until = self._until
                _ = self._changed.wait(None if self._until is None else self._until - now)
