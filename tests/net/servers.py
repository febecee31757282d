"""A real HTTP server on loopback that says what a test wants."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.net.listeners import Listener, Quiet, running


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


class Server(Listener):
    """Give the replies in turn, the last one again and again."""

    def __init__(self, replies: tuple[Reply | Answerer, ...]) -> None:
        super().__init__(_Handler)
        self.replies = replies
        self.requests: list[Request] = []


class _Handler(Quiet, BaseHTTPRequestHandler):
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
            server.stopping.wait()
        self.wfile.write(reply.body[1:])

    def do_GET(self) -> None:
        self.do_POST()


def serving(*replies: Reply | Answerer) -> AbstractContextManager[Server]:
    return running(Server(replies))
