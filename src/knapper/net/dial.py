"""Open connections to addresses that were checked, and to no others, within one span of time."""

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from knapper.net import addresses

Resolve = Callable[[str, int], Sequence[str]]
"""Gives the addresses of a host, as text; raises OSError where there are none."""
Connect = Callable[[str, int, float], socket.socket]
"""Connects to an address and port within so many seconds; raises OSError."""


def look_up(host: str, port: int) -> list[str]:
    """Ask the system for a host's addresses, each once, in its order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address; no name is looked up.

    Raises:
        OSError: Nobody answers, or it is a public address of this very machine, whose servers aren't the public's.
    """
    sock = socket.create_connection((address, port), timeout_s)
    if addresses.is_public(address) and leads_home(sock):
        sock.close()
        raise OSError("this machine's own address")
    return sock


def leads_home(sock: socket.socket) -> bool:
    """Tell whether both ends of a connection are on this machine."""
    return sock.getsockname()[0] == sock.getpeername()[0]


def trust() -> ssl.SSLContext:
    """Give the certificates that the system trusts; the environment isn't asked."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialer:
    """Hold the three things that reach the network; tests put others in their place."""

    resolve: Resolve = look_up
    connect: Connect = connect
    trust: Callable[[], ssl.SSLContext] = trust


class Untrusted(httpcore2.ConnectError):
    """Say that a server's certificate isn't one that is trusted for its name."""


class Deadline:
    """Say how much time is left."""

    def __init__(self, seconds: float) -> None:
        """Begin now."""
        self._end = time.monotonic() + seconds

    def left(self, most: float | None = None) -> float:
        """Give the seconds that are left, at most *most*.

        Raises:
            httpcore2.ReadTimeout: None are.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the time is over")
        return left if most is None else min(left, most)


def resolve(dialer: Dialer, host: str, port: int, timeout_s: float) -> list[str]:
    """Look a host up, and wait no longer than that; a lookup that hangs is left to itself.

    Raises:
        OSError: There is no such host.
        TimeoutError: There was no answer in time.
    """
    answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(dialer.resolve(host, port)))
        except (OSError, UnicodeError) as error:
            answers.put(error if isinstance(error, OSError) else OSError(str(error)))

    threading.Thread(target=ask, name="lookup", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except queue.Empty as error:
        raise TimeoutError("no answer from the name server") from error
    if isinstance(answer, OSError):
        raise answer
    return answer


class Pinned(httpcore2.NetworkBackend):
    """Connect to the given addresses, whatever host is asked for."""

    def __init__(self, dialer: Dialer, pins: Sequence[str], deadline: Deadline, connect_s: float) -> None:
        """Take what was checked.

        Args:
            dialer: Reaches the network.
            pins: Addresses, tried in turn.
            deadline: When all has to be done.
            connect_s: For each address.
        """
        self._dialer = dialer
        self._pins = pins
        self._deadline = deadline
        self._connect_s = connect_s

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - what was checked counts
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the interface of httpcore2
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the same
    ) -> httpcore2.NetworkStream:
        """Connect to the first address that answers."""
        last: OSError | None = None
        for address in self._pins:
            try:
                sock = self._dialer.connect(address, port, self._deadline.left(timeout or self._connect_s))
            except OSError as error:
                last = error
                continue
            return _Stream(sock, self._deadline)
        raise httpcore2.ConnectError("no address answers") from last


class _Stream(httpcore2.NetworkStream):
    """Read and write until the deadline, however little comes at a time."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._sock.settimeout(self._deadline.left(timeout))
        try:
            return self._sock.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout("nothing came") from error
        except OSError as error:
            raise httpcore2.ReadError("broken off") from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._sock.settimeout(self._deadline.left(timeout))
        try:
            self._sock.sendall(buffer)
        except TimeoutError as error:
            raise httpcore2.WriteTimeout("nothing is taken") from error
        except OSError as error:
            raise httpcore2.WriteError("broken off") from error

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            self._sock.settimeout(self._deadline.left(timeout))
            return _Stream(ssl_context.wrap_socket(self._sock, server_hostname=server_hostname), self._deadline)
        except TimeoutError as error:
            self.close()
            raise httpcore2.ConnectTimeout("no handshake") from error
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise Untrusted("no trusted certificate") from error
        except (OSError, ValueError) as error:  # SSLError is an OSError
            self.close()
            raise httpcore2.ConnectError("no handshake") from error

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the interface of httpcore2
        return self._sock if info == "socket" else None
