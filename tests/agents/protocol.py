"""A server on loopback that speaks OpenAI's protocol, as a test tells it to."""

import contextlib
import json
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents.scripted import Call, Said


@dataclass(frozen=True)
class Reply:
    """One answer to a request for a completion."""

    parts: Sequence[Said] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: Sequence[str] | None = None
    """Lines of the stream, or of the whole reply, in place of well-formed ones."""
    hang_s: float = 0
    """How long nothing comes after the first part; for who asks for the whole, at all."""
    cut: bool = False
    """Whether the connection ends without an end of the stream."""
    error: object = None
    """The body of a refusal, in place of a plain one."""


@dataclass
class Server:
    replies: Sequence[Reply]
    address: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    listed: Sequence[bytes | None] = ()
    """Parts of the list of models in place of a well-formed one; None for one that comes bit by bit without end."""
    sent: list[int] = field(default_factory=list[int])
    """Sizes of the list's parts that were taken."""
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"


def lines(reply: Reply) -> Iterator[str]:
    if reply.raw is not None:
        yield from reply.raw
        return
    for number, part in enumerate(reply.parts):
        yield f"data: {json.dumps(chunk(delta(part, number)))}"
    if not reply.cut:
        kind = "tool_calls" if any(isinstance(part, Call) for part in reply.parts) else "stop"
        yield f"data: {json.dumps(chunk({}, finish=kind))}"
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        yield f"data: {json.dumps({**chunk({}), 'choices': [], 'usage': usage})}"
        yield "data: [DONE]"


def delta(part: Said, number: int) -> dict[str, object]:
    if isinstance(part, str):
        return {"role": "assistant", "content": part}
    arguments = part.arguments if isinstance(part.arguments, str) else json.dumps(part.arguments)
    called = {"name": part.name, "arguments": arguments}
    return {
        "tool_calls": [{"index": number, "id": part.id or f"call-{number}", "type": "function", "function": called}]
    }


def chunk(delta: Mapping[str, object], *, finish: str | None = None) -> dict[str, object]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": choices}


class Handler(BaseHTTPRequestHandler):
    told: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        del format, args

    def do_GET(self) -> None:
        self.told.paths.append(self.path)
        self.told.keys.append(self.headers.get("Authorization", ""))
        if self.told.listed:
            with contextlib.suppress(OSError):  # whoever asked may have had enough
                self._list()
            return
        found: dict[str, object] = {"object": "list", "data": [{"id": "tiny"}, {"id": "other"}]}
        if self.path == "/api/tags":
            found = {"models": [{"name": "qwen3:latest"}]}
        self._send(200, json.dumps(found).encode(), {})

    def _list(self) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for part in self.told.listed:
            while part is None and not self.told.over.wait(0.05):
                self.wfile.write(b" ")
            self.told.sent.append(self.wfile.write(part or b""))

    def do_POST(self) -> None:
        self.told.paths.append(self.path)
        self.told.keys.append(self.headers.get("Authorization", ""))
        self.told.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        reply = self.told.replies[min(len(self.told.asked), len(self.told.replies)) - 1]
        if reply.status != 200:
            plain = {"error": {"message": f"status {reply.status}", "type": "x"}}
            body = json.dumps(reply.error or plain).encode()
            self._send(reply.status, body, reply.headers)
        elif not self.told.asked[-1].get("stream"):
            text = "".join(part for part in reply.parts if isinstance(part, str))
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            whole = {**chunk({}), "object": "chat.completion", "choices": [choice], "usage": usage}
            if reply.hang_s:
                self.told.over.wait(reply.hang_s)
            body = json.dumps(whole) if reply.raw is None else "\n".join(reply.raw)
            with contextlib.suppress(OSError):  # whoever asked may have gone meanwhile
                self._send(200, body.encode(), {})
        else:
            self._stream(reply)

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for number, line in enumerate(lines(reply)):
            if reply.hang_s and number == 1:
                self.told.over.wait(reply.hang_s)
            try:
                self.wfile.write(f"{line}\n\n".encode())
                self.wfile.flush()
            except OSError:
                return

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(*replies: Reply, listed: Sequence[bytes | None] = ()) -> Generator[Server]:
    """Serve the replies in turn, the last one again and again."""
    told = Server(replies=replies, listed=listed)

    handler = type("Own", (Handler,), {"told": told})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    told.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        told.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def wait_for(what: object, *, seconds: float = 5) -> None:
    """Wait until a list holds something."""
    deadline = time.monotonic() + seconds
    while not what and time.monotonic() < deadline:
        time.sleep(0.01)
