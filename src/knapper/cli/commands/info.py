"""Tell about a note."""

import click

from knapper.cli import calls, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import notes


@click.command(
    "info",
    epilog=options.examples(
        ("knap info Garden.md", "outline, properties, tags, tasks, links"),
        ("knap info Garden.md --json", "for programs; with the hash that `knap write` asks for"),
    ),
)
@click.argument("path")
@options.pass_options
def command(global_options: GlobalOptions, path: str) -> ExitCode:
    """Show a note's properties, links, tags and outline.

    Also shows tasks, aliases, dates and size, but not the text.
    """
    answer = calls.call(global_options, "notes.note_info", path=path)
    return output.print_listing(global_options, answer, notes.render_note_info(answer), nothing="")
