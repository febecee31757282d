"""The managers of services: a user unit of systemd, an agent of launchd, and a task of Windows' Task Scheduler."""

import plistlib
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from knapper.errors import BadInput
from knapper.service import definition as service_definition
from knapper.service.definition import CommandResult, CommandRunner, MachineFacts, ServiceDefinition, ServiceState

UNIT: Final = "knapper.service"
_CTL: Final = ("systemctl", "--user")
_SPECIAL: Final = re.compile(r'[\\"]')
_SETUP_EXIT: Final = "2 3"
"""Exit codes of mistakes in the configuration, which starting again doesn't mend."""
_TEMPLATE: Final = """\
[Unit]
Description={title}
After=network.target
StartLimitIntervalSec=60
StartLimitBurst=30

[Service]
Type=exec
ExecStart={command}
{environment}Restart=on-failure
RestartSec=0.1
RestartPreventExitStatus={setup_exit}
SyslogIdentifier=knapper
NoNewPrivileges=true
LockPersonality=true
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdManager:
    """The user's own instance of systemd, which starts a unit at login."""

    machine: MachineFacts
    runner: CommandRunner
    name: str = "systemd"

    @property
    def file(self) -> Path:
        """Return the unit's path."""
        return self.machine.config / "systemd" / "user" / UNIT

    def render(self, definition: ServiceDefinition) -> str:
        """Return the unit; see `ServiceManager.render`.

        Source: systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers".
        """
        words = [*definition.program, *definition.arguments]
        environment = "".join(
            f"Environment={_quote(f'{name}={value}', in_command=False)}\n"
            for name, value in sorted(definition.environment.items())
        )
        return _TEMPLATE.format(
            title=service_definition.TITLE,
            command=" ".join(_quote(word) for word in words),
            environment=environment,
            setup_exit=_SETUP_EXIT,
        )

    def install(self, definition: ServiceDefinition) -> Sequence[str]:
        """Write the unit, enable it and start it anew."""
        text = self.render(definition)
        self._control("show-environment")  # fails without a session of systemd, before anything is written
        service_definition.write_definition(self.file, text.encode())
        self._control("daemon-reload")
        self._control("enable", UNIT)
        self._control("restart", UNIT)
        return [f"to keep it running while you aren't logged in: loginctl enable-linger {self.machine.user}"]

    def uninstall(self) -> Sequence[Path]:
        """Stop and disable the unit, and remove it."""
        if not self.file.exists():
            return []
        # The file goes even if systemd can't be reached, as in a session without one.
        self.runner.run([*_CTL, "disable", "--now", UNIT])
        self.file.unlink(missing_ok=True)
        self.runner.run([*_CTL, "daemon-reload"])
        return [self.file]

    def start(self) -> None:
        """Start the unit."""
        self._control("start", UNIT)

    def stop(self) -> None:
        """Stop the unit; it stays enabled."""
        self._control("stop", UNIT)

    def restart(self) -> None:
        """Restart the unit."""
        self._control("restart", UNIT)

    def state(self) -> ServiceState:
        """Return the unit's state."""
        if not self.file.exists():
            return ServiceState(installed=False, running=False)
        shown = self.runner.run([*_CTL, "show", UNIT, "--property=ActiveState,SubState"])
        values = {name: value for name, _, value in (line.partition("=") for line in shown.stdout.splitlines())}
        active = values.get("ActiveState", "")
        detail = f"{active} ({values.get('SubState', '')})" if active else shown.stderr.strip()
        return ServiceState(installed=True, running=active == "active" if active else None, detail=detail)

    def log_command(self, lines: int, *, follow: bool) -> Sequence[str]:
        """Return the command that reads the journal."""
        command = ["journalctl", "--user", "--unit", UNIT, "--lines", str(lines), "--no-pager"]
        return [*command, "--follow"] if follow else command

    def _control(self, *words: str) -> None:
        command = [*_CTL, *words]
        _ = service_definition.check(self.runner.run(command), command)


def _quote(word: str, *, in_command: bool = True) -> str:
    """Quote a word for a unit: ``%`` would name a specifier, and in a command ``$`` a variable."""
    text = _SPECIAL.sub(lambda character: f"\\{character[0]}", service_definition.check_text(word)).replace("%", "%%")
    return f'"{text.replace("$", "$$") if in_command else text}"'


