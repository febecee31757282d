"""How a chat ends whose messages come from a program."""

import io
import sys
from pathlib import Path

import pytest

from knapper.cli import main
from tests.agents import protocol
from tests.agents.protocol import Reply


@pytest.fixture
def vault(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a vault that is the chosen one."""
    (tmp_path / "Garden.md").write_text("# Garden\n", encoding="utf-8")
    monkeypatch.setenv("VAULT_PATH", str(tmp_path))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    return tmp_path


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("more", [[], ["--quiet"]], ids=["loud", "quiet"])
@pytest.mark.parametrize(("reply", "code"), [(Reply(parts=["Yes."]), 0), (Reply(status=401), 3)])
def test_a_program_is_told_how_its_last_message_ended(
    reply: Reply, code: int, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    with protocol.serving(reply) as server:
        ended = main.run(["chat", "--model", f"tiny@{server.base_url}", *more])

    assert ended == code
    assert ("error: " in capsys.readouterr().err) == (code != 0)


@pytest.mark.usefixtures("vault")
def test_a_chat_is_not_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["chat", "--model", "ollama:none", "--json"]) == 2
    assert "`knap ask --json` answers one question" in capsys.readouterr().out
