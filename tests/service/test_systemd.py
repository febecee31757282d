"""A user unit of systemd: its text, and the commands that install and remove it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from knapper.errors import BadInput, SetupError
from knapper.service.definition import CommandResult, ServiceDefinition
from knapper.service.platforms import UNIT, SystemdManager
from tests.service import machines
from tests.service.machines import RecordingRunner

GOLDEN = Path(__file__).parent / "golden" / "knapper.service"
NO_BUS = CommandResult(code=1, stderr="Failed to connect to bus: No medium found")


@pytest.fixture
def runner() -> RecordingRunner:
    return RecordingRunner()


@pytest.fixture
def manager(tmp_path: Path, runner: RecordingRunner) -> SystemdManager:
    return SystemdManager(machine=machines.machine("linux", tmp_path), runner=runner)


@pytest.fixture
def service(tmp_path: Path) -> ServiceDefinition:
    return machines.definition(tmp_path, environment={"KNAP_STATE_DIR": "/home/ada/my $tate"})


def test_the_unit_is_as_agreed(manager: SystemdManager, service: ServiceDefinition) -> None:
    assert manager.render(service) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here to check units with")
def test_systemd_finds_nothing_wrong_with_the_unit(manager: SystemdManager, tmp_path: Path) -> None:
    python = tmp_path / "my env" / "python"
    python.parent.mkdir()
    python.touch(mode=0o755)
    service = ServiceDefinition(
        program=(str(python), "-P"),
        arguments=("serve", "--vault", '/home/ada/Заметки 100% "$x"'),
        environment={"KNAP_STATE_DIR": "/home/ada/my $tate"},
        log_file=tmp_path / "log",
    )
    unit = tmp_path / UNIT
    unit.write_text(manager.render(service), encoding="utf-8")
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)

    verified = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(runtime), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )

    assert (verified.returncode, verified.stderr.strip()) == (0, "")


@pytest.mark.parametrize("word", ["a\nExecStartPre=/bin/evil", "a\rb", "a\x00b"])
def test_a_path_with_a_control_character_is_refused(manager: SystemdManager, tmp_path: Path, word: str) -> None:
    service = ServiceDefinition(program=("/p",), arguments=("--vault", word), log_file=tmp_path / "log")

    with pytest.raises(BadInput, match="control character"):
        manager.render(service)


def test_it_is_installed_enabled_and_started_anew(
    manager: SystemdManager, service: ServiceDefinition, runner: RecordingRunner
) -> None:
    notes = manager.install(service)

    assert manager.file.read_text(encoding="utf-8") == manager.render(service)
    assert runner.commands == [
        "systemctl --user show-environment",
        "systemctl --user daemon-reload",
        f"systemctl --user enable {UNIT}",
        f"systemctl --user restart {UNIT}",
    ]
    assert "loginctl enable-linger ada" in notes[0]


def test_it_can_be_installed_again_with_other_arguments(
    manager: SystemdManager, service: ServiceDefinition, tmp_path: Path
) -> None:
    manager.install(service)
    manager.install(ServiceDefinition(program=("/p",), arguments=("serve",), log_file=tmp_path / "log"))

    assert '"/p" "serve"' in manager.file.read_text(encoding="utf-8")
    assert [each.name for each in manager.file.parent.iterdir()] == [UNIT]


def test_without_a_session_of_systemd_nothing_is_written(service: ServiceDefinition, tmp_path: Path) -> None:
    manager = SystemdManager(
        machine=machines.machine("linux", tmp_path), runner=RecordingRunner({"systemctl --user": NO_BUS})
    )

    with pytest.raises(SetupError, match="No medium found") as refused:
        manager.install(service)

    assert "enable-linger" in refused.value.hint
    assert not manager.file.exists()


def test_uninstalling_stops_it_and_removes_the_unit(
    manager: SystemdManager, service: ServiceDefinition, runner: RecordingRunner
) -> None:
    manager.install(service)
    runner.commands.clear()

    assert manager.uninstall() == [manager.file]
    assert not manager.file.exists()
    assert runner.commands == [f"systemctl --user disable --now {UNIT}", "systemctl --user daemon-reload"]
    assert manager.uninstall() == []


def test_a_unit_is_removed_even_without_a_session_of_systemd(service: ServiceDefinition, tmp_path: Path) -> None:
    facts = machines.machine("linux", tmp_path)
    SystemdManager(machine=facts, runner=RecordingRunner()).install(service)
    manager = SystemdManager(machine=facts, runner=RecordingRunner({"systemctl": NO_BUS}))

    assert manager.uninstall() == [manager.file]
    assert not manager.file.exists()


@pytest.mark.parametrize(
    ("shown", "running", "detail"),
    [
        (CommandResult(code=0, stdout="ActiveState=active\nSubState=running\n"), True, "active (running)"),
        (CommandResult(code=0, stdout="ActiveState=failed\nSubState=failed\n"), False, "failed (failed)"),
        (NO_BUS, None, NO_BUS.stderr),
    ],
)
def test_the_state_is_in_systemds_own_words(
    service: ServiceDefinition, tmp_path: Path, shown: CommandResult, *, running: bool | None, detail: str
) -> None:
    manager = SystemdManager(
        machine=machines.machine("linux", tmp_path), runner=RecordingRunner({"systemctl --user show ": shown})
    )
    before = manager.state()
    manager.file.parent.mkdir(parents=True)
    manager.file.write_text(manager.render(service), encoding="utf-8")

    state = manager.state()

    assert not before.installed
    assert (state.installed, state.running, state.detail) == (True, running, detail)


def test_it_is_started_stopped_and_restarted_by_systemctl(manager: SystemdManager, runner: RecordingRunner) -> None:
    manager.start()
    manager.stop()
    manager.restart()

    assert runner.commands == [f"systemctl --user {verb} {UNIT}" for verb in ("start", "stop", "restart")]


def test_the_log_is_the_journals(manager: SystemdManager) -> None:
    assert manager.log_command(20, follow=True) == (
        ["journalctl", "--user", "--unit", UNIT, "--lines", "20", "--no-pager", "--follow"]
    )
