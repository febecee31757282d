"""Find passages."""

from typing import TypedDict, Unpack

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import passages
from knapper.index.search import Mode
from knapper.tools import search


class Said(TypedDict):
    """Hold the command's own options."""

    number: int
    mode: Mode
    per_note: int
    folder: tuple[str, ...]
    exclude_folder: tuple[str, ...]
    tag: tuple[str, ...]
    exclude_tag: tuple[str, ...]
    property_test: tuple[str, ...]
    since: str
    until: str
    log: bool
    explain: bool


@click.command(
    "search",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ('knap search "undo a change"', "by words and by meaning"),
        ("knap search '\"exact phrase\" begins* -without'", "quoted, begun and excluded words"),
        ("knap search budget --folder Projects --tag work", "only some notes"),
        ("knap search plan --property status=open", "also name, !name, name!=value, name~part"),
        ("knap search garden --json", "for programs"),
    ),
)
@click.argument("query", nargs=-1, required=True, type=options.TEXT)
@options.number(5, search.MAX_RESULTS)
@click.option("--mode", type=click.Choice(search.MODES), default="hybrid", show_default=True, help="What to rank by.")
@click.option(
    "--folder",
    type=options.TEXT,
    multiple=True,
    metavar="FOLDER",
    help="Only below this folder; may stand several times.",
)
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
    metavar="NAME=VALUE",
    help="Only notes with this property.",
)
@click.option("--since", type=options.DAY, default="", metavar="DAY", help="Only notes saved on this day or later.")
@click.option("--until", type=options.DAY, default="", metavar="DAY", help="Only notes saved on this day or before.")
@click.option("--per-note", type=click.IntRange(1), default=2, show_default=True, help="How many of one note.")
@click.option("--log", is_flag=True, help="Find what knap logged in daily notes, too.")
@click.option("--explain", is_flag=True, help="Show where each score comes from.")
@options.shared
@click.pass_obj
def command(said: Options, query: tuple[str, ...], **own: Unpack[Said]) -> ExitCode:
    """Find passages by words and by meaning."""
    text = " ".join(query)
    with session.vault(said) as context:
        answer = search.search_vault(
            context,
            text,
            own["number"],
            own["mode"],
            folders=own["folder"],
            exclude_folders=own["exclude_folder"],
            tags=own["tag"],
            exclude_tags=own["exclude_tag"],
            properties=own["property_test"],
            modified_from=own["since"],
            modified_to=own["until"],
            per_note=own["per_note"],
            include_log=own["log"],
            explain=own["explain"],
        )
    return output.answer(said, answer, passages.listing(text, passages.of(answer)))
