"""Run scripts from the command line."""

import json
from pathlib import Path

import pytest

from knapper.cli import main
from tests import compiled


@pytest.fixture
def vault(own_home: Path, code_folder: Path, tmp_path: Path) -> Path:
    """Make a vault with a note, and a state folder with machine code."""
    compiled.put(code_folder, own_home / "state")
    made = tmp_path / "vault"
    made.mkdir()
    _ = (made / "Garden.md").write_text("# Garden\n\nWater the tomatoes.\n", encoding="utf-8")
    return made


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "script.py"
    _ = file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_script_prints_its_result(vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = script(tmp_path, "print('looking')\n__result__ = [r['path'] for r in obsidian.search('tomatoes')]")

    code = main.run(["-v", str(vault), "script", file])

    shown = capsys.readouterr()
    assert (code, json.loads(shown.out)) == (0, ["Garden.md"])
    assert shown.err.startswith("looking\n")


@pytest.mark.parametrize("name", ["typo", "Gone"])
@pytest.mark.parametrize("by", ["option", "variable", "file"])
def test_a_vault_that_is_not_there_is_told_as_everywhere_and_no_other_is_taken(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, by: str
) -> None:
    config = tmp_path / "config.toml"
    chosen = f'default_vault = "{name}"\n' if by == "file" else ""
    vaults = f"[vaults.Main]\npath = '{vault}'\n[vaults.Gone]\npath = '{tmp_path / 'gone'}'\n"
    _ = config.write_text(chosen + vaults, encoding="utf-8")
    monkeypatch.setenv("KNAP_CONFIG", str(config))
    if by == "variable":
        monkeypatch.setenv("VAULT_PATH", name)
    named = ["--vault", name] if by == "option" else []

    # Where a configured vault is the default, these serve the others, and need none to list agents.
    for_several = [["agent"], ["serve", "--port", "0"], ["mcp"]] if name == "typo" or by == "option" else []
    errors: list[tuple[int, str]] = []
    for command in (
        ["search", "x"],
        ["script", script(tmp_path, "__result__ = 1")],
        ["run", "Plan the move", "--model", "tiny@http://127.0.0.1:9/v1"],
        ["run", "list"],
        ["tool", "list_notes"],
        *for_several,
    ):
        code = main.run([*command, *named, "--json"])
        shown = json.loads(capsys.readouterr().out)
        errors.append((code, f"{shown['code']}: {shown['error']}"))

    assert set(errors) == {errors[0]}
    assert errors[0][0] == 3
    assert errors[0][1].startswith("no_vault: " if name == "typo" else "vault_missing: ")


def test_a_script_can_call_the_reading_tools(vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = script(
        tmp_path,
        "__result__ = [obsidian.tools.read_file('Garden.md')['content'], 'delete_file' in dir(obsidian.tools)]",
    )

    assert main.run(["-v", str(vault), "script", file]) == 0
    assert json.loads(capsys.readouterr().out) == ["# Garden\n\nWater the tomatoes.\n", False]


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("__result__ = 1", 0, "ok"),
        ("x = (", 2, "syntax"),
        ("1/0", 1, "error"),
        ("import os", 4, "refused"),
        ("__result__ = print", 1, "result"),
        ("while True: pass", 1, "timeout"),
        ("x = 'x' * 10**9", 1, "memory"),
    ],
)
def test_the_exit_code_tells_how_it_ended(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, kind: str
) -> None:
    file, limit_s = script(tmp_path, text), "2" if kind == "timeout" else "60"

    assert main.run(["-v", str(vault), "script", file, "--json", "--timeout", limit_s]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["ok"], told["success"]) == (kind, kind == "ok", kind == "ok")
    assert {"result", "stdout", "error", "wall_s", "peak_mb", "calls"} <= set(told)


@pytest.mark.parametrize(("text", "code"), [("__result__ = 1", 0), ("1/0", 1)])
def test_a_tool_that_answers_that_it_failed_ends_with_1(
    vault: Path, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    ended = main.run(["-v", str(vault), "tool", "run_script", json.dumps({"code": text})])

    assert (ended, json.loads(capsys.readouterr().out)["success"]) == (code, code == 0)


def test_what_a_script_left_as_a_proposal_is_told_however_it_ended(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-v", str(vault), "script"]
    file = script(tmp_path, "__result__ = obsidian.write_note('New.md', 'text')['proposal_id']")
    assert main.run([*command, file]) == 0
    shown = capsys.readouterr()
    failing = script(tmp_path, "obsidian.write_note('Other.md', 'text')\n1/0")
    assert main.run([*command, failing, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)

    assert f"waits for your decision: `knap edits show {json.loads(shown.out)}`\n" in shown.err
    assert [one["vault"] for one in told["proposals"]] == ["vault"]
    assert main.run(["-v", str(vault), "edits", "show", told["proposals"][0]["id"]]) == 0


def test_a_failure_is_told_on_the_error_stream(vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["-v", str(vault), "script", script(tmp_path, "\n1/0")]) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error: the script ended with error: line 2: ZeroDivisionError" in shown.err


def test_folders_are_read_where_the_command_line_allows_them(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    _ = (root / "a.txt").write_text("text", encoding="utf-8")
    file = script(tmp_path, "__result__ = obsidian.read_file('a.txt')")
    command = ["-v", str(vault), "script", file]

    assert main.run([*command, "--profile", "local", "--fs-read", str(root)]) == 0
    assert json.loads(capsys.readouterr().out) == "text"
    assert main.run([*command, "--profile", "local"]) == 1
    assert main.run([*command, "--fs-read", str(root)]) == 1
    assert main.run([*command, "--profile", "local", "--fs-read", str(root / "none")]) == 2


def test_a_host_of_the_command_line_must_be_one(vault: Path, tmp_path: Path) -> None:
    file = script(tmp_path, "__result__ = 1")

    assert main.run(["-v", str(vault), "script", file, "--profile", "extended", "--net-allow", "a b"]) == 3


def test_pages_are_only_got_from_hosts_that_are_allowed(
    vault: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = script(tmp_path, "__result__ = obsidian.http_get('http://127.0.0.1:9/')")

    code = main.run(["-v", str(vault), "script", file, "--profile", "extended", "--net-allow", "example.org"])

    assert code == 1
    assert "ObsidianError" in capsys.readouterr().err


def test_a_file_that_isnt_there_is_an_error(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["-v", str(vault), "script", "none.py"]) == 2
    assert "there is no file 'none.py'" in capsys.readouterr().err
