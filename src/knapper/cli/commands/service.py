"""Run the server as a service of the system, from login on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from knapper.cli import options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.config import environment
from knapper.config.settings import CONFIG_ENV, STATE_ENV
from knapper.errors import NotFound
from knapper.server import record
from knapper.service import definition
from knapper.service.definition import ServiceDefinition
from knapper.service.managers import choose_manager

if TYPE_CHECKING:
    from pathlib import Path

    from knapper.config import Settings
    from knapper.server.record import ServerRecord
    from knapper.service.definition import ServiceManager

_START_S: Final = 20.0
"""How long a started server may take to answer, in seconds."""
_LOOK_S: Final = 0.2
_FOLLOW_S: Final = 0.5


class InstallOptions(TypedDict):
    """The options of ``install``."""

    host: str
    port: int | None
    dry_run: bool


def open_manager() -> ServiceManager:
    """Return this system's service manager."""
    return choose_manager(definition.detect_machine(), definition.SystemRunner())


@click.group(
    "service",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap service install", "all configured vaults, from login on"),
        ("knap service install --dry-run", "show what the system would be given"),
        ("knap service status", "whether it runs, and where it answers"),
        ("knap service uninstall", "stop and remove it; notes, index and settings stay"),
    ),
)
@options.shared_options
def command() -> None:
    """Run the server in the background from login on.

    The service runs `knap serve`, with its watcher. It is a user unit of systemd on Linux, an agent of launchd on
    macOS, and a task of the Task Scheduler on Windows.
    """


@command.command(
    "install",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap service install", "all configured vaults"),
        ("knap service install --vault ~/Notes --port 9000", "one vault, on another port"),
    ),
)
@click.option("--host", default="", metavar="ADDRESS", help="Address to listen on.  [default: as configured]")
@click.option("--port", type=click.IntRange(1, 65_535), help="Port to listen on.  [default: as configured]")
@click.option("--dry-run", is_flag=True, help="Print the definition without installing it.")
@options.shared_options
@click.pass_obj
def install(global_options: GlobalOptions, **own: Unpack[InstallOptions]) -> ExitCode:
    """Install the service and start it.

    A service that is installed is replaced. It runs the installation of Knapper that this command belongs to.
    """
    settings = setup.read_settings(global_options)
    manager = open_manager()
    service = define_service(global_options, settings, own)
    text = manager.render(service)
    fields = {"manager": manager.name, "file": str(manager.file), "definition": text}
    if own["dry_run"]:
        return output.print_result(global_options, {**fields, "installed": False}, f"# {manager.file}\n{text}")
    notes = manager.install(service)
    running_server = wait_for_server(settings.state_dir)
    address = running_server.url if running_server else ""
    lines = [f"installed {manager.file}", f"the server answers at {address}" if address else _silence_note(manager)]
    output.print_result(global_options, {**fields, "installed": True, "url": address, "notes": notes}, "\n".join(lines))
    for note in [*notes, "to take it away again: knap service uninstall"]:
        output.note(global_options, note)
    return ExitCode.OK if address else ExitCode.NOTHING


@command.command(
    "uninstall",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap service uninstall", "the notes, the index, the journal and the settings stay")),
)
@options.shared_options
@click.pass_obj
def uninstall(global_options: GlobalOptions) -> ExitCode:
    """Stop the service and remove it."""
    removed = [str(file) for file in open_manager().uninstall()]
    text = "\n".join(f"removed {file}" for file in removed) or "no service was installed"
    return output.print_result(global_options, {"removed": removed}, text)


@command.command(
    "start",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap service start", "after `knap service stop`")),
)
@options.shared_options
@click.pass_obj
def start(global_options: GlobalOptions) -> ExitCode:
    """Start the installed service."""
    manager = _installed_manager()
    manager.start()
    return _report_start(global_options, manager)


@command.command(
    "stop",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap service stop", "until the next login, or `knap service start`")),
)
@options.shared_options
@click.pass_obj
def stop(global_options: GlobalOptions) -> ExitCode:
    """Stop the service until the next login."""
    _installed_manager().stop()
    return output.print_result(global_options, {"running": False}, "stopped")


@command.command(
    "restart",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap service restart", "after a change of the configuration")),
)
@options.shared_options
@click.pass_obj
def restart(global_options: GlobalOptions) -> ExitCode:
    """Stop and start the service."""
    manager = _installed_manager()
    manager.restart()
    return _report_start(global_options, manager)


