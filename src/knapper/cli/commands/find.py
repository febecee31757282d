"""Find notes by what is known of them."""

from typing import Unpack

import click

from knapper.cli import filtering, options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import found
from knapper.tools import answers, notes


class Said(filtering.Said):
    """Hold the command's own options."""

    number: int
    offset: int
    folder: str
    sort: str
    field: tuple[str, ...]


@click.command(
    "find",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap find --tag work --property status=open", "all that is given must hold"),
        ("knap find --property due --sort due --field due", "by a property, and show it"),
        ("knap find --folder Journal --created-since 2026-01-01", "by day, from the property Date where there is one"),
        ("knap find garden --sort=-modified -n 5", "by words too, the last saved first"),
        ("knap find --property '!status' --json", "for programs"),
    ),
)
@click.argument("query", nargs=-1, type=options.TEXT)
@options.number(50, answers.MAX_RESULTS)
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N.")
@click.option("--folder", type=options.TEXT, default="", metavar="FOLDER", help="Only below this folder.")
@filtering.notes
@click.option(
    "--sort",
    type=options.TEXT,
    default="",
    metavar="NAME",
    help="path, title, created, modified, size or a property; with - before it the other way round.",
)
@click.option(
    "--field",
    type=options.TEXT,
    multiple=True,
    metavar="NAME",
    help="Show this too: modified, created, size, tags, aliases, preview or a property; may stand several times.",
)
@options.shared
@click.pass_obj
def command(said: Options, query: tuple[str, ...], **own: Unpack[Said]) -> ExitCode:
    """Find notes by folder, tag, property, day and words."""
    with session.vault(said) as context:
        answer = notes.find_notes(
            context,
            " ".join(query),
            own["folder"],
            own["number"],
            own["offset"],
            **filtering.where(own),
            sort=own["sort"],
            fields=own["field"],
        )
    return output.answer(said, answer, found.notes(answer))
