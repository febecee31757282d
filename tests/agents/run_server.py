"""A brain on loopback, for runs in other processes; it speaks OpenAI's protocol and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pydantic_ai.models.openai  # noqa: F401  # pyright: ignore[reportUnusedImport] - loaded while tests are collected, so that none pays for it in its time

from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.run_world import Brain, what


@dataclass
class Served:
    brain: Brain
    address: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    wait_s: float = 0
    held_from: int = 0
    """The request from which on none is answered, counted in what was asked; 0 for none."""
    over: threading.Event = field(default_factory=threading.Event)
    begun: int = 0
    """Requests so far."""
    replied: list[float] = field(default_factory=list[float])
    """When each reply was written, by the monotonic clock."""

    def under_way(self, within_s: float) -> int:
        """Count the requests without a reply, and those whose reply was written so little time ago."""
        now = time.monotonic()
        return self.begun - len(self.replied) + sum(at > now - within_s for at in self.replied)

    @property
    def model(self) -> str:
        return f"tiny@{self.address}/v1"


class Handler(BaseHTTPRequestHandler):
    served: Served
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        del format, args

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = request["messages"]
        prompt = next(str(one["content"]) for one in messages if one["role"] == "user")
        kind, task = what(str(messages[0]["content"]), prompt)
        self.served.asked.append((kind, task))
        self.served.begun += 1
        is_held = 0 < self.served.held_from <= len(self.served.asked)
        self.served.over.wait(600 if is_held else self.served.wait_s)
        try:
            self._reply(kind, task, streams=bool(request.get("stream")))
        except OSError:
            return
        finally:
            self.served.replied.append(time.monotonic())

    def _reply(self, kind: str, task: str, *, streams: bool) -> None:
        if streams:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for line in protocol.lines(Reply(parts=[self.served.brain.said(kind, task)])):
                self.wfile.write(f"{line}\n\n".encode())
            return
        message = {"role": "assistant", "content": self.served.brain.said(kind, task)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny"}
        body = json.dumps({**whole, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a program that is killed while it asks."""


@contextmanager
def serving(brain: Brain, *, wait_s: float = 0, held_from: int = 0) -> Generator[Served]:
    """Serve a brain."""
    served = Served(brain=brain, wait_s=wait_s, held_from=held_from)
    server = QuietServer(("127.0.0.1", 0), type("Own", (Handler,), {"served": served}))
    server.daemon_threads = True
    served.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
