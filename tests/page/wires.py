"""A wire to a server that a test can cut, and mend again."""

import contextlib
import select
import socket
import threading
from types import TracebackType
from typing import Final, Self

_SIZE: Final = 65_536


class Wire:
    """Pass bytes on between a port of its own and a server's."""

    def __init__(self, port: int) -> None:
        """Lead to a port of this machine."""
        self._port = port
        self._own = socket.create_server(("127.0.0.1", 0))
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._is_cut = False
        self._is_closed = False
        self.address = f"http://127.0.0.1:{self._own.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self.cut()
        with contextlib.suppress(OSError), socket.create_connection(self._own.getsockname(), timeout=5):
            pass  # wakes whoever waits for the next connection
        for thread in self._threads:
            thread.join()
        self._own.close()

    def cut(self) -> None:
        """End all connections; new ones end at once."""
        with self._lock:
            self._is_cut = True
            pairs = list(self._pairs)
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        while not self._is_closed:
            near, _ = self._own.accept()
            with self._lock:
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._port))
                self._pairs.add((near, far))
            thread = threading.Thread(target=self._pass, args=(near, far))
            thread.start()
            self._threads.append(thread)

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, contextlib.suppress(OSError):
            while True:
                for end in select.select([near, far], [], [])[0]:
                    data = end.recv(_SIZE)
                    if not data:
                        break
                    (far if end is near else near).sendall(data)
                else:
                    continue
                break
        with self._lock:
            self._pairs.discard((near, far))
