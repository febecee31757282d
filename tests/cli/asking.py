"""Serve a vault from a thread as `knap serve` does, and what only pretends to be such a server."""

import contextlib
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from knapper import app, config
from knapper.cli import main
from knapper.server import addresses, credentials, lifecycle, security, terminal
from knapper.server.addresses import ServerRecord
from knapper.server.http import app as http_app
from knapper.server.http import terminal as terminal_routes
from knapper.server.http.app import ServerRuntime
from knapper.server.terminal import TerminalReply
from knapper.server.workers import WorkerThreads

_AS_OF: Final = re.compile(r'"as_of": "[^"]+"')
"""The time of the call itself."""


@dataclass(kw_only=True)
class Shell:
    """Run commands in this process, and note what a server answered."""

    home: Path
    vault: Path
    capsys: pytest.CaptureFixture[bytes]
    replies: list[TerminalReply | None] = field(default_factory=list)
    """Of each time a server was asked."""

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command; gives its exit code and what it printed."""
        self.replies.clear()
        code = main.run(words)
        printed = self.capsys.readouterr()
        out, err = (raw.decode(errors="surrogateescape") for raw in printed)
        return code, _AS_OF.sub('"as_of": "then"', out), err

    @property
    def is_answered(self) -> bool:
        return any(reply is not None and reply.answer is not None for reply in self.replies)

    @property
    def state(self) -> Path:
        return self.home / "state"

    def write(self, name: str, text: str) -> None:
        path = self.vault / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def watch_asking(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Note each reply in *shell*."""
    asked = terminal.ask

    def ask(
        state_dir: str, question: terminal.TerminalQuestion, environment: Mapping[str, str]
    ) -> TerminalReply | None:
        shell.replies.append(asked(state_dir, question, environment))
        return shell.replies[-1]

    monkeypatch.setattr(terminal, "ask", ask)


@dataclass(kw_only=True)
class ServedTerminal:
    """Hold a server in a thread of this process."""

    url: str
    service: terminal_routes.TerminalService
    record: ServerRecord
    key: bytes


@contextlib.contextmanager
def serving(**changes: str) -> Generator[ServedTerminal]:
    """Serve the configured vaults, with its record where commands look for it.

    Args:
        changes: Of the record, such as another version.
    """
    settings = config.load()
    work, ready = ServerRuntime(threads=WorkerThreads(4)), threading.Event()
    bound = addresses.bind_socket("127.0.0.1", 0)
    url = addresses.socket_url(bound)
    with app.open_hub(settings) as hub:
        mount = terminal_routes.mount_terminal(hub, work, url)
        made = http_app.create_app(hub, settings.server, security.load_client_tokens(settings), work, [mount])
        told: dict[str, Any] = {"stop": work.stop, "stop_s": 20, "on_start": ready.set}
        thread = threading.Thread(target=lifecycle.run_uvicorn, args=(made, bound), kwargs=told)
        thread.start()
        assert ready.wait(30)
        record = replace(addresses.make_record(url, work.instance), **changes)
        addresses.write_record(settings.state_dir, record)
        key = credentials.read_or_make_token(settings.state_dir, "terminal").encode()
        service = terminal_routes.TerminalService(hub, work, url, key)
        try:
            yield ServedTerminal(url=url, service=service, record=record, key=key)
        finally:
            work.stop.cancel()
            thread.join()
            work.threads.finish(10)
            bound.close()
            addresses.remove_record(settings.state_dir, record)


@dataclass(kw_only=True)
class Pretender:
    """Hold what listens in a server's place, and what it was told."""

    port: int
    heard: bytearray = field(default_factory=bytearray)
    connections: int = 0


@contextlib.contextmanager
def pretending(state: Path, behave: Callable[[socket.socket], None], **changes: str) -> Generator[Pretender]:
    """Let something else answer where the record of a server says.

    Args:
        state: The state folder, to which a record and a key are written.
        behave: What it does with each connection, from which what it heard is recorded.
        changes: Of the record.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    pretender = Pretender(port=port)
    ended = threading.Event()

    def accept() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                if ended.is_set():
                    connection.close()
                    return
                pretender.connections += 1
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    behave(_Recording(connection, pretender.heard))  # pyright: ignore[reportArgumentType]

    _ = credentials.read_or_make_token(state, "terminal")
    record = addresses.make_record(f"http://127.0.0.1:{port}", "an instance")
    addresses.write_record(state, replace(record, **changes))
    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield pretender
    finally:
        ended.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        thread.join(10)
        listener.close()


class _Recording:
    """A connection that notes what it receives."""

    def __init__(self, connection: socket.socket, heard: bytearray) -> None:
        self._connection, self._heard = connection, heard

    def recv(self, size: int) -> bytes:
        piece = self._connection.recv(size)
        self._heard += piece
        return piece

    def sendall(self, raw: bytes) -> None:
        self._connection.sendall(raw)


def hello(body: bytes, proof: str) -> bytes:
    """Write a reply to the first request."""
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n{terminal.PROOF_HEADER}: {proof}\r\n\r\n"
    return head.encode() + body


def honest_hello(state: Path, port: int, request: bytes) -> bytes:
    """Write what only a server with the key can: a test's pretender that breaks off later needs it."""
    key = (state / "server" / "terminal.token").read_bytes().strip()
    nonce = request.split(b"nonce=")[1][:32]
    facts: dict[str, object] = {
        "instance": "an instance",
        "version": addresses.make_record("http://x", "").version,
        "variables": [],
    }
    body = json.dumps(facts).encode()
    return hello(body, terminal.prove(key, "server", nonce, f"http://127.0.0.1:{port}".encode(), body))


def process_variables() -> dict[str, str]:
    """Return this process's variables, for one that is started."""
    return dict(os.environ)  # noqa: TID251 - a process of its own gets this one's environment
