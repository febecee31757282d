"""Serve a stand-in for Obsidian that loads the built plugin, over a vault's real files."""

import contextlib
import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page

from knapper.cli.plugin import PLUGIN_FOLDER

_PLUGIN: Final = Path(__file__).parents[2] / "plugin"
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


@dataclass(frozen=True, kw_only=True)
class App:
    """A stand-in for Obsidian in one tab."""

    tab: Page
    address: str

    def load(self, note: str = "") -> None:
        """Load the built plugin, as the app does: from its text, with nothing of Node to require."""
        self.tab.goto(f"{self.address}/page.html")
        self.tab.evaluate("code => load(code)", (PLUGIN_FOLDER / "main.js").read_text(encoding="utf-8"))
        if note:
            self.open(note)

    def open(self, note: str) -> None:
        self.tab.evaluate("path => open(path)", note)

    def run(self, command: str) -> None:
        self.tab.evaluate("id => run(id)", command)

    def text(self) -> str:
        return str(self.tab.evaluate("text()"))

    def pair(self, address: str, code: str) -> None:
        """Open the link of `knap connect`, and agree."""
        self.tab.evaluate("said => app.link(said)", {"address": address, "code": code})
        self.tab.get_by_role("button", name="Connect").click()


@contextlib.contextmanager
def running(tab: Page, vault: Path, folder: Path) -> Generator[App]:
    """Serve the stand-in; it needs the packages of plugin/, as its editor is the one that Obsidian has."""
    esbuild = _PLUGIN / "node_modules" / "esbuild" / "package.json"
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on the PATH")
    if not (PLUGIN_FOLDER / "main.js").is_file():
        pytest.skip("the plugin isn't built here: python -m scripts.plugin build")
    if not esbuild.is_file():  # with the built plugin there, a build fetches nothing
        pytest.skip("plugin/ has no packages: python -m scripts.plugin check fetches them")
    stub = folder / "stub.js"
    options = {"entryPoints": ["test/stub.ts"], "bundle": True, "format": "iife", "outfile": str(stub)}
    program = f"import {{ buildSync }} from 'esbuild'; buildSync({json.dumps(options)});"
    command = [node, "--input-type=module", "-e", program]
    _ = subprocess.run(command, cwd=_PLUGIN, check=True)
    files = {
        "/stub.js": stub,
        "/styles.css": PLUGIN_FOLDER / "styles.css",
        "/page.html": _PLUGIN / "test" / "page.html",
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(vault, files))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield App(tab=tab, address=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def _handler(vault: Path, files: dict[str, Path]) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - four small methods of one class
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base class's
            del format, args

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            file = (
                vault / urllib.parse.unquote(path.removeprefix("/vault/"))
                if path.startswith("/vault/")
                else files.get(path)
            )
            if file is None or not file.is_file():
                return self._send(404, b"")
            return self._send(200, file.read_bytes(), _TYPES.get(file.suffix, "text/plain"))

        def do_PUT(self) -> None:
            file = vault / urllib.parse.unquote(self.path.removeprefix("/vault/"))
            _ = file.write_bytes(self._body())
            return self._send(204, b"")

        def do_POST(self) -> None:
            asked = json.loads(self._body())
            data = None if asked["body"] is None else asked["body"].encode()
            request = urllib.request.Request(asked["url"], data, asked["headers"], method=asked["method"])
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                with opener.open(request, timeout=60) as answer:
                    self._send(answer.status, answer.read(), answer.headers.get_content_type())
            except urllib.error.HTTPError as error:
                self._send(error.code, error.read(), error.headers.get_content_type())
            except OSError:
                self._send(502, b"", extra={"x-unreachable": "1"})

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("content-length", "0")))

        def _send(
            self, status: int, body: bytes, kind: str = "text/plain", extra: dict[str, str] | None = None
        ) -> None:
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("content-type", f"{kind}; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                for name, value in (extra or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                _ = self.wfile.write(body)

    return Handler
