"""What runs as a service, and on which machine."""

import sys
from pathlib import Path

import pytest

from knapper.errors import SetupError, StorageError
from knapper.service import definition
from knapper.service.definition import SystemRunner


@pytest.mark.parametrize(
    "executable",
    [
        "/home/ada/.cache/uv/archive-v0/x1/bin/python",
        "/home/ada/.cache/uv/environments-v2/x1/bin/python",
        "/home/ada/.local/pipx/.cache/abc/bin/python",
    ],
)
def test_an_environment_that_is_deleted_some_day_is_refused(executable: str) -> None:
    with pytest.raises(SetupError, match="emptied some day") as refused:
        definition.find_program(executable, system="linux")

    assert "uv tool install knapper" in refused.value.hint


def test_the_path_of_a_virtual_environment_is_not_resolved(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)

    assert definition.find_program(str(python), system="linux") == [str(python), "-P", "-m", "knapper.cli"]


@pytest.mark.parametrize("has_windowless", [True, False])
def test_on_windows_no_console_opens_where_that_can_be(tmp_path: Path, *, has_windowless: bool) -> None:
    (tmp_path / "pythonw.exe").touch() if has_windowless else None

    program = definition.find_program(str(tmp_path / "python.exe"), system="windows")

    assert program[0] == str(tmp_path / ("pythonw.exe" if has_windowless else "python.exe"))


def test_a_program_that_speaks_by_its_streams_keeps_the_console(tmp_path: Path) -> None:
    (tmp_path / "pythonw.exe").touch()

    program = definition.find_program(str(tmp_path / "python.exe"), system="windows", needs_streams=True)

    assert program[0] == str(tmp_path / "python.exe")


def test_a_command_is_run_without_a_shell() -> None:
    result = SystemRunner().run([sys.executable, "-c", "import sys; print(sys.argv[1]); sys.exit(3)", "$HOME; *"])

    assert (result.code, result.stdout.strip()) == (3, "$HOME; *")


def test_a_system_without_that_program_is_told_what_to_do() -> None:
    with pytest.raises(SetupError, match="no program 'no-such-manager'") as refused:
        SystemRunner().run(["no-such-manager", "x"])

    assert "knap serve" in refused.value.hint


def test_a_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition, "_RUN_S", 0.2)

    with pytest.raises(StorageError, match="didn't end within"):
        SystemRunner().run([sys.executable, "-c", "import time; time.sleep(60)"])


def test_a_definition_that_cannot_be_written_leaves_the_older_one(tmp_path: Path) -> None:
    file = tmp_path / "units" / "a"
    definition.write_definition(file, b"first")
    (tmp_path / "units" / ".a.new").mkdir()

    with pytest.raises(StorageError, match="can't be written"):
        definition.write_definition(file, b"second")

    assert file.read_bytes() == b"first"


def test_the_facts_are_this_machines() -> None:
    facts = definition.detect_machine()

    assert facts.home == Path.home()
    assert facts.user
    assert "knapper" in str(facts.logs).lower()
