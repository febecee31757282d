"""A user unit of systemd."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from knapper.service import definition as service_definition
from knapper.service.definition import CommandRunner, MachineFacts, ServiceDefinition, ServiceState

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
StartLimitBurst=10

[Service]
Type=exec
ExecStart={command}
{environment}Restart=on-failure
RestartSec=1
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