LABEL: Final = "org.knapper.serve"
_STATE: Final = re.compile(r"^\s*state = (.+)$", re.MULTILINE)
_NO_SUCH_SERVICE: Final = 3
"""The exit code of ``launchctl bootout`` for what isn't loaded."""
_STILL_ENDING: Final = 5
"""The exit code of ``launchctl bootstrap``, an error of input and output, for what is still being unloaded."""
_LOADS: Final = 4
"""How often an agent is loaded before that is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchdManager:
    """The agents of the account, which start when it logs in."""

    machine: MachineFacts
    runner: CommandRunner
    name: str = "launchd"
    again_s: float = 1.0
    """How long to wait before an agent is loaded again that launchd couldn't load yet, in seconds."""

    @property
    def file(self) -> Path:
        """Return the property list's path."""
        return self.machine.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"

    def render(self, definition: ServiceDefinition) -> str:
        """Return the property list; see `ServiceManager.render`.

        Source: launchd.plist(5).
        """
        words = [service_definition.check_text(word) for word in (*definition.program, *definition.arguments)]
        # What is printed before the log is open, or by a crash of the interpreter.
        output = str(definition.log_file.with_suffix(".out"))
        content: dict[str, Any] = {
            "Label": LABEL,
            "ProgramArguments": words,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 2,
            "ProcessType": "Background",
            "StandardOutPath": output,
            "StandardErrorPath": output,
        }
        if definition.environment:
            content["EnvironmentVariables"] = {
                name: service_definition.check_text(value) for name, value in definition.environment.items()
            }
        return plistlib.dumps(content).decode()

    def install(self, definition: ServiceDefinition) -> Sequence[str]:
        """Write the property list, and load it in the place of one that is loaded."""
        text = self.render(definition)
        self._unload()  # before the file changes: launchd asks for it
        definition.log_file.parent.mkdir(parents=True, exist_ok=True)
        service_definition.write_definition(self.file, text.encode())
        self._load()
        return []

    def uninstall(self) -> Sequence[Path]:
        """Unload the agent, and remove its property list."""
        if not self.file.exists():
            return []
        self._unload()
        self.file.unlink(missing_ok=True)
        return [self.file]

    def start(self) -> None:
        """Load the agent, which starts it; or start one that is loaded."""
        if self._print().code == 0:
            self._launchctl("kickstart", self._target)
        else:
            self._load()

    def stop(self) -> None:
        """Unload the agent until the next login."""
        self._unload()

    def restart(self) -> None:
        """Kill the agent's process and start it again."""
        if self._print().code == 0:
            self._launchctl("kickstart", "-k", self._target)
        else:
            self._load()

    def state(self) -> ServiceState:
        """Return what launchd prints of the agent."""
        if not self.file.exists():
            return ServiceState(installed=False, running=False)
        printed = self._print()
        if printed.code != 0:
            return ServiceState(installed=True, running=False, detail="not loaded")
        match = _STATE.search(printed.stdout)
        detail = match[1].strip() if match else ""
        return ServiceState(installed=True, running=detail == "running" if detail else None, detail=detail)

    def log_command(self, lines: int, *, follow: bool) -> Sequence[str]:
        """Return nothing: launchd keeps no log."""
        del lines, follow
        return ()

    @property
    def _domain(self) -> str:
        return f"gui/{self.machine.uid}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _load(self) -> None:
        """Load the agent; while launchd still ends the one of before, which `bootout` doesn't wait for, try again."""
        command = ["launchctl", "bootstrap", self._domain, str(self.file)]
        result = self.runner.run(command)
        for _ in range(_LOADS - 1):
            if result.code != _STILL_ENDING:
                break
            time.sleep(self.again_s)
            result = self.runner.run(command)
        _ = service_definition.check(result, command)

    def _unload(self) -> None:
        command = ["launchctl", "bootout", self._target]
        result = self.runner.run(command)
        if result.code != _NO_SUCH_SERVICE:
            _ = service_definition.check(result, command)

    def _print(self) -> CommandResult:
        return self.runner.run(["launchctl", "print", self._target])

    def _launchctl(self, *words: str) -> None:
        command = ["launchctl", *words]
        _ = service_definition.check(self.runner.run(command), command)


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
