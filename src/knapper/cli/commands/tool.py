"""Call a tool by name."""

import json
from typing import TypedDict, Unpack

import click

from knapper.cli import calls, inputs, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.jsontypes import is_object


class ToolOptions(TypedDict):
    """The command's own options."""

    client: str


@click.command(
    "tool",
    epilog=options.examples(
        ('knap tool read_file \'{"path": "Garden.md"}\'', "what an agent would get"),
        ("knap tool create_file - < arguments.json", "arguments from the standard input"),
        ("knap tool edit_file '{…}' --client mcp", "as that client, under its policy"),
        ("knap tools edit_file", "the parameters of a tool"),
    ),
)
@click.argument("name")
@click.argument("arguments", default="{}", metavar="[JSON|-]")
@options.client_option("cli")
@options.pass_options
def command(global_options: GlobalOptions, name: str, arguments: str, **own: Unpack[ToolOptions]) -> ExitCode:
    """Call a tool with JSON arguments.

    The arguments are a JSON object, and so is the answer.
    """
    if own["client"] != "cli":
        from knapper.cli import setup  # noqa: PLC0415 - what a server answers needs no settings

        setup.note_unknown_client(global_options, setup.read_settings(global_options), own["client"])
    global_options.as_json = True
    text = inputs.read_text(global_options, arguments)
    try:
        tool_arguments: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "quote the whole object for the shell, or give - and the object on the standard input"
        raise BadInput(f"the arguments aren't JSON: {error}", hint=hint, code="invalid_json") from None
    if not is_object(tool_arguments):
        raise BadInput("the arguments aren't a JSON object", hint='such as {"path": "Garden.md"}', code="invalid_json")
    answer = calls.call_named(global_options, name, tool_arguments, own["client"])
    output.write_json(answer)
    return ExitCode.NOTHING if answer.get("success") is False else ExitCode.OK
