"""`knap completion install`: where each shell's script goes, and that all of it can be taken away again."""

import json
import os
from pathlib import Path

import pytest

from knapper.cli import main
from knapper.cli.commands import completion
from knapper.cli.commands.completion import SHELLS, Shell
from knapper.errors import BadInput, StorageError

RC = "export A=1\nalias k=knap"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_as_it_is(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["completion", shell]) == 0
    assert capsys.readouterr().out == completion.read_script(shell)


@pytest.mark.parametrize(
    ("shell", "script", "rc"),
    [
        ("fish", ".config/fish/completions/knap.fish", ""),
        ("bash", ".local/share/knapper/completion/knap.bash", ".bashrc"),
        ("zsh", ".local/share/knapper/completion/knap.zsh", ".zshrc"),
    ],
)
def test_what_is_installed_is_named_and_taken_away_again(tmp_path: Path, shell: Shell, script: str, rc: str) -> None:
    home = tmp_path / "it's home Ж"
    home.mkdir()
    if rc:
        (home / rc).write_text(RC, encoding="utf-8")
    places = completion.find_places(shell, {}, home, marks=())

    changed = completion.install_script(shell, places)
    again = completion.install_script(shell, places)

    assert changed == [home / script, *([home / rc] if rc else [])]
    assert again == []
    assert (home / script).read_text(encoding="utf-8") == completion.read_script(shell)
    if rc:
        assert (home / rc).read_text(encoding="utf-8").startswith(f"{RC}\n[ -r ")
        assert (home / rc).read_text(encoding="utf-8").count(completion.MARK) == 1
    assert completion.remove_script(places) == changed
    assert completion.remove_script(places) == []
    if rc:
        assert (home / rc).read_text(encoding="utf-8") == f"{RC}\n"


def test_bash_finds_the_script_by_its_name_where_it_has_bash_completion(tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    places = completion.find_places("bash", {"XDG_DATA_HOME": "relative"}, tmp_path, marks=[str(tmp_path / "mark")])

    assert places.script == tmp_path / ".local/share/bash-completion/completions/knap"
    assert places.rc_file is None


def test_folders_that_variables_name_are_used(tmp_path: Path) -> None:
    variables = {
        "XDG_CONFIG_HOME": str(tmp_path / "c"),
        "XDG_DATA_HOME": str(tmp_path / "d"),
        "ZDOTDIR": str(tmp_path / "z"),
    }

    assert completion.find_places("fish", variables, tmp_path).script == tmp_path / "c/fish/completions/knap.fish"
    zsh = completion.find_places("zsh", variables, tmp_path)
    assert (zsh.script.parts[-4], zsh.rc_file) == ("d", tmp_path / "z/.zshrc")
    powershell = completion.find_places("powershell", variables, tmp_path)
    assert powershell.rc_file is not None
    assert powershell.line.startswith(". '")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_linked_file_of_settings_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/bashrc").write_text(RC, encoding="utf-8")
    (tmp_path / ".bashrc").symlink_to("dotfiles/bashrc")
    places = completion.find_places("bash", {}, tmp_path, marks=())

    completion.install_script("bash", places)
    completion.remove_script(places)

    assert (tmp_path / ".bashrc").is_symlink()
    assert (tmp_path / "dotfiles/bashrc").read_text(encoding="utf-8") == f"{RC}\n"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("a file in the way", encoding="utf-8")

    with pytest.raises(StorageError, match="can't be written"):
        completion.install_script("zsh", completion.find_places("zsh", {}, tmp_path))


@pytest.mark.parametrize(
    ("shell", "name"),
    [("/bin/bash", "bash"), ("/usr/local/bin/zsh", "zsh"), ("/usr/bin/fish", "fish"), ("pwsh", "powershell")],
)
def test_the_persons_shell_is_found(shell: str, name: str) -> None:
    assert completion.detect_shell({"SHELL": shell}, is_windows=False) == name


def test_without_a_shell_that_is_known_the_way_is_told() -> None:
    assert completion.detect_shell({}, is_windows=True) == "powershell"
    for variables in ({}, {"SHELL": "/bin/tcsh"}):
        with pytest.raises(BadInput) as refused:
            completion.detect_shell(variables, is_windows=False)
        assert "bash|zsh|fish|powershell" in refused.value.hint


def test_the_command_says_what_it_did_and_how_to_undo_it(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    script = own_home / ".config/fish/completions/knap.fish"

    assert main.run(["completion", "install"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"wrote {script}\n"
    assert "knap completion uninstall fish" in shown.err
    assert main.run(["completion", "uninstall", "fish", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == [str(script)]
    assert not script.exists()
