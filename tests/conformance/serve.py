"""Serve the product, or the conformance suite's fixtures, on the product's own app; prints the port.

``python -m tests.conformance.serve product|fixtures`` runs until it is ended. The suite can't show a token, so what
stands before the app adds one; every other check, of Host and Origin too, is the product's.
"""

import logging
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from knapper.app import open_hub
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.config.sections import ServerSettings
from knapper.server import credentials, lifecycle, security
from knapper.server.http import app
from knapper.server.http.app import Mount, mount_asgi
from knapper.server.mcp import http
from knapper.server.workers import StopSignal, WorkerThreads
from tests.conformance import fixtures

NOTES = {"Garden.md": "# Garden\n\nTomatoes.\n", "Rain.md": "# Rain\n\nIt rains on [[Garden]].\n"}


class Shown:
    """Add the token to every request."""

    def __init__(self, asked: ASGIApp, token: str) -> None:
        self._asked = asked
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._asked(scope, receive, send)


def make(folder: Path, which: str, port: int) -> ASGIApp:
    """Make the app over a small vault in *folder*."""
    root = folder / "vault"
    root.mkdir()
    for name, text in NOTES.items():
        (root / name).write_text(text, "utf-8")
    server = replace(ServerSettings(requests_per_minute=0), port=port)
    settings = Settings(
        choice=Vault(name="v", path=root.resolve()),
        state_dir=folder / "state",
        embeddings=EmbeddingSettings(kind="none"),
        config_file=folder / "config.toml",
        server=server,
    )
    hub = open_hub(settings)
    threads = WorkerThreads(server.threads)
    mount = lifecycle.mount_mcp(hub, threads, StopSignal()) if which == "product" else _mount_fixtures()
    made = app.create_app(
        hub, server, security.load_client_tokens(settings), app.ServerRuntime(threads=threads), [mount]
    )
    return Shown(made, credentials.read_or_make_token(settings.state_dir, "api"))


def _mount_fixtures() -> Mount:
    served = http.wrap_server(fixtures.make())

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        async with served.router.lifespan_context(served):
            yield

    return mount_asgi(security.MCP_PATH, served, lifespan)


def main() -> None:
    """Serve until ended."""
    logging.disable(logging.ERROR)
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        made = make(Path(folder), sys.argv[1], port)
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(made, log_level="critical")).run(sockets=[taken])


if __name__ == "__main__":
    main()
