"""Serve a vault to MCP clients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from knapper.cli import launching, options, output, setup, start
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config import files
from knapper.errors import BadInput, KnapError
from knapper.tools.context import TOOL_SELECTIONS, ToolSelection

if TYPE_CHECKING:
    from knapper.server.mcp.clients import MachinePaths


class McpOptions(TypedDict):
    """The command's own options."""

    profile: ToolSelection
    output_schemas: bool | None
    client: str
    watch: bool


class McpUninstallOptions(TypedDict):
    """The arguments and options of ``uninstall``."""

    names: tuple[str, ...]
    is_all: bool
    name: str
    file: str
    dry_run: bool


class McpStatusOptions(TypedDict):
    """The options of ``status``."""

    is_trying: bool
    timeout_s: float
    name: str


class McpInstallOptions(TypedDict):
    """The options of ``install``."""

    profile: ToolSelection
    name: str
    file: str
    dry_run: bool


def _profile_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that selects the tools to offer."""
    option = click.option(
        "--profile",
        type=click.Choice(TOOL_SELECTIONS),
        default="standard",
        show_default=True,
        help="Selection of tools to offer.",
    )
    return option(command)


@click.group(
    "mcp",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap mcp", "as a client starts it"),
        ("knap mcp --vault Notes --profile read-only", "one vault, and no tool that changes it"),
        ("knap mcp install", "which clients are installed here"),
        ("knap mcp install claude-desktop --dry-run", "what would be written"),
        ("knap mcp status", "start what each client would, and make one call"),
        ("knap mcp uninstall --all", "take it out of every client"),
    ),
)
@_profile_option
@click.option(
    "--output-schemas/--no-output-schemas",
    default=None,
    help="Whether each tool says what it answers.  [default: with full and read-only]",
)
@options.client_option("mcp")
@click.option("--watch/--no-watch", default=True, help="Keep the index up to date while serving.  [default: watch]")
@options.shared_options
@click.pass_context
def command(ctx: click.Context, **own: Unpack[McpOptions]) -> ExitCode | None:
    """Serve vaults to an MCP client over standard input and output.

    The client starts this command. Without --vault, all configured vaults are served.
    """
    if ctx.invoked_subcommand is not None:
        return None
    global_options = ctx.ensure_object(GlobalOptions)
    files.keep_libraries_to_one_thread()
    from knapper.app import open_hub  # noqa: PLC0415 - installing needn't pay for it
    from knapper.server.mcp import stdio  # noqa: PLC0415 - the same
    from knapper.server.mcp.session import ToolListing  # noqa: PLC0415 - the same

    start.collect_garbage_as_usual()
    config = setup.read_settings(global_options)
    # Refuse a client that is a person: a model's request must not count as a person's.
    name = own["client"]
    if config.client(name).grants.is_person:
        raise BadInput(
            f"the client '{name}' stands for a person, and MCP for a model",
            hint="leave --client out, or name a client of another kind",
            code="person_refused",
        )
    setup.note_unknown_client(global_options, config, name)
    if sys.stdin.isatty():
        output.note(
            global_options,
            "waiting for an MCP client on standard input, which starts this by itself; Ctrl-C ends it\n"
            "`knap mcp install` enters it into your clients",
        )
    listing = ToolListing(choice=own["profile"], output_schemas=own["output_schemas"])
    with open_hub(config, only=bool(global_options.vault), client=own["client"]) as hub:
        stdio.serve_stdio(hub, own["client"], listing, watch=own["watch"])
    return ExitCode.OK


@command.command(
    "install",
    epilog=options.examples(
        ("knap mcp install", "list the clients that are installed here, and where their settings are"),
        ("knap mcp install cursor --vault ~/Notes", "with one vault"),
        ("knap mcp install vscode --dry-run", "only show what would be written"),
    ),
)
@click.argument("client", required=False, default="")
@_profile_option
@click.option("--name", default="knapper", show_default=True, help="Name of the entry.")
@click.option("--file", default="", metavar="FILE", help="Settings file of the client, if it isn't in the usual place.")
@click.option("--dry-run", is_flag=True, help="Show what would be written without writing it.")
@options.pass_options
def install(global_options: GlobalOptions, client: str, **own: Unpack[McpInstallOptions]) -> ExitCode:
    """Add this server to a client's settings.

    The previous settings are kept in a backup file beside them.
    """
    from knapper.server.mcp import clients, install  # noqa: PLC0415 - serving needn't pay for it

    machine = clients.detect_machine()
    if not client:
        return _list_clients(global_options, machine)
    editor = clients.find_client(client)
    settings_file = Path(own["file"]).expanduser() if own["file"] else editor.file(machine)
    config = setup.read_settings(global_options)
    entry = install.InstallRequest(
        command=launching.server_command(global_options, config, own["profile"]),
        environment=launching.server_environment(config),
        name=own["name"],
    )
    report = install.install(editor, entry, settings_file, dry_run=own["dry_run"])
    if "problem" in report:
        text = f"{report['problem']}; enter this by hand:\n{report['content']}"
    elif not report["changed"]:
        text = f"{report['path']} says so already"
    elif own["dry_run"]:
        text = f"into {report['path']} would be entered:\n{report['content']}"
    else:
        backup_note = f"; what was there is in {report['backup']}" if "backup" in report else ""
        text = f"wrote {report['path']}{backup_note}\nrestart the client to see it"
    output.print_answer(global_options, {**report, "results": [report["path"]]}, text)
    if remark := launching.explain_variables(config, editor.title):
        output.note(global_options, remark)
    return ExitCode.OK


@command.command(
    "uninstall",
    epilog=options.examples(
        ("knap mcp uninstall cursor", "take the server out of one client"),
        ("knap mcp uninstall --all --dry-run", "which clients have it"),
    ),
)
@click.argument("names", metavar="[CLIENT]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Take it out of every client that has it.")
@click.option("--name", default="knapper", show_default=True, help="Name of the entry.")
@click.option("--file", default="", metavar="FILE", help="Settings file of the client, if it isn't in the usual place.")
@click.option("--dry-run", is_flag=True, help="Show what would be taken out without writing it.")
@options.pass_options
def uninstall(global_options: GlobalOptions, **own: Unpack[McpUninstallOptions]) -> ExitCode:
    """Take this server out of clients' settings.

    Only its own entry goes; the previous settings are kept in a backup file beside them.
    """
    from knapper.server.mcp import clients, install  # noqa: PLC0415 - serving needn't pay for it

    machine = clients.detect_machine()
    if own["is_all"] == bool(own["names"]) or (own["file"] and len(own["names"]) != 1):
        raise BadInput("name clients, or give --all; --file goes with one client", hint="`knap mcp status` lists them")
    chosen = clients.CLIENTS if own["is_all"] else [clients.find_client(name) for name in own["names"]]
    reports: list[Mapping[str, object]] = []
    for client in chosen:
        settings_file = Path(own["file"]).expanduser() if own["file"] else client.file(machine)
        try:
            reports.append(install.uninstall(client, settings_file, name=own["name"], dry_run=own["dry_run"]))
        except KnapError as error:
            if not own["is_all"]:
                raise
            reports.append({**error.as_dict(), "client": client.name, "path": str(settings_file)})
    if own["is_all"]:
        reports = [report for report in reports if report.get("changed") or not report["success"]]
    has_failed = any(not report["success"] for report in reports)
    lines = [_render_uninstall(report, dry_run=own["dry_run"]) for report in reports]
    answer = {"success": not has_failed, "results": reports, "dry_run": own["dry_run"]}
    output.write_either(global_options, answer, "\n".join(map(output.one_line, lines)) or "no client has it")
    return ExitCode.SETUP if has_failed else ExitCode.OK


@command.command(
    "status",
    epilog=options.examples(
        ("knap mcp status", "start what each client would, and make one call"),
        ("knap mcp status --no-try --json", "only look at the settings"),
    ),
)
@click.option("--try/--no-try", "is_trying", default=True, help="Start each server and make one call.  [default: try]")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(1, 600),
    default=30.0,
    show_default=True,
    help="Seconds for a trial.",
)
@click.option("--name", default="knapper", show_default=True, help="Name of the entry.")
@options.pass_options
def status(global_options: GlobalOptions, **own: Unpack[McpStatusOptions]) -> ExitCode:
    """Show which clients have this server, and try it.

    Each configured command is started with the few variables that clients hand on, and asked for the vault's notes.
    """
    from knapper.server.mcp import clients  # noqa: PLC0415 - serving needn't pay for it

    rows = launching.list_connections(
        clients.detect_machine(), name=own["name"], timeout_s=own["timeout_s"] if own["is_trying"] else 0
    )
    has_failed = any(row.state == "failed" for row in rows)
    answer = {"success": not has_failed, "results": [row.as_dict() for row in rows]}
    output.write_either(global_options, answer, launching.render_connections(rows))
    return ExitCode.SETUP if has_failed else ExitCode.OK


def _list_clients(global_options: GlobalOptions, machine: MachinePaths) -> ExitCode:
    """List the clients that are installed here; programs are told of the others, too."""
    from knapper.server.mcp import clients  # noqa: PLC0415 - serving needn't pay for it

    rows = [
        {
            "name": one.name,
            "title": one.title,
            "path": str(one.file(machine)),
            "installed": one.is_installed(machine),
        }
        for one in clients.CLIENTS
    ]
    lines = [f"{row['name']:<16}{row['path']}" for row in rows if row["installed"]]
    others = ", ".join(str(row["name"]) for row in rows if not row["installed"])
    listed = "\n".join(lines) or "no client was found here"
    text = f"{listed}\nnot found here, but can be named: {others}" if others else listed
    return output.print_answer(global_options, {"success": True, "results": rows}, text)


def _render_uninstall(report: Mapping[str, object], *, dry_run: bool) -> str:
    if not report["success"]:
        return f"{report['client']}: {report['error']}; {report['hint']}"
    if not report["changed"]:
        return f"{report['path']} has no entry '{report['name']}'"
    if dry_run:
        return f"the entry '{report['name']}' would be taken out of {report['path']}"
    return f"took '{report['name']}' out of {report['path']}; what was there is in {report['backup']}"
