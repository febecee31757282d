"""An agent of launchd: its property list, and the commands that load and unload it; never run on macOS."""

import plistlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from knapper.errors import BadInput, SetupError
from knapper.service.definition import CommandResult, ServiceDefinition
from knapper.service.platforms import LABEL, LaunchdManager
from tests.service import machines
from tests.service.machines import RecordingRunner

TARGET = f"gui/501/{LABEL}"
STILL_ENDING = CommandResult(code=5, stderr="Bootstrap failed: 5: Input/output error")
NOT_LOADED = CommandResult(code=3, stderr="Boot-out failed: 3: No such process")
RUNNING = CommandResult(code=0, stdout=f"{TARGET} = {{\n\tactive count = 1\n\tstate = running\n\n\tpid = 4711\n}}")


def open_manager(home: Path, **answers: CommandResult) -> tuple[LaunchdManager, RecordingRunner]:
    runner = RecordingRunner({f"launchctl {verb}": answer for verb, answer in answers.items()})
    return LaunchdManager(machine=machines.machine("macos", home), runner=runner, again_s=0), runner


def test_the_property_list_says_what_the_definition_says(tmp_path: Path) -> None:
    manager, _ = open_manager(tmp_path)
    service = machines.definition(tmp_path, environment={"KNAP_STATE_DIR": "/x y"})

    assert plistlib.loads(manager.render(service).encode()) == {
        "Label": LABEL,
        "ProgramArguments": [*service.program, *service.arguments],
        "EnvironmentVariables": {"KNAP_STATE_DIR": "/x y"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 2,
        "ProcessType": "Background",
        "StandardOutPath": str(tmp_path / "logs" / "serve.out"),
        "StandardErrorPath": str(tmp_path / "logs" / "serve.out"),
    }


def test_the_property_list_is_as_agreed() -> None:
    manager, _ = open_manager(Path("/Users/ada"))
    golden = Path(__file__).parent / "golden" / f"{LABEL}.plist"

    assert manager.render(machines.definition(Path("/Users/ada"))) == golden.read_text(encoding="utf-8")


def test_a_path_with_a_control_character_is_refused(tmp_path: Path) -> None:
    manager, _ = open_manager(tmp_path)

    with pytest.raises(BadInput, match="control character"):
        manager.render(ServiceDefinition(program=("/p",), arguments=("a\nb",), log_file=tmp_path / "log"))


def test_it_is_unloaded_before_it_is_loaded_again(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path, bootout=NOT_LOADED)

    manager.install(machines.definition(tmp_path))

    assert manager.file == tmp_path / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    assert (tmp_path / "logs").is_dir()
    assert runner.commands == [f"launchctl bootout {TARGET}", f"launchctl bootstrap gui/501 {manager.file}"]


def test_what_launchd_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path, bootout=NOT_LOADED, bootstrap=STILL_ENDING)

    with pytest.raises(SetupError, match="Input/output error"):
        manager.install(machines.definition(tmp_path))

    assert [line.split()[1] for line in runner.commands] == ["bootout", *["bootstrap"] * 4]


def test_another_refusal_is_not_tried_again(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path, bootout=NOT_LOADED, bootstrap=CommandResult(code=125, stderr="no domain"))

    with pytest.raises(SetupError, match="no domain"):
        manager.install(machines.definition(tmp_path))

    assert len(runner.commands) == 2


def test_an_agent_that_is_still_ending_is_loaded_as_soon_as_that_can_be(tmp_path: Path) -> None:
    results = iter([NOT_LOADED, STILL_ENDING, STILL_ENDING, CommandResult(code=0)])

    class SlowLaunchd(RecordingRunner):
        def run(self, command: Sequence[str]) -> CommandResult:
            super().run(command)
            return next(results)

    runner = SlowLaunchd()
    manager = LaunchdManager(machine=machines.machine("macos", tmp_path), runner=runner, again_s=0)

    manager.install(machines.definition(tmp_path))

    assert [line.split()[1] for line in runner.commands] == ["bootout", *["bootstrap"] * 3]


def test_uninstalling_unloads_it_and_removes_the_list(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path, bootout=NOT_LOADED)
    manager.install(machines.definition(tmp_path))
    runner.commands.clear()

    assert manager.uninstall() == [manager.file]
    assert runner.commands == [f"launchctl bootout {TARGET}"]
    assert manager.uninstall() == []


@pytest.mark.parametrize(
    ("printed", "started", "restarted"),
    [
        (RUNNING, f"launchctl kickstart {TARGET}", f"launchctl kickstart -k {TARGET}"),
        (NOT_LOADED, "launchctl bootstrap gui/501 {file}", "launchctl bootstrap gui/501 {file}"),
    ],
)
def test_starting_loads_what_is_not_loaded(
    tmp_path: Path, printed: CommandResult, started: str, restarted: str
) -> None:
    manager, runner = open_manager(tmp_path, print=printed)

    manager.start()
    manager.restart()
    manager.stop()

    commands = [line for line in runner.commands if not line.startswith("launchctl print")]
    assert commands == [
        started.format(file=manager.file),
        restarted.format(file=manager.file),
        f"launchctl bootout {TARGET}",
    ]


@pytest.mark.parametrize(
    ("printed", "running", "detail"),
    [
        (RUNNING, True, "running"),
        (CommandResult(code=0, stdout="\tstate = not running\n"), False, "not running"),
        (CommandResult(code=0, stdout="another form\n"), None, ""),
        (NOT_LOADED, False, "not loaded"),
    ],
)
def test_the_state_is_launchds(tmp_path: Path, printed: CommandResult, *, running: bool | None, detail: str) -> None:
    manager, _ = open_manager(tmp_path, print=printed, bootout=NOT_LOADED)
    before = manager.state()
    manager.install(machines.definition(tmp_path))

    state = manager.state()

    assert not before.installed
    assert (state.installed, state.running, state.detail) == (True, running, detail)
