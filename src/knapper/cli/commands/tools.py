"""List tools, and describe one."""

from typing import TypedDict, Unpack

import click

from knapper.cli import options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.tools.context import TOOL_SELECTIONS, ToolSelection


class ToolsOptions(TypedDict):
    """The command's own options."""

    profile: ToolSelection


@click.command(
    "tools",
    epilog=options.examples(
        ("knap tools", "all of them, with what they do"),
        ("knap tools move_file", "parameters and result of one"),
        ("knap tools --profile essential --json", "definitions, for programs"),
    ),
)
@click.argument("name", required=False, default="")
@click.option(
    "--profile",
    type=click.Choice(TOOL_SELECTIONS),
    default="full",
    show_default=True,
    help="Selection of tools to list.",
)
@options.pass_options
def command(global_options: GlobalOptions, name: str, **own: Unpack[ToolsOptions]) -> ExitCode:
    """List or describe the tools that agents and clients can call.

    With NAME, describes that tool's parameters and result.
    """
    from knapper.app import tables  # noqa: PLC0415 - `knap tools --help` needn't pay for it
    from knapper.tools import registry  # noqa: PLC0415 - the same

    table = tables.build_table()
    rows = [table.find(name)] if name else list(table.listed_tools(own["profile"]))
    descriptions = [table.describe(row) for row in rows]
    if global_options.as_json:
        output.write_json(
            {"success": True, **(descriptions[0] if name else {"results": descriptions, "total": len(descriptions)})}
        )
    elif name:
        tool = descriptions[0]
        parts = (tool["description"], f"Effect: {tool['effect']}", "Takes:", _format_json(tool["parameters"]))
        output.write(global_options, "\n\n".join(map(str, (*parts, "Gives:", _format_json(tool["returns"])))))
    else:
        width = max(len(row.name) for row in rows)
        output.write(global_options, "\n".join(f"{row.name:<{width}}  {registry.summarize(row)}" for row in rows))
    return ExitCode.OK


def _format_json(schema: object) -> str:
    return output.dump_json(schema)
