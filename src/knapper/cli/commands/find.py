"""Find notes by what is known of them."""

from typing import TypedDict, Unpack

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import found
from knapper.tools import answers, notes


class Said(TypedDict):
    """Hold the command's own options."""

    number: int
    offset: int
    folder: str
    exclude_folder: tuple[str, ...]
    tag: tuple[str, ...]
    exclude_tag: tuple[str, ...]
    property_test: tuple[str, ...]
    since: str
    until: str
    created_since: str
    created_until: str
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
@options.number(50, answers.MOST)
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N.")
@click.option("--folder", type=options.TEXT, default="", metavar="FOLDER", help="Only below this folder.")
@click.option("--exclude-folder", type=options.TEXT, multiple=True, metavar="FOLDER", help="Nothing below this folder.")
@click.option(
    "--tag", type=options.TEXT, multiple=True, metavar="TAG", help="Only notes with this tag, or one nested below it."
)
@click.option("--exclude-tag", type=options.TEXT, multiple=True, metavar="TAG", help="No notes with this tag.")
@click.option(
    "--property",
    "property_test",
    type=options.TEXT,
    multiple=True,
    metavar="TEST",
    help="name, !name, name=value, name!=value, name~part or name!~part; may stand several times.",
)
@click.option("--since", type=options.DAY, default="", metavar="DAY", help="Only notes saved on this day or later.")
@click.option("--until", type=options.DAY, default="", metavar="DAY", help="Only notes saved on this day or before.")
@click.option(
    "--created-since", type=options.DAY, default="", metavar="DAY", help="Only notes made on this day or later."
)
@click.option(
    "--created-until", type=options.DAY, default="", metavar="DAY", help="Only notes made on this day or before."
)
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
            tags=own["tag"],
            properties=own["property_test"],
            exclude_folders=own["exclude_folder"],
            exclude_tags=own["exclude_tag"],
            modified_from=own["since"],
            modified_to=own["until"],
            created_from=own["created_since"],
            created_to=own["created_until"],
            sort=own["sort"],
            fields=own["field"],
        )
    return output.answer(said, answer, found.notes(answer))
