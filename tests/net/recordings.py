"""A server on loopback that speaks the protocol of transcriptions, and says what a test wants."""

import email
import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler

from tests.net.listeners import Listener, Quiet, running

SPOKEN = {"text": "Good morning."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes | dict[str, object] = field(default_factory=lambda: dict[str, object](SPOKEN))
    hang: bool = False
    """Say nothing before the server stops."""
    repeat: int = 1
    """Send the body so often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    path: str
    headers: Mapping[str, str]
    fields: Mapping[str, str]
    file: str
    media_type: str
    digest: str


class Server(Listener):
    """Give the replies in turn, the last one again and again."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        super().__init__(_Handler)
        self.replies = replies
        self.uploads: list[Upload] = []

    @property
    def url(self) -> str:
        return f"{super().url}/v1"


class _Handler(Quiet, BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        reply = server.replies[min(len(server.uploads), len(server.replies) - 1)]
        server.uploads.append(_parsed(self))
        if reply.hang:
            server.stopping.wait()
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(body) * reply.repeat))
        self.end_headers()
        for _ in range(reply.repeat):
            self.wfile.write(body)


def _parsed(handler: BaseHTTPRequestHandler) -> Upload:
    sent = handler.rfile.read(int(handler.headers["Content-Length"]))
    kind = handler.headers["Content-Type"]
    whole = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + sent)
    parts = [part for part in whole.walk() if not part.is_multipart()]
    fields = {_named(part): _bytes(part).decode() for part in parts if part.get_filename() is None}
    file = next(part for part in parts if part.get_filename() is not None)
    return Upload(
        path=handler.path,
        headers=dict(handler.headers),
        fields=fields,
        file=file.get_filename() or "",
        media_type=file.get_content_type(),
        digest=hashlib.sha256(_bytes(file)).hexdigest(),
    )


def _named(part: Message) -> str:
    return str(part.get_param("name", header="content-disposition"))


def _bytes(part: Message) -> bytes:
    sent = part.get_payload(decode=True)
    return sent if isinstance(sent, bytes) else b""


def listening(*replies: Reply) -> AbstractContextManager[Server]:
    return running(Server(replies or (Reply(),)))
