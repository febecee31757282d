"""An agent of launchd, on macOS."""

import plistlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from knapper.service import definition as service_definition
from knapper.service.definition import CommandResult, CommandRunner, MachineFacts, ServiceDefinition, ServiceState

LABEL: Final = "org.knapper.serve"
_STATE: Final = re.compile(r"^\s*state = (.+)$", re.MULTILINE)
_NO_SUCH_SERVICE: Final = 3
"""The exit code of ``launchctl bootout`` for what isn't loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchdManager:
    """The agents of the account, which start when it logs in."""

    machine: MachineFacts
    runner: CommandRunner
    name: str = "launchd"

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
        self._launchctl("bootstrap", self._domain, str(self.file))

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
