"""How commands get on with closed and empty streams, and with terminals that know nothing."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from knapper.cli import main
from tests.cli import terminals


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault with one note."""
    (tmp_path / "Garden.md").write_text("# Garden\n\nWater the tomatoes.\n", encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="the shell there can't close a stream")
@pytest.mark.parametrize("command", [["new", "New.md", "--text", "-"], ["write", "New.md", "-"]])
def test_a_standard_input_that_was_closed_is_an_empty_one(command: list[str], vault: Path) -> None:
    closing = ["sh", "-c", '"$@" <&-', "sh"]
    ended = subprocess.run(
        [*closing, *terminals.KNAP, "-v", str(vault), *command], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert (vault / "New.md").read_bytes() == b""


@pytest.mark.parametrize(
    "command",
    [
        ["edit", "Garden.md", "--at", "replace:3", "-"],
        ["section", "Garden.md", "Garden", "-", "--body"],
        ["section", "Garden.md", "Garden", "-", "--replace"],
    ],
    ids=["edit", "body", "replace"],
)
def test_text_is_not_replaced_by_an_input_into_which_nothing_was_written(
    command: list[str], vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (vault / "Garden.md").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))
    code = main.run(["-v", str(vault), *command])

    assert (code, capsys.readouterr().err.splitlines()[0]) == (2, "error: the standard input holds nothing")
    assert (vault / "Garden.md").read_bytes() == before


def test_no_text_is_given_as_an_empty_argument(vault: Path) -> None:
    assert main.run(["-v", str(vault), "section", "Garden.md", "Garden", "", "--body"]) == 0
    assert b"tomatoes" not in (vault / "Garden.md").read_bytes()


@pytest.mark.parametrize(("term", "coloured"), [("xterm", True), ("dumb", False), ("unknown", False)])
def test_a_terminal_that_knows_no_colours_gets_none(term: str, *, coloured: bool, vault: Path) -> None:
    printed = terminals.run(["-v", str(vault), "search", "tomatoes"], [], TERM=term).printed

    assert "tomatoes" in printed
    assert ("\x1b[" in printed) == coloured
