"""What runs as a service, on which machine, and the steps that a service manager offers."""

import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

import platformdirs

from knapper.errors import BadInput, SetupError, StorageError

System = Literal["linux", "macos", "windows"]
TITLE: Final = "Knapper, search and edits for your notes"
_RUN_S: Final = 30.0
"""How long one command of a service manager may take, in seconds."""
_TEMPORARY_FOLDERS: Final = (("uv", "archive-v0"), ("uv", "environments-v2"), ("uv", "builds-v0"), ("pipx", ".cache"))
"""Neighbouring folders in the paths of environments that are deleted some day: those of ``uvx`` and ``pipx run``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDefinition:
    """What the service runs.

    ``program=("/home/u/.venv/bin/python", "-P", "-m", "knapper.cli")``,
    ``arguments=("serve", "--as-service", "--port", "9000")``.
    """

    program: Sequence[str]
    """An absolute path, and what Knapper is started with."""
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that name the configuration and the state, if they aren't in their usual places."""
    log_file: Path
    """The log, where the system keeps none itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """The facts of this machine that a service depends on."""

    system: System
    home: Path
    config: Path
    """Where programs keep a person's settings on Linux: ``~/.config``."""
    logs: Path
    user: str
    """The account's name; with its domain on Windows: ``PC\\ada``."""
    uid: int = 0
    """The account's number; 0 on Windows, which has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command of the system came to."""

    code: int
    stdout: str = ""
    stderr: str = ""


class CommandRunner(Protocol):
    """Runs the commands of a service manager."""

    def run(self, command: Sequence[str]) -> CommandResult:
        """Run a command and wait for it.

        Raises:
            SetupError: There is no such program.
            StorageError: It doesn't end in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """What the system says of the service."""

    installed: bool
    running: bool | None
    """None where the system doesn't tell it reliably; the server itself does."""
    detail: str = ""
    """The system's own words for the state: ``active (running)``."""


class ServiceManager(Protocol):
    """One system's way of running something from login on."""

    @property
    def name(self) -> str:
        """Return ``systemd``, ``launchd`` or ``Task Scheduler``."""
        ...

    @property
    def file(self) -> Path:
        """Return where the definition lies."""
        ...

    def render(self, definition: ServiceDefinition) -> str:
        """Return the definition in the system's form.

        Raises:
            BadInput: It can't be written there, such as a path with a line break.
        """
        ...

    def install(self, definition: ServiceDefinition) -> Sequence[str]:
        """Write the definition and start the service, in the place of one that runs; return notes for the person.

        Raises:
            SetupError: The system refuses it, or has no service manager.
            StorageError: The definition can't be written.
        """
        ...

    def uninstall(self) -> Sequence[Path]:
        """Stop the service and remove its definition; return what was removed, nothing if nothing was there."""
        ...

    def start(self) -> None:
        """Start the installed service."""
        ...

    def stop(self) -> None:
        """Stop it until the next login or `start`."""
        ...

    def restart(self) -> None:
        """Stop and start it."""
        ...

    def state(self) -> ServiceState:
        """Return what the system says of it."""
        ...

    def log_command(self, lines: int, *, follow: bool) -> Sequence[str]:
        """Return the command that shows the log; empty where it is the definition's own file."""
        ...


class SystemRunner:
    """Runs commands on this machine."""

    def run(self, command: Sequence[str]) -> CommandResult:
        """Run a command, without a shell and without standard input; see `CommandRunner.run`."""
        try:
            done = subprocess.run(  # noqa: S603 - a list without a shell, of fixed programs and our own names
                list(command),
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=_RUN_S,
                check=False,
            )
        except FileNotFoundError:
            raise SetupError(
                f"there is no program '{command[0]}' here, which manages services",
                hint="start `knap serve` yourself, or by whatever starts programs on this system",
                code="no_service_manager",
            ) from None
        except subprocess.TimeoutExpired:
            raise StorageError(
                f"`{' '.join(command)}` didn't end within {_RUN_S:g} s",
                hint="run it yourself to see why",
                code="service_timeout",
            ) from None
        return CommandResult(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def detect_machine() -> MachineFacts:
    """Return the facts of this machine."""
    system: System = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")  # pyright: ignore[reportAssignmentType]
    import getpass  # noqa: PLC0415 - only services need it

    user = getpass.getuser()
    domain = os.environ.get("USERDOMAIN", "") if system == "windows" else ""  # noqa: TID251 - a fact of the machine, no setting
    return MachineFacts(
        system=system,
        home=Path.home(),
        config=platformdirs.user_config_path(),
        logs=platformdirs.user_log_path("knapper", appauthor=False),
        user=f"{domain}\\{user}" if domain else user,
        uid=os.getuid() if hasattr(os, "getuid") else 0,
    )


def find_program(executable: str, *, system: System, needs_streams: bool = False) -> list[str]:
    """Return the command that starts this installation from any folder, in any later session.

    The interpreter's path isn't resolved: that of a virtual environment is a link, and finds its packages by its place.

    Args:
        executable: The interpreter, `sys.executable`.
        system: Windows gets the interpreter without a console, so that no window opens.
        needs_streams: Whether the program speaks by its standard streams, which that interpreter hasn't.

    Raises:
        SetupError: It lies in a cache that is emptied some day.
    """
    path = Path(executable).absolute()
    parts = path.parts
    if any(pair in itertools.pairwise(parts) for pair in _TEMPORARY_FOLDERS):
        raise SetupError(
            f"this Knapper runs from a cache that is emptied some day: {path}",
            hint="install it first: `uv tool install knapper` or `pipx install knapper`",
            code="temporary_installation",
        )
    if system == "windows" and not needs_streams:
        windowless = path.with_name("pythonw.exe")
        path = windowless if windowless.is_file() else path
    return [str(path), "-P", "-m", "knapper.cli"]  # -P: never import what lies in the working folder


def check(result: CommandResult, command: Sequence[str]) -> CommandResult:
    """Return the result of a command that succeeded.

    Raises:
        SetupError: It failed; with its own words.
    """
    if result.code == 0:
        return result
    reason = (result.stderr or result.stdout).strip() or f"exit code {result.code}"
    hint = "`knap service install --dry-run` shows what the system was given"
    if "Failed to connect to bus" in reason or "No medium found" in reason:
        way = "log in directly, run `loginctl enable-linger` as root, or start `knap serve` yourself"
        hint = f"there is no user session of systemd here: {way}"
    raise SetupError(f"`{' '.join(command)}` failed: {reason}", hint=hint, code="service_failed")


def check_text(text: str) -> str:
    """Return a text that fits into one line of a definition.

    Raises:
        BadInput: It has a line break or another control character.
    """
    if any(ord(character) < ord(" ") or character == "\x7f" for character in text):
        raise BadInput(
            f"a service can't be given {text!r}: it has a control character", hint="rename it", code="bad_name"
        )
    return text


def write_definition(file: Path, data: bytes) -> None:
    """Write a definition in the place of an older one, whole or not at all.

    Raises:
        StorageError: It can't be written.
    """
    beside = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _ = beside.write_bytes(data)
        _ = beside.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StorageError(
            f"{file} can't be written: {error.strerror or error}", hint="look at the folder's permissions"
        ) from error
