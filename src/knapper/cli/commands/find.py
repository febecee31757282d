"""Find notes by what is known of them."""

from typing import Unpack

import click

from knapper.cli import calls, inputs, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import notes
from knapper.errors import BadInput
from knapper.tools import shapes


class FindOptions(inputs.FilterOptions):
    """The command's own options."""

    number: int
    offset: int
    folder: tuple[str, ...]
    sort: str
    field: tuple[str, ...]


@click.command(
    "find",
    epilog=options.examples(
        ("knap find --tag work --property status=open", "all conditions must match"),
        ("knap find --property due --sort due --field due", "by a property, and show it"),
        ("knap find --folder Journal --created-since 2026-01-01", "by day, from the property Date where there is one"),
        ("knap find garden --sort=-modified -n 5", "by words too, the last saved first"),
        ("knap find --property '!status' --json", "for programs"),
    ),
)
@click.argument("query", nargs=-1, type=options.TEXT)
@options.limit_option(50, shapes.MAX_RESULTS)
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Skip the first N results.")
@click.option("--folder", type=options.TEXT, multiple=True, metavar="FOLDER", help="Only notes below this folder.")
@inputs.filter_options
@click.option(
    "--sort",
    type=options.TEXT,
    default="",
    metavar="NAME",
    help="Sort by path, title, created, modified, size or a property; prefix - reverses the order.",
)
@click.option(
    "--field",
    type=options.TEXT,
    multiple=True,
    metavar="NAME",
    help="Also show modified, created, size, tags, aliases, preview or a property; repeatable.",
)
@options.pass_options
def command(global_options: GlobalOptions, query: tuple[str, ...], **own: Unpack[FindOptions]) -> ExitCode:
    """List notes by folder, tag, property, date and words."""
    if len(own["folder"]) > 1:
        hint = "run it once for each; `knap search` takes several"
        raise BadInput(f"--folder is given {len(own['folder'])} times, and `knap find` looks below one", hint=hint)
    answer = calls.call(
        global_options,
        "notes.find_notes",
        query=" ".join(query),
        folder=own["folder"][0] if own["folder"] else "",
        limit=own["number"],
        offset=own["offset"],
        **inputs.filter_arguments(own),
        sort=own["sort"],
        fields=own["field"],
    )
    if answer["total"] and not answer["results"]:
        output.note(global_options, f"note: {answer['total']:,} match, and --offset {own['offset']:,} skips them all")
    return output.print_answer(
        global_options, answer, notes.render_found_notes(answer), nearest=notes.render_nearest_notes(answer)
    )
