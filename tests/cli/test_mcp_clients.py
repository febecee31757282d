"""The commands that enter the server into MCP clients, tell of it, and take it out."""

import json
import os
import sys
from pathlib import Path

import pytest

from knapper.cli import main, onboarding
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.server.mcp import clients
from tests.cli import terminals
from tests.cli.terminals import INTERRUPT, Line


@pytest.fixture
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CODEX_HOME", "COPILOT_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(own_home))
    (own_home / ".codex").mkdir()
    (own_home / ".cursor").mkdir()
    return own_home


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main.run([*words])
    return code, capsys.readouterr().out


def test_only_clients_that_are_installed_here_are_offered(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "mcp", "install")
    _, answer = run(capsys, "mcp", "install", "--json")
    options = GlobalOptions(config="")
    around = onboarding.look_around(onboarding.setup.read_settings(options), clients.detect_machine(), home)

    offered, others = text.rsplit("\n", 2)[:2]
    assert code == 0
    assert [line.split()[0] for line in offered.splitlines()] == ["cursor", "codex"]
    assert "gemini-cli" in others
    assert [row["name"] for row in json.loads(answer)["results"] if row["installed"]] == ["cursor", "codex"]
    assert [client.name for client in around.clients] == ["cursor", "codex"]


@pytest.mark.timeout(60)
@pytest.mark.skipif(os.name != "posix", reason="it has no terminals of this kind")
def test_a_person_who_starts_the_server_by_hand_is_told_what_it_waits_for(own_home: Path, tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("# A\n", encoding="utf-8")
    waits = "waiting for an MCP client on standard input"

    ended = terminals.run(["-v", str(tmp_path), "mcp"], [Line(after=waits, text=INTERRUPT)], HOME=str(own_home))

    assert "`knap mcp install` enters it into your clients" in ended.printed
    # A server that serves already ends as when its client goes.
    assert ended.code in {ExitCode.INTERRUPTED, ExitCode.OK}


@pytest.mark.skipif(os.name != "posix", reason="programs need another name there")
def test_a_program_on_the_path_is_a_client_that_is_installed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "gemini").write_text("#!/bin/sh\n", "utf-8")
    (home / "gemini").chmod(0o755)

    text = run(capsys, "mcp", "install")[1]

    assert "gemini-cli" in {line.split()[0] for line in text.splitlines()}


def test_all_clients_lose_the_entry_and_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codex = home / ".codex" / "config.toml"
    codex.write_text('model = "x" # mine\n', "utf-8")
    for name in ("cursor", "codex"):
        assert run(capsys, "-v", str(home), "mcp", "install", name)[0] == 0
    planned = json.loads(run(capsys, "mcp", "uninstall", "--all", "--dry-run", "--json")[1])
    entered = codex.read_text("utf-8")

    code, text = run(capsys, "mcp", "uninstall", "--all")
    again = run(capsys, "mcp", "uninstall", "--all")

    assert "[mcp_servers.knapper]" in entered
    assert [row["client"] for row in planned["results"]] == ["cursor", "codex"]
    assert (code, text.count("took 'knapper' out of")) == (0, 2)
    assert codex.read_text("utf-8") == 'model = "x" # mine\n'
    assert again == (0, "no client has it\n")


def test_a_vault_that_isnt_there_is_entered_nowhere(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["mcp", "install", "cursor", "--vault", "nope"])

    assert code == 3
    assert capsys.readouterr().err.startswith("error: there is no vault and no folder 'nope'")
    assert not (home / ".cursor" / "mcp.json").exists()


def test_one_client_that_cant_be_changed_keeps_no_other_from_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".codex" / "config.toml").write_text("[broken", "utf-8")
    assert run(capsys, "-v", str(home), "mcp", "install", "cursor")[0] == 0

    code, text = run(capsys, "mcp", "uninstall", "--all")

    assert code == 3
    assert "codex: " in text
    assert "isn't TOML" in text
    assert json.loads((home / ".cursor" / "mcp.json").read_bytes()) == {"mcpServers": {}}


@pytest.mark.parametrize("words", [[], ["cursor", "--all"], ["cursor", "codex", "--file", "x"]])
def test_what_is_to_be_taken_out_of_is_named(home: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    del home
    assert main.run(["mcp", "uninstall", *words]) == 2
    assert "--all" in capsys.readouterr().err


def test_a_switched_off_entry_and_one_with_an_address_arent_tried(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".cursor" / "mcp.json").write_text(
        '{"mcpServers": {"knapper": {"url": "http://127.0.0.1:1/mcp"}}}', "utf-8"
    )
    (home / ".codex" / "config.toml").write_text("[mcp_servers.knapper]\ncommand = '/gone'\nenabled = false\n", "utf-8")

    code, text = run(capsys, "mcp", "status", "--json")

    rows = {row["client"]: row for row in json.loads(text)["results"]}
    assert code == 0
    assert (rows["cursor"]["state"], rows["codex"]["state"]) == ("address", "off")
    assert rows["codex"]["command"] == ["/gone"]


def test_what_a_clients_settings_hold_steers_no_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"command": "/gone\x07\x1b[31m", "args": ["\u202e"], "env": {"KEY": "sesame"}}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"knapper": entry}}), "utf-8")

    code, text = run(capsys, "mcp", "status")
    _, as_json = run(capsys, "mcp", "status", "--json")

    assert code == 3
    assert "\x1b" not in text + as_json
    assert "\x07" not in text + as_json
    assert "\u202e" not in text + as_json
    assert "sesame" not in text + as_json


@pytest.mark.parametrize("words", [["mcp", "install", "cursor"], ["setup", "--yes", "--client", "cursor"]])
def test_an_installation_in_a_cache_is_entered_nowhere(
    home: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "Notes").mkdir()
    monkeypatch.setattr(sys, "executable", "/home/ada/.cache/uv/archive-v0/x/bin/python")

    code = main.run(["-v", str(home / "Notes"), *words])
    shown = capsys.readouterr()

    assert code == 3
    assert "uv tool install knapper" in shown.err
    assert list((home / ".cursor").iterdir()) == []
