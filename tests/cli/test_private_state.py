"""Run every command, and look at what it leaves in the state."""

import os
import shlex
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Final

import httpx2
import pytest

from knapper.cli import main
from knapper.cli.main import COMMANDS
from tests import states
from tests.index import worlds
from tests.server import servers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere access lists decide, not modes")

NOTES: Final = {
    "Garden.md": "---\nstatus: open\n---\n# Garden\n\n## Watering\n\nEvery evening, with [[Rain]]. #green\n",
    "Rain.md": "# Rain\n\nIt rains on the tomatoes.\n",
}
LINES: Final = """\
index
search tomatoes
find
ask tomatoes
agent
schedule add weekly-review --daily
schedule edit weekly-review --at 7:30
schedule
run strategies
run list
sessions
presets save mine
presets list
read Garden.md
open Garden.md --print
info Garden.md
new Fresh.md --text hello
write Other.md queries.jsonl
edit Rain.md rains pours
section Garden.md Watering Morning
props Garden.md set status done
tags list
links in Garden.md
move Fresh.md Old.md
rm Old.md
edits list
history
log
undo
trust
connect
clients list
plugin --help
token
token page
tools
tool read_file '{"path": "Rain.md"}'
tool edit_file '{"path": "Rain.md", "old_text": "pours", "new_text": ""}' --client mcp
status
doctor
setup --yes --model none
service install --dry-run
models
e5 --help
config
completion bash
eval --help
script --help
bench --help
mcp install
mcp status --no-try
mcp uninstall --all
mcp --help
watch --help
serve --help
chat --help
"""
"""What needs a server, a terminal, a model or the sandbox's code is tried below, or where it is tested otherwise."""


@pytest.fixture
def vault(own_home: Path) -> Generator[Path]:
    """Make a vault, and let files have the modes that the program gives them."""
    before = os.umask(0)
    yield worlds.fill(own_home / "vault", dict(NOTES)).resolve()
    os.umask(before)


def test_the_list_has_every_command() -> None:
    assert {line.split()[0] for line in LINES.splitlines()} == {row.name for row in COMMANDS}


@pytest.mark.slow
def test_no_command_leaves_state_that_others_can_read(
    vault: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(own_home)
    (own_home / "queries.jsonl").write_text("{}", encoding="utf-8")
    seen: set[str] = set()
    for line in LINES.splitlines():
        code = main.run(["--vault", str(vault), *shlex.split(line)])

        assert states.open_to_others(own_home / "state") == [], line
        assert code in {0, 1}, f"{line}: {capsys.readouterr()}"
        seen |= {path.name for path in (own_home / "state").rglob("*")}
    assert seen >= {"vaults", "server", "taint.db", "index.db", "index.lock"}
    assert seen >= {"journal.db", "proposals.db", "write.lock", "api.token"}


@pytest.mark.slow
def test_no_request_leaves_state_that_others_can_read(vault: Path, own_home: Path) -> None:
    state = own_home / "state"
    with servers.serving(vault, home=own_home) as server, server.client(timeout_s=60) as client:
        document = client.get("/openapi.json").json()
        paths: dict[str, dict[str, object]] = document["paths"]
        asked = [(method, path) for path, methods in paths.items() for method in methods]
        for method, path in asked:
            _ask(client, method, path.replace("{", "").replace("}", ""), None if method == "get" else {})

            assert states.open_to_others(state) == [], (method, path)
        for path, body in (("/chat/sessions", {}), ("/ask", {"question": "tomatoes"}), ("/search", {"query": "rain"})):
            _ask(client, "post", path, body)

            assert states.open_to_others(state) == [], path
        assert len(asked) > 20
        assert (state / "server" / "api.token").is_file()
        assert server.stop(signal.SIGTERM) == 0
    assert states.open_to_others(state) == []


def _ask(client: httpx2.Client, method: str, path: str, body: dict[str, str] | None) -> None:
    with client.stream(method.upper(), path, timeout=20, json=body) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            answer.read()