@command.command(
    "status",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap service status", "exits with 1 unless the server answers")),
)
@options.shared_options
@click.pass_obj
def status(global_options: GlobalOptions) -> ExitCode:
    """Show whether the service runs.

    Shows what the system says of the service, and asks the server itself.
    """
    settings = setup.read_settings(global_options)
    manager = open_manager()
    state = manager.state()
    running_server = record.find_server(settings.state_dir)
    fields = {
        "manager": manager.name,
        "file": str(manager.file),
        "installed": state.installed,
        "running": state.running if running_server is None else True,
        "detail": state.detail,
        "url": running_server.url if running_server else "",
        "pid": running_server.pid if running_server else None,
        "started": running_server.started if running_server else "",
        "version": running_server.version if running_server else "",
    }
    installed_text = f"{manager.name}: {state.detail or 'installed'}" if state.installed else "no service is installed"
    server_text = (
        f"the server answers at {running_server.url} (process {running_server.pid}, since {running_server.started})"
        if running_server
        else "no server answers"
    )
    output.print_result(global_options, fields, output.plain(f"{installed_text}\n{server_text}"))
    return ExitCode.OK if running_server else ExitCode.NOTHING


@command.command(
    "logs",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap service logs -n 20", "the last 20 lines"), ("knap service logs --follow", "and those that come")
    ),
)
@click.option("-n", "lines", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Number of lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@options.shared_options
@click.pass_obj
def logs(global_options: GlobalOptions, lines: int, *, follow: bool) -> ExitCode:
    """Show the log of the service.

    It is in the journal under systemd, and in a file elsewhere.
    """
    del global_options
    manager = _installed_manager()
    if log_command := manager.log_command(lines, follow=follow):
        return ExitCode.OK if subprocess.call(list(log_command)) == 0 else ExitCode.NOTHING  # noqa: S603 - a fixed command
    file = _log_file()
    if not file.is_file():
        raise NotFound(f"there is no log {file} yet", hint="`knap service status` shows whether the server runs")
    with file.open(encoding="utf-8", errors="replace") as log:
        for line in deque(log, maxlen=lines):
            click.echo(output.plain(line), nl=False)
        while follow:
            added = log.read()
            click.echo(output.plain(added), nl=False)
            time.sleep(_FOLLOW_S)
    return ExitCode.OK


def define_service(global_options: GlobalOptions, settings: Settings, own: InstallOptions) -> ServiceDefinition:
    """Return what the service runs: this installation, with the vault and the settings of this command."""
    machine = definition.detect_machine()
    arguments = ["serve"]
    if global_options.vault or not settings.vaults:  # VAULT_PATH or this folder names one, and a service has neither
        vault = settings.vault
        arguments += ["--vault", vault.name if vault in settings.vaults else str(vault.path)]
    if own["host"]:
        arguments += ["--host", own["host"]]
    if own["port"] is not None:
        arguments += ["--port", str(own["port"])]
    if global_options.config or environment.read_variables([CONFIG_ENV]):
        arguments += ["--config", str(settings.config_file)]
    if settings.env_file and global_options.env_file:
        arguments += ["--env-file", str(settings.env_file)]
    if machine.system != "linux":  # there the journal keeps it
        arguments += ["--log-file", str(_log_file())]
    return ServiceDefinition(
        program=definition.find_program(sys.executable, system=machine.system),
        arguments=arguments,
        environment={STATE_ENV: str(settings.state_dir)} if environment.read_variables([STATE_ENV]) else {},
        log_file=_log_file(),
    )


def _log_file() -> Path:
    return definition.detect_machine().logs / "serve.log"


def _installed_manager() -> ServiceManager:
    manager = open_manager()
    if not manager.state().installed:
        raise NotFound("no service is installed", hint="`knap service install` installs it", code="no_service")
    return manager


def _report_start(global_options: GlobalOptions, manager: ServiceManager) -> ExitCode:
    running_server = wait_for_server(setup.read_settings(global_options).state_dir)
    url = running_server.url if running_server else ""
    text = f"the server answers at {url}" if url else _silence_note(manager)
    output.print_result(global_options, {"running": bool(url), "url": url}, text)
    return ExitCode.OK if url else ExitCode.NOTHING


def wait_for_server(state_dir: Path) -> ServerRecord | None:
    """Return the record of the server once it answers; None if it doesn't in time."""
    stop = time.monotonic() + _START_S
    while time.monotonic() < stop:
        if running_server := record.find_server(state_dir):
            return running_server
        time.sleep(_LOOK_S)
    return None


def _silence_note(manager: ServiceManager) -> str:
    return f"{manager.name} started it, but no server has answered within {_START_S:g} s; `knap service logs` says why"
