"""Run the server as a service of the system, from login on."""

from __future__ import annotations

import subprocess
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from knapper.cli import launching, options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput, NotFound
from knapper.server import addresses

if TYPE_CHECKING:
    from pathlib import Path

    from knapper.service.definition import ServiceManager


_FOLLOW_S: Final = 0.5


class InstallOptions(TypedDict):
    """The options of ``install``."""

    host: str
    port: int | None
    watch_only: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReport:
    """What came of a start."""

    code: ExitCode
    text: str
    url: str = ""


@click.group(
    "service",
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

    The service runs `knap serve`, with its watcher, or `knap watch` alone. It is a user unit of systemd on Linux, an
    agent of launchd on macOS, and a task of the Task Scheduler on Windows.
    """


@command.command(
    "install",
    epilog=options.examples(
        ("knap service install", "all configured vaults"),
        ("knap service install --vault ~/Notes --port 9000", "one vault, on another port"),
        ("knap service install --vault ~/Notes --watch-only", "keep its index up to date, without a server"),
    ),
)
@click.option("--host", default="", metavar="ADDRESS", help="Address to listen on.  [default: as configured]")
@click.option("--port", type=click.IntRange(1, 65_535), help="Port to listen on.  [default: as configured]")
@click.option("--watch-only", is_flag=True, help="Run `knap watch` for one vault, and no server.")
@click.option("--dry-run", is_flag=True, help="Print the definition without installing it.")
@options.pass_options
def install(global_options: GlobalOptions, **own: Unpack[InstallOptions]) -> ExitCode:
    """Install the service and start it.

    A service that is installed is replaced. It runs the installation of Knapper that this command belongs to.
    """
    watch_only = own["watch_only"]
    if watch_only and (own["host"] or own["port"] is not None):
        raise BadInput("without a server there is neither host nor port", hint="leave out --watch-only, or those")
    settings = setup.read_settings(global_options)
    manager = launching.open_manager()
    service = launching.define_service(
        global_options, settings, host=own["host"], port=own["port"], watch_only=watch_only
    )
    text = manager.render(service)
    fields = {"manager": manager.name, "file": str(manager.file), "watch_only": watch_only, "definition": text}
    missing = launching.explain_variables(settings, "the service")
    if own["dry_run"]:
        if missing:
            output.note(global_options, missing)
        return output.print_result(global_options, {**fields, "installed": False}, f"# {manager.file}\n{text}")
    notes = [*manager.install(service), *filter(None, [missing])]
    address = launching.service_address(settings, host=own["host"], port=own["port"])
    started = _look_at_start(settings.state_dir, manager, address)
    answer = {**fields, "installed": True, "url": started.url, "notes": notes}
    output.print_result(global_options, answer, f"installed {manager.file}\n{started.text}")
    for note in [*notes, "to take it away again: knap service uninstall"]:
        output.note(global_options, note)
    return started.code


@command.command(
    "uninstall",
    epilog=options.examples(("knap service uninstall", "the notes, the index, the journal and the settings stay")),
)
@options.pass_options
def uninstall(global_options: GlobalOptions) -> ExitCode:
    """Stop the service and remove it."""
    removed = [str(file) for file in launching.open_manager().uninstall()]
    text = "\n".join(f"removed {file}" for file in removed) or "no service was installed"
    return output.print_result(global_options, {"removed": removed}, text)


@command.command("start", epilog=options.examples(("knap service start", "after `knap service stop`")))
@options.pass_options
def start(global_options: GlobalOptions) -> ExitCode:
    """Start the installed service."""
    manager = _installed_manager()
    manager.start()
    return _report_start(global_options, manager)


@command.command(
    "stop",
    epilog=options.examples(("knap service stop", "until the next login, or `knap service start`")),
)
@options.pass_options
def stop(global_options: GlobalOptions) -> ExitCode:
    """Stop the service until the next login."""
    _installed_manager().stop()
    return output.print_result(global_options, {"running": False}, "stopped")


@command.command("restart", epilog=options.examples(("knap service restart", "after a change of the configuration")))
@options.pass_options
def restart(global_options: GlobalOptions) -> ExitCode:
    """Stop and start the service."""
    manager = _installed_manager()
    manager.restart()
    return _report_start(global_options, manager)


@command.command(
    "status",
    epilog=options.examples(
        ("knap service status", "exits with 1 unless the service's server answers, or the vault is watched")
    ),
)
@options.pass_options
def status(global_options: GlobalOptions) -> ExitCode:
    """Show whether the service runs.

    Shows what the system says of the service, and asks the server itself.
    """
    settings = setup.read_settings(global_options)
    manager = launching.open_manager()
    state = manager.state()
    running_server = addresses.find_server(settings.state_dir)
    only_watches = launching.only_watches(manager)
    watches = only_watches and state.installed and state.running is not False
    # A server that was started by hand is gone with its terminal, whatever has become of the service.
    is_elsewhere = running_server is not None and state.installed and not only_watches and not running_server.service
    fields = {
        "manager": manager.name,
        "file": str(manager.file),
        "installed": state.installed,
        "watch_only": only_watches,
        "running": state.running if running_server is None or is_elsewhere else True,
        "detail": state.detail,
        "url": running_server.url if running_server else "",
        "pid": running_server.pid if running_server else None,
        "started": running_server.started if running_server else "",
        "version": running_server.version if running_server else "",
        "started_elsewhere": is_elsewhere,
    }
    installed_text = f"{manager.name}: {state.detail or 'installed'}" if state.installed else "no service is installed"
    if running_server is None:
        server_text = "it only watches the vault, and has no server" if watches else "no server answers"
    elif is_elsewhere:
        server_text = launching.describe_other(running_server)
    else:
        process = f"process {running_server.pid}, since {running_server.started}"
        server_text = f"the server answers at {running_server.url} ({process})"
    output.print_result(global_options, fields, output.plain(f"{installed_text}\n{server_text}"))
    answers = running_server is not None and not is_elsewhere
    return ExitCode.OK if answers or watches else ExitCode.NOTHING


@command.command(
    "logs",
    epilog=options.examples(
        ("knap service logs -n 20", "the last 20 lines"), ("knap service logs --follow", "and those that come")
    ),
)
@click.option("-n", "lines", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Number of lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@options.pass_options
def logs(global_options: GlobalOptions, lines: int, *, follow: bool) -> ExitCode:
    """Show the log of the service.

    It is in the journal under systemd, and in a file elsewhere.
    """
    del global_options
    manager = _installed_manager()
    if log_command := manager.log_command(lines, follow=follow):
        return ExitCode.OK if subprocess.call(list(log_command)) == 0 else ExitCode.NOTHING  # noqa: S603 - a fixed command
    file = launching.log_file()
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


def _installed_manager() -> ServiceManager:
    manager = launching.open_manager()
    if not manager.state().installed:
        raise NotFound("no service is installed", hint="`knap service install` installs it", code="no_service")
    return manager


def _report_start(global_options: GlobalOptions, manager: ServiceManager) -> ExitCode:
    started = _look_at_start(setup.read_settings(global_options).state_dir, manager)
    output.print_result(global_options, {"running": started.code is ExitCode.OK, "url": started.url}, started.text)
    return started.code


def _look_at_start(state_dir: Path, manager: ServiceManager, address: str = "") -> StartReport:
    """Wait for the server of a service that was started, if it has one."""
    if launching.only_watches(manager):
        if manager.state().running is False:
            text = f"{manager.name} started it, but it has ended; `knap service logs` says why"
            return StartReport(code=ExitCode.NOTHING, text=text)
        return StartReport(
            code=ExitCode.OK, text="it watches the vault, and has no server; `knap status` shows the index"
        )
    running_server = launching.wait_for_service(state_dir, address)
    if running_server is None:
        return StartReport(code=ExitCode.NOTHING, text=launching.explain_silence(state_dir, manager))
    return StartReport(code=ExitCode.OK, url=running_server.url, text=f"the server answers at {running_server.url}")
