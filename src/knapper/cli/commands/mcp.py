"""Serve a vault to MCP clients."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click

from knapper.cli import launching, options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.config import Settings, files
from knapper.errors import BadInput
from knapper.tools.context import TOOL_SELECTIONS, ToolSelection


class McpOptions(TypedDict):
    """The command's own options."""

    profile: ToolSelection
    output_schemas: bool | None
    client: str
    watch: bool


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
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap mcp", "as a client starts it"),
        ("knap mcp --vault Notes --profile read-only", "one vault, and no tool that changes it"),
        ("knap mcp install", "which clients there are"),
        ("knap mcp install claude-desktop --dry-run", "what would be written"),
    ),
)
@_profile_option
@click.option(
    "--output-schemas/--no-output-schemas",
    default=None,
    help="Whether each tool says what it answers.  [default: with full and read-only]",
)
@click.option("--client", default="mcp", show_default=True, metavar="NAME", help="Client whose policy applies.")
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
    import gc  # noqa: PLC0415 - see below

    files.keep_numpy_to_one_thread()
    gc.disable()  # collecting while libraries are imported costs a fifth of the time to the handshake
    from knapper.app import open_hub  # noqa: PLC0415 - installing needn't pay for it
    from knapper.server.mcp import stdio  # noqa: PLC0415 - the same
    from knapper.server.mcp.definitions import ToolListing  # noqa: PLC0415 - the same

    gc.freeze()
    gc.enable()
    config = setup.read_settings(global_options)
    _check_client(own["client"], config)
    listing = ToolListing(choice=own["profile"], output_schemas=own["output_schemas"])
    with open_hub(config, only=bool(global_options.vault), client=own["client"]) as hub:
        stdio.serve_stdio(hub, own["client"], listing, watch=own["watch"])
    return ExitCode.OK


@command.command(
    "install",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap mcp install", "list the clients, and where their settings are"),
        ("knap mcp install cursor --vault ~/Notes", "with one vault"),
        ("knap mcp install vscode --dry-run", "only show what would be written"),
    ),
)
@click.argument("client", required=False, default="")
@_profile_option
@click.option("--name", default="knapper", show_default=True, help="Name of the entry.")
@click.option("--file", default="", metavar="FILE", help="Settings file of the client, if it isn't in the usual place.")
@click.option("--dry-run", is_flag=True, help="Show what would be written without writing it.")
@options.shared_options
@click.pass_obj
def install(said: GlobalOptions, client: str, **own: Unpack[McpInstallOptions]) -> ExitCode:
    """Add this server to a client's settings.

    The previous settings are kept in a backup file beside them.
    """
    from knapper.server.mcp import install  # noqa: PLC0415 - serving needn't pay for it

    machine = install.detect_machine()
    if not client:
        rows = [{"name": one.name, "title": one.title, "path": str(one.file(machine))} for one in install.CLIENTS]
        text = "\n".join(f"{row['name']:<16}{row['path']}" for row in rows)
        return output.print_answer(said, {"success": True, "results": rows}, text)
    editor = install.find_client(client)
    settings_file = Path(own["file"]).expanduser() if own["file"] else editor.file(machine)
    config = setup.read_settings(said)
    entry = install.InstallRequest(
        command=launching.server_command(said, config, own["profile"]),
        environment=launching.server_environment(config),
        name=own["name"],
    )
    report = install.install(editor, entry, settings_file, dry_run=own["dry_run"])
    output.print_answer(said, {**report, "results": [report["path"]]}, _render_install(report, dry_run=own["dry_run"]))
    return ExitCode.OK


def _check_client(name: str, config: Settings) -> None:
    """Refuse a client that is a person: a model's request must not count as a person's."""
    if config.client(name).grants.is_person:
        raise BadInput(
            f"the client '{name}' stands for a person, and MCP for a model",
            hint="leave --client out, or name a client of another kind",
            code="person_refused",
        )


def _render_install(report: Mapping[str, object], *, dry_run: bool) -> str:
    if "problem" in report:
        return f"{report['problem']}; enter this by hand:\n{report['content']}"
    if not report["changed"]:
        return f"{report['path']} says so already"
    if dry_run:
        return f"into {report['path']} would be entered:\n{report['content']}"
    backup_note = f"; what was there is in {report['backup']}" if "backup" in report else ""
    return f"wrote {report['path']}{backup_note}\nrestart the client to see it"
