"""Machines of each system, and a service manager's commands that are only written down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from knapper.service.definition import CommandResult, MachineFacts, ServiceDefinition, System

OK = CommandResult(code=0)


@dataclass(slots=True)
class RecordingRunner:
    """Writes commands down, and answers those that begin with given words."""

    answers: Mapping[str, CommandResult] = field(default_factory=dict[str, CommandResult])
    commands: list[str] = field(default_factory=list[str])

    def run(self, command: Sequence[str]) -> CommandResult:
        line = " ".join(command)
        self.commands.append(line)
        return next((answer for start, answer in self.answers.items() if line.startswith(start)), OK)


def machine(system: System, home: Path) -> MachineFacts:
    return MachineFacts(
        system=system,
        home=home,
        config=home / ".config",
        logs=home / "logs",
        user="PC\\ada" if system == "windows" else "ada",
        uid=501,
    )


def definition(home: Path, *, environment: Mapping[str, str] | None = None) -> ServiceDefinition:
    """Return one whose paths have a space, letters of another script, and what units treat specially."""
    return ServiceDefinition(
        program=("/opt/knap per/bin/python", "-P", "-m", "knapper.cli"),
        arguments=("serve", "--vault", '/home/ada/Заметки 100% "$x"', "--port", "9000"),
        environment=environment or {},
        log_file=home / "logs" / "serve.log",
    )
