"""`knap config set`, `unset` and `edit`."""

import json
import sys
from pathlib import Path

import pytest

from knapper.cli import main


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("KNAP_CONFIG", str(path))
    return path


def test_a_setting_is_set_shown_and_removed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = [main.run(["config", "set", "server.port", "9000"]), main.run(["config", "set", "server.port", "9000"])]
    first, second = capsys.readouterr().out.splitlines()
    main.run(["config", "--json"])
    shown = json.loads(capsys.readouterr().out)["settings"]["server.port"]
    removed = main.run(["config", "unset", "server.port", "--json"])

    assert (codes, first, second) == ([0, 0], f"wrote {file}", f"{file} says so already")
    assert shown["value"] == "9000"
    assert removed == 0
    assert json.loads(capsys.readouterr().out)["changed"] is True
    assert "9000" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["server.prot", "9000"], 2, "did you mean 'server.port'?"),
        (["modl.name", "x"], 2, "there is no setting 'modl.name'\nhint: did you mean 'model.name'?"),
        (["model.name.x", "x"], 2, "did you mean 'model.name'?"),
        (
            ["model", "x"],
            2,
            "hint: name one of its settings, such as model.name",
        ),
        (["vaults.notes", "x"], 2, "such as vaults.notes.path"),
        (["vaults", "x"], 2, "such as vaults.NAME.path"),
        (["server.port", "many"], 2, "whole number"),
        (["server port", "1"], 2, "knap config"),
        (["embeddings.kind", "magic"], 3, "static"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert main.run(["config", "set", *arguments]) == code
    err = capsys.readouterr().err
    assert words in err
    assert ".toml:" not in err  # no line of a file that isn't written
    assert not file.exists()


def test_a_fault_that_the_file_has_already_is_told_with_its_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('[model]\nnmae = "x"\n[server]\nport = 70000\n', encoding="utf-8")

    assert main.run(["config", "set", "web.max_pages", "5"]) == 3
    assert f"there is no setting 'model.nmae' ({file}:2)" in capsys.readouterr().err
    assert main.run(["config", "unset", "model.nmae"]) == 3
    assert f"server.port in {file} must be" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("modl.name", 2, "did you mean 'model.name'?"),
        ("vaults.notes.pth", 2, "did you mean 'vaults.notes.path'?"),
        ("model.name", 0, ""),
        ("model", 0, ""),
        ("vaults.notes", 0, ""),
    ],
)
def test_a_mistyped_name_to_remove_is_told(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, words: str
) -> None:
    assert main.run(["config", "unset", name]) == code
    assert words in capsys.readouterr().err
    assert not file.exists()


def test_a_name_that_no_setting_has_is_removed_from_the_file(file: Path) -> None:
    file.write_text('modl = "x"\n', encoding="utf-8")

    assert main.run(["config", "unset", "modl"]) == 0
    assert not file.read_text(encoding="utf-8")


def test_an_editor_that_fails_is_told_with_the_file(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor-here")

    assert main.run(["config", "edit"]) == 3
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"or change {file} yourself")


def no_editor(filename: str) -> None:
    pytest.fail(f"an editor was opened for {filename}")


def test_without_a_terminal_only_an_editor_that_is_named_is_opened(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.setattr("click.edit", no_editor)

    assert main.run(["config", "edit"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "error: there is no terminal to edit in",
        f"hint: name an editor with a window in VISUAL, or use `knap config set`; the file is {file}",
    ]


@pytest.mark.parametrize(("text", "code"), [("server.port = 9000", 0), ("server.prot = 9000", 3)])
def test_the_file_is_checked_after_the_editor(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(f"import sys\nopen(sys.argv[1], 'w').write('{text}')\n", encoding="utf-8")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")

    assert main.run(["config", "edit"]) == code
    assert file.read_text(encoding="utf-8") == text
