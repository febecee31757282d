"""A task of Windows' Task Scheduler."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from knapper.errors import BadInput
from knapper.service import definition as service_definition
from knapper.service.definition import CommandRunner, MachineFacts, ServiceDefinition, ServiceState

TASK: Final = "\\Knapper\\serve"
_NAMESPACE: Final = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_Node = tuple[str, "str | Sequence[_Node]"]
"""An element: its name, and its text or its children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSchedulerManager:
    """The Task Scheduler, which starts a task when the account logs in."""

    machine: MachineFacts
    runner: CommandRunner
    name: str = "Task Scheduler"

    @property
    def file(self) -> Path:
        """Return where the task's XML is kept; the scheduler keeps a copy of its own."""
        return self.machine.config / "knapper" / "service.xml"

    def render(self, definition: ServiceDefinition) -> str:
        """Return the task's XML; see `ServiceManager.render`.

        A task has no variables of its own, so those that are needed must be options.

        Source: the Task Scheduler's schema, version 1.2, whose elements have a fixed order.
        """
        if definition.environment:
            names = ", ".join(sorted(definition.environment))
            raise BadInput(
                f"a task of Windows can't be given variables: {names}",
                hint="set them for the account, and install the service without them",
                code="bad_arguments",
            )
        words = [service_definition.check_text(word) for word in (*definition.program, *definition.arguments)]
        task = ET.Element("Task", {"version": "1.2", "xmlns": _NAMESPACE})
        for node in _task_nodes(self.machine.user, words):
            _append(task, node)
        ET.indent(task)
        return f'<?xml version="1.0" encoding="UTF-16"?>\n{ET.tostring(task, encoding="unicode")}\n'

    def install(self, definition: ServiceDefinition) -> Sequence[str]:
        """Write the XML and register it in the place of an older task, then run it."""
        # schtasks asks for UTF-16 with its mark, as the scheduler exports it.
        service_definition.write_definition(self.file, self.render(definition).encode("utf-16"))
        self._schtasks("/Create", "/TN", TASK, "/XML", str(self.file), "/F")
        self.runner.run(["schtasks", "/End", "/TN", TASK])
        self._schtasks("/Run", "/TN", TASK)
        return []

    def uninstall(self) -> Sequence[Path]:
        """End the task and delete it."""
        if not self.file.exists() and not self._is_registered():
            return []
        if self._is_registered():
            self.runner.run(["schtasks", "/End", "/TN", TASK])
            self._schtasks("/Delete", "/TN", TASK, "/F")
        self.file.unlink(missing_ok=True)
        return [self.file]

    def start(self) -> None:
        """Run the task."""
        self._schtasks("/Run", "/TN", TASK)

    def stop(self) -> None:
        """End the task's process; a write that it cuts short is taken back by whoever opens the vault next."""
        self._schtasks("/End", "/TN", TASK)

    def restart(self) -> None:
        """End the task, if it runs, and run it."""
        self.runner.run(["schtasks", "/End", "/TN", TASK])
        self.start()

    def state(self) -> ServiceState:
        """Return whether the task is registered; its status is a word in the system's language, so it isn't read."""
        is_registered = self._is_registered()
        return ServiceState(installed=is_registered, running=None if is_registered else False)

    def log_command(self, lines: int, *, follow: bool) -> Sequence[str]:
        """Return nothing: the scheduler keeps no log of what a task prints."""
        del lines, follow
        return ()

    def _is_registered(self) -> bool:
        return self.runner.run(["schtasks", "/Query", "/TN", TASK]).code == 0

    def _schtasks(self, *words: str) -> None:
        command = ["schtasks", *words]
        _ = service_definition.check(self.runner.run(command), command)


def _task_nodes(user: str, words: Sequence[str]) -> Sequence[_Node]:
    """Return the elements of the task, in the schema's order."""
    arguments = subprocess.list2cmdline(words[1:])
    return (
        ("RegistrationInfo", (("Description", service_definition.TITLE), ("URI", TASK))),
        ("Triggers", (("LogonTrigger", (("Enabled", "true"), ("UserId", user))),)),
        (
            "Principals",
            (("Principal", (("UserId", user), ("LogonType", "InteractiveToken"), ("RunLevel", "LeastPrivilege"))),),
        ),
        (
            "Settings",
            (
                ("MultipleInstancesPolicy", "IgnoreNew"),
                ("DisallowStartIfOnBatteries", "false"),
                ("StopIfGoingOnBatteries", "false"),
                ("StartWhenAvailable", "true"),
                ("Hidden", "true"),
                ("ExecutionTimeLimit", "PT0S"),  # none
                ("RestartOnFailure", (("Interval", "PT1M"), ("Count", "99"))),  # a minute is the least
            ),
        ),
        ("Actions", (("Exec", (("Command", words[0]), ("Arguments", arguments))),)),
    )


def _append(parent: ET.Element, node: _Node) -> None:
    name, content = node
    attributes = {"Principal": {"id": "Author"}, "Actions": {"Context": "Author"}}.get(name, {})
    element = ET.SubElement(parent, name, attributes)
    if isinstance(content, str):
        element.text = content
        return
    for child in content:
        _append(element, child)
