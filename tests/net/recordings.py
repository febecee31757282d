"""A server on loopback that speaks the protocol of transcriptions, and says what a test wants."""

import email
import hashlib
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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


class Listener(ThreadingHTTPServer):
    """Give the replies in turn, the last one again and again."""

    daemon_threads = True

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = replies
        self.uploads: list[Upload] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Listener)
        reply = server.replies[min(len(server.uploads), len(server.replies) - 1)]
        server.uploads.append(_parsed(self))
        if reply.hang:
            server.stopping.wait(5)
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(body) * reply.repeat))
        self.end_headers()
        for _ in range(reply.repeat):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the method that it replaces
        """Keep the tests' output clean."""


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


@contextmanager
def listening(*replies: Reply) -> Generator[Listener]:
    with Listener(replies or (Reply(),)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
