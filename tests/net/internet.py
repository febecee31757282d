"""A small internet on loopback: names, addresses, and servers that send whatever bytes a test wants."""

import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from knapper.net.guard import Dialer

CERTS = Path(__file__).parent / "certs"
Raw: TypeAlias = bytes | Callable[["Sent", threading.Event], Iterable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a client sent."""

    address: str
    """Where it dialled."""
    port: int
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    server_name: str = ""


def page(
    body: bytes | str = "",
    content_type: str = "text/html; charset=utf-8",
    *,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Write an answer."""
    raw = body.encode() if isinstance(body, str) else body
    lines = {"Content-Length": str(len(raw)), **({"Content-Type": content_type} if content_type else {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in {**lines, **(headers or {})}.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + raw


def moved(location: str, status: int = 302) -> bytes:
    """Write a redirect."""
    return page(status=f"{status} Moved", headers={"Location": location})


@dataclass
class Internet:
    """Names and pages; `dialer` is how a guard reaches them."""

    names: dict[str, Sequence[str] | Callable[[], Sequence[str]]] = field(
        default_factory=lambda: {"site.example": ["93.184.216.34"], "secure.example": ["93.184.216.35"]}
    )
    pages: dict[str, Raw] = field(default_factory=dict[str, Raw])
    """By host and path: ``site.example/a``; ``*`` answers all others."""
    sent: list[Sent] = field(default_factory=list[Sent])
    asked: list[str] = field(default_factory=list[str])
    """Names that were looked up."""
    dead: set[str] = field(default_factory=set[str])
    """Addresses that nobody answers at."""
    closing: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    @property
    def dialer(self) -> Dialer:
        return Dialer(resolve=self.resolve, connect=self.connect, trust=self.trust)

    def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self.names.get(host)
        if found is None:
            raise OSError(f"no such host, asked at 10.0.0.53 port {port}")
        return found() if callable(found) else found

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        if address in self.dead:
            raise ConnectionRefusedError(f"{address} within {timeout_s}")
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=self._serve, args=(theirs, address, port))
        self.threads.append(thread)
        thread.start()
        return ours

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(CERTS / "ca.pem"))

    def _serve(self, sock: socket.socket, address: str, port: int) -> None:
        with suppress(OSError), sock:
            if port != 443:
                self._answer(sock, address, port, "")
                return
            names: list[str] = []
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(CERTS / "site.pem")
            context.sni_callback = lambda _sock, name, _context: names.append(name or "")
            with context.wrap_socket(sock, server_side=True) as secured:
                self._answer(secured, address, port, "".join(names))

    def _answer(self, sock: socket.socket, address: str, port: int, server_name: str) -> None:
        sock.settimeout(60)
        head = b""
        while b"\r\n\r\n" not in head:
            more = sock.recv(65_536)
            if not more:
                return
            head += more
        lines = head.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        path = lines[0].split(" ")[1]
        sent = Sent(address=address, port=port, path=path, headers=headers, server_name=server_name)
        self.sent.append(sent)
        raw = self.pages.get(headers["host"] + path, self.pages.get("*", page("", status="404 Not Found")))
        for part in [raw] if isinstance(raw, bytes) else raw(sent, self.closing):
            sock.sendall(part)


@contextmanager
def internet() -> Generator[Internet]:
    net = Internet()
    try:
        yield net
    finally:
        net.closing.set()
        for thread in net.threads:
            thread.join(60)
