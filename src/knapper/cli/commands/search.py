"""Find passages."""

from typing import Literal, Unpack

import click

from knapper.cli import calls, inputs, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import notes
from knapper.tools import shapes


class SearchOptions(inputs.FilterOptions):
    """The command's own options."""

    number: int
    mode: Literal["hybrid", "semantic", "keyword"]
    per_note: int
    folder: tuple[str, ...]
    log: bool
    explain: bool


@click.command(
    "search",
    epilog=options.examples(
        ('knap search "undo a change"', "by words and by meaning"),
        ("knap search '\"exact phrase\" begins* -without'", "quoted, begun and excluded words"),
        ("knap search budget --folder Projects --tag work", "only some notes"),
        ("knap search plan --property status=open", "also name, !name, name!=value, name~part"),
        ("knap search garden --json", "for programs"),
    ),
)
@click.argument("query", nargs=-1, required=True, type=options.TEXT)
@options.limit_option(5, shapes.MAX_PASSAGES)
@click.option(
    "--mode", type=click.Choice(shapes.SEARCH_MODES), default="hybrid", show_default=True, help="Ranking method."
)
@click.option(
    "--folder",
    type=options.TEXT,
    multiple=True,
    metavar="FOLDER",
    help="Only notes below this folder; repeatable.",
)
@inputs.filter_options
@click.option(
    "--per-note", type=click.IntRange(1), default=2, show_default=True, help="Maximum number of passages per note."
)
@click.option("--log", is_flag=True, help="Include what Knapper logged in daily notes.")
@click.option("--explain", is_flag=True, help="Show how each score is made up.")
@options.pass_options
def command(global_options: GlobalOptions, query: tuple[str, ...], **own: Unpack[SearchOptions]) -> ExitCode:
    """Search passages by words and by meaning."""
    text = " ".join(query)
    answer = calls.call(
        global_options,
        "search.search_vault",
        query=text,
        n_results=own["number"],
        mode=own["mode"],
        folders=own["folder"],
        **inputs.filter_arguments(own),
        per_note=own["per_note"],
        include_log=own["log"],
        explain=own["explain"],
    )
    return output.print_answer(
        global_options,
        answer,
        notes.render_search_results(text, answer["results"]),
        nearest=notes.render_nearest(answer.get("nearest", ())),
    )
