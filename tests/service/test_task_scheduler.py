"""A task of Windows' Task Scheduler: its XML, and the commands that register and delete it; never run on Windows."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from knapper.errors import BadInput, SetupError
from knapper.service.definition import CommandResult, ServiceDefinition
from knapper.service.platforms import TASK, TaskSchedulerManager
from tests.service import machines
from tests.service.machines import RecordingRunner

GOLDEN = Path(__file__).parent / "golden" / "task.xml"
SPACE = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
MISSING = CommandResult(code=1, stderr="ERROR: The system cannot find the file specified.")
ORDER = {
    "Task": ["RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"],
    "LogonTrigger": ["Enabled", "UserId"],
    "Exec": ["Command", "Arguments"],
    "RestartOnFailure": ["Interval", "Count"],
}
"""The elements that the schema holds to an order, of those that are written.

Source: [MS-TSCH], section 2.5, the XML task definition's schema.
"""


def open_manager(home: Path, **answers: CommandResult) -> tuple[TaskSchedulerManager, RecordingRunner]:
    runner = RecordingRunner({f"schtasks /{verb}": answer for verb, answer in answers.items()})
    return TaskSchedulerManager(machine=machines.machine("windows", home), runner=runner), runner


def test_the_xml_is_as_agreed(tmp_path: Path) -> None:
    manager, _ = open_manager(tmp_path)

    assert manager.render(machines.definition(tmp_path)) == GOLDEN.read_text(encoding="utf-8")


def test_elements_stand_in_the_schemas_order(tmp_path: Path) -> None:
    manager, _ = open_manager(tmp_path)
    task = ET.fromstring(manager.render(machines.definition(tmp_path)).partition("\n")[2])

    for parent in task.iter():
        names = [child.tag.removeprefix(SPACE) for child in parent]
        expected = ORDER.get(parent.tag.removeprefix(SPACE), names)
        assert names == expected
    settings = task.find(f"{SPACE}Settings")
    assert settings is not None
    assert settings.findtext(f"{SPACE}ExecutionTimeLimit") == "PT0S"
    assert task.findtext(f".//{SPACE}RunLevel") == "LeastPrivilege"


def test_a_path_with_quotes_and_spaces_stays_one_argument(tmp_path: Path) -> None:
    manager, _ = open_manager(tmp_path)
    task = ET.fromstring(manager.render(machines.definition(tmp_path)).partition("\n")[2])

    assert task.findtext(f".//{SPACE}Arguments") == (
        '-P -m knapper.cli serve --vault "/home/ada/Заметки 100% \\"$x\\"" --port 9000'
    )


@pytest.mark.parametrize(
    "service",
    [
        ServiceDefinition(program=("C:\\p",), arguments=("a\nb",), log_file=Path("log")),
        ServiceDefinition(program=("C:\\p",), arguments=(), environment={"KNAP_STATE_DIR": "x"}, log_file=Path("log")),
    ],
)
def test_what_a_task_cannot_be_given_is_refused(tmp_path: Path, service: ServiceDefinition) -> None:
    manager, _ = open_manager(tmp_path)

    with pytest.raises(BadInput, match=r"control character|variables: KNAP_STATE_DIR"):
        manager.render(service)


def test_it_is_registered_from_utf_16_and_run(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path)

    manager.install(machines.definition(tmp_path))

    assert manager.file.read_bytes()[:2] == b"\xff\xfe"
    assert manager.file.read_text(encoding="utf-16") == GOLDEN.read_text(encoding="utf-8")
    assert runner.commands == [
        f"schtasks /Create /TN {TASK} /XML {manager.file} /F",
        f"schtasks /End /TN {TASK}",
        f"schtasks /Run /TN {TASK}",
    ]


def test_what_the_scheduler_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    manager, _ = open_manager(tmp_path, Create=CommandResult(code=1, stderr="ERROR: Access is denied."))

    with pytest.raises(SetupError, match="Access is denied"):
        manager.install(machines.definition(tmp_path))


def test_uninstalling_ends_and_deletes_it(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path)
    manager.install(machines.definition(tmp_path))
    runner.commands.clear()

    assert manager.uninstall() == [manager.file]
    assert not manager.file.exists()
    assert [line for line in runner.commands if "/Query" not in line] == [
        f"schtasks /End /TN {TASK}",
        f"schtasks /Delete /TN {TASK} /F",
    ]


def test_where_nothing_is_registered_nothing_is_removed(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path, Query=MISSING)

    assert manager.uninstall() == []
    assert not any("/Delete" in line for line in runner.commands)
    assert (manager.state().installed, manager.state().running) == (False, False)


def test_whether_it_runs_is_left_to_the_server_to_tell(tmp_path: Path) -> None:
    manager, runner = open_manager(tmp_path)

    assert (manager.state().installed, manager.state().running) == (True, None)

    runner.commands.clear()
    manager.start()
    manager.stop()
    manager.restart()
    assert runner.commands == [f"schtasks /{verb} /TN {TASK}" for verb in ("Run", "End", "End", "Run")]
    assert not manager.log_command(10, follow=False)
