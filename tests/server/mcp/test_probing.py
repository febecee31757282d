"""A server is tried as a client starts it, and what fails is told with the way out."""

import json
import os
import sys
from pathlib import Path

import pytest

from knapper.cli import launching, main
from knapper.server.mcp import clients, install
from knapper.server.mcp.clients import ServerLaunch
from knapper.server.mcp.install import InstallRequest
from tests.index import worlds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ANSWERING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        result = {"serverInfo": {"name": "fake", "version": "1"}, "capabilities": {}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "find_notes"}]}
    elif asked["method"] == "tools/call":
        result = RESULT
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
GOOD = '{"structuredContent": {"success": True, "total": 3}}'


def launch(code: str, **variables: str) -> ServerLaunch:
    return ServerLaunch(command=(sys.executable, "-c", code), environment=variables)


def test_a_server_that_answers_is_told_with_what_it_found() -> None:
    result = launching.probe(launch(ANSWERING.replace("RESULT", GOOD)), timeout_s=60)

    assert (result.state, result.text, result.server, result.tools) == ("ok", "3 notes", "fake 1", 1)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "import sys; sys.exit('no vault is configured')",
            "ended before it answered initialize: no vault is configured",
        ),
        ("import sys; sys.exit('error: no vault\\nhint: name one')", "before it answered initialize: error: no vault"),
        ("print('hello', flush=True)\nimport time; time.sleep(60)", "doesn't speak MCP"),
        ("print('[' * 100_000, flush=True)\nimport time; time.sleep(60)", "doesn't speak MCP"),
        (
            ANSWERING.replace("RESULT", '{"isError": True, "content": [{"type": "text", "text": "it broke"}]}'),
            "find_notes failed: it broke",
        ),
        (
            ANSWERING.replace(
                "RESULT", '{"content": [{"text": json.dumps({"success": False, "error": "no", "hint": "h"})}]}'
            ),
            "find_notes failed: no",
        ),
    ],
)
def test_what_fails_is_told_in_the_servers_own_words(code: str, text: str) -> None:
    result = launching.probe(launch(code), timeout_s=60)

    assert result.state == "failed"
    assert text in result.text
    assert result.hint


def test_a_command_that_isnt_there_is_told(tmp_path: Path) -> None:
    result = launching.probe(ServerLaunch(command=(str(tmp_path / "gone"),), environment={}), timeout_s=10)

    assert result.state == "failed"
    assert "gone" in result.text
    assert "knap mcp install" in result.hint


def test_a_server_that_says_nothing_is_ended_in_time(tmp_path: Path) -> None:
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    result = launching.probe(launch(code), timeout_s=5)

    assert "no answer to initialize in time" in result.text
    if sys.platform != "win32":
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text("utf-8")), 0)


def test_only_what_clients_hand_on_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_KEY", "sesame")
    told = "{'structuredContent': {'success': False, 'error': ' '.join(sorted(__import__('os').environ))}}"

    result = launching.probe(launch(ANSWERING.replace("RESULT", told), OWN="1"), timeout_s=60)

    assert "OWN" in result.text.split()
    assert "MY_SECRET_KEY" not in result.text


def test_a_configured_client_makes_its_first_call(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = worlds.fill(tmp_path / "vault", {"Rain.md": "# Rain\n"}).resolve()
    for name in (".cursor", ".gemini", ".lmstudio"):
        (own_home / name).mkdir()
    assert main.run(["-v", str(vault), "index"]) == 0
    assert main.run(["-v", str(vault), "mcp", "install", "cursor"]) == 0
    settings = own_home / ".cursor" / "mcp.json"
    entry = json.loads(settings.read_bytes())["mcpServers"]["knapper"]
    # An installed package needs no such variable; the source that is tested does.
    request = InstallRequest(
        command=[entry["command"], *entry["args"]],
        environment={**entry.get("env", {}), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    install.install(clients.find_client("cursor"), request, settings)
    (own_home / ".gemini" / "settings.json").write_text(
        '{"mcpServers": {"knapper": {"command": "/gone"}}} // mine', "utf-8"
    )
    _ = capsys.readouterr()

    code = main.run(["mcp", "status", "--json", "--timeout", "150"])
    rows = {row["client"]: row for row in json.loads(capsys.readouterr().out)["results"]}
    _ = main.run(["mcp", "status", "--no-try"])
    printed = capsys.readouterr().out

    assert code == 3
    assert (rows["cursor"]["state"], rows["cursor"]["tools"]) == ("ok", 30)
    assert rows["cursor"]["text"] == "1 note"
    assert (rows["gemini-cli"]["state"], rows["gemini-cli"]["configured"]) == ("failed", True)
    assert "knap mcp install gemini-cli" in rows["gemini-cli"]["hint"]
    assert (rows["lm-studio"]["state"], rows["lm-studio"]["installed"]) == ("none", True)
    assert (rows["codex"]["state"], rows["codex"]["installed"]) == ("none", False)
    assert "not connected: knap mcp install lm-studio" in printed
    assert "Codex" not in printed
