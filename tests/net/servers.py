"""A real HTTP server on loopback that says what a test wants."""

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    hang: bool = False
    """Send the first byte of the body, and the rest not before the server stops."""


Payload = dict[str, Any]
Answerer = Callable[[Payload], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    path: str
    headers: Mapping[str, str]
    json: Payload


class Server(ThreadingHTTPServer):
    """Give the replies in turn, the last one again and again."""

    def __init__(self, replies: tuple[Reply | Answerer, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = replies
        self.requests: list[Request] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent: Payload = json.loads(raw) if raw and "json" in self.headers.get("Content-Type", "") else {}
        reply = server.replies[min(len(server.requests), len(server.replies) - 1)]
        server.requests.append(Request(path=self.path, headers=dict(self.headers), json=sent))
        reply = reply if isinstance(reply, Reply) else reply(sent)
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body[:1])
        if reply.hang:
            self.wfile.flush()
            server.stopping.wait(5)
        self.wfile.write(reply.body[1:])

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the method that it replaces
        """Keep the tests' output clean."""


@contextmanager
def serving(*replies: Reply | Answerer) -> Generator[Server]:
    with Server(replies) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
