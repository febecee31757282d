"""How a process that speaks over a pipe ends: with nothing broken off, and when it is told to."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.tools import opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SLOW = """
import sys, time
from pathlib import Path
from typing import Annotated
from typing_extensions import TypedDict
from knapper.app import Hub, tables
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.server.mcp import stdio
from knapper.server.mcp.session import ToolListing
from knapper.tools.registry import ToolSpec, ToolTable
from knapper.tools.shapes import Answer

base = Path(sys.argv[1])
stdio._SHUTDOWN_S = float(sys.argv[3])

class Waited(TypedDict):
    success: bool

def wait(context) -> Annotated[Answer, Waited]:
    "Take a while, and then read the index."
    (base / "began").touch()
    time.sleep(float(sys.argv[2]))
    notes = context.index.status().notes
    (base / "ended").write_text(str(notes))
    return {"success": True}

class SlowHub(Hub):
    @property
    def table(self):
        specs = tables.build_table(self.vaults).specs
        return ToolTable([*specs, ToolSpec(function=wait)], self.vaults)

found = Settings(
    choice=Vault(name="v", path=base / "vault"), state_dir=base / "state", embeddings=EmbeddingSettings(kind="none"),
    config_file=base / "config.toml",
)
with SlowHub(found) as hub:
    stdio.serve_stdio(hub, "mcp", ToolListing(choice="full"), watch=False)
(base / "closed").touch()
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@contextlib.contextmanager
def started(base: Path, seconds: float, finish_s: float = 60) -> Generator["subprocess.Popen[bytes]"]:
    """Start a server with a tool that takes a while, and that is waited for so long at the end; and greet it."""
    _ = opened.vault(base, {"Rain.md": "# Rain\n"})
    server = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(base), str(seconds), str(finish_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    send(server, 1, "initialize", HELLO)
    assert server.stdout is not None
    try:
        assert json.loads(server.stdout.readline())["id"] == 1
        yield server
    finally:
        server.kill()
        _ = server.communicate()


def send(server: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, Any]) -> None:
    assert server.stdin is not None
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def call_and_wait_until_it_begins(server: "subprocess.Popen[bytes]", base: Path) -> None:
    send(server, 2, "tools/call", {"name": "wait", "arguments": {}})
    until = time.monotonic() + 60
    while not (base / "began").exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_call_that_runs_comes_to_its_end_when_the_client_has_gone(tmp_path: Path) -> None:
    with started(tmp_path, 1.5) as server:
        call_and_wait_until_it_begins(server, tmp_path)
        _ = server.communicate(timeout=60)

    assert server.returncode == 0
    assert (tmp_path / "ended").stat().st_mtime_ns <= (tmp_path / "closed").stat().st_mtime_ns


def test_a_call_that_never_ends_doesnt_keep_the_process(tmp_path: Path) -> None:
    with started(tmp_path, 600, 1) as server:
        call_and_wait_until_it_begins(server, tmp_path)
        _ = server.communicate(timeout=60)

    assert server.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there a signal can't be sent to one process alone")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_it_though_the_client_is_still_there(tmp_path: Path, name: str) -> None:
    with started(tmp_path, 1.5) as server:
        call_and_wait_until_it_begins(server, tmp_path)
        server.send_signal(getattr(signal, name))
        code = server.wait(60)

    assert code == 0
    assert (tmp_path / "ended").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is told otherwise there")
def test_a_client_that_only_stops_listening_ends_it_without_a_word(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Rain.md": "# Rain\n"})
    line = [sys.executable, "-P", "-m", "knapper.cli", "mcp", "--no-watch", "--vault", str(vault.root)]
    environment = {"KNAP_STATE_DIR": str(vault.state), "KNAP_EMBEDDINGS": "none", "HOME": str(vault.state)}

    with subprocess.Popen(line, stdin=-1, stdout=-1, stderr=-1, env=environment) as server:
        send(server, 1, "initialize", HELLO)
        assert server.stdout is not None
        assert server.stderr is not None
        assert json.loads(server.stdout.readline())["id"] == 1
        server.stdout.close()
        send(server, 2, "tools/list", {})
        code = server.wait(60)
        log = server.stderr.read()

    assert (code, log) == (0, b"")


def test_nothing_else_waits_for_the_client_or_takes_its_messages() -> None:
    # On Windows, loading numpy's libraries looks at the standard input, and waited for the client's next message.
    code = (
        "import os, subprocess, sys; from knapper.server.mcp.stdio import take_stdin; own = take_stdin()\n"
        "child = subprocess.run([sys.executable, '-c', 'import sys; print(sys.stdin.read())'], capture_output=True)\n"
        "print([os.read(0, 100), child.stdout.strip(), own.readline(), own.readline()])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], input=b"one\ntwo\n", capture_output=True, check=True)

    assert ended.stdout.decode().strip() == r"[b'', b'', b'one\n', b'two\n']"
