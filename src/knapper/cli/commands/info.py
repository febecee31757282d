"""Tell about a note."""

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import found
from knapper.tools import notes


@click.command(
    "info",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap info Garden.md", "outline, properties, tags, tasks, links"),
        ("knap info Garden.md --json", "for programs; with the hash that `knap write` asks for"),
    ),
)
@click.argument("path")
@options.shared
@click.pass_obj
def command(said: Options, path: str) -> ExitCode:
    """Tell about a note all but its text.

    Outline, properties, tags, tasks, links and dates.
    """
    with session.vault(said) as context:
        answer = notes.note_info(context, path)
    return output.listing(said, answer, found.about(answer), nothing="")
