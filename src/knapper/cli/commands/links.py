"""Show links."""

import click

from knapper.cli import calls, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.tools import shapes

_NUMBER = 100


@click.group(
    "links",
    epilog=options.examples(
        ("knap links in Garden", "who links to it"),
        ("knap links out Garden.md", "where its links lead"),
        ("knap links broken", "links with a missing target"),
        ("knap links orphans", "notes without any link"),
    ),
)
@options.shared_options
def command() -> None:
    """Show incoming, outgoing and broken links, and notes without links."""


@command.command(
    "in",
    epilog=options.examples(("knap links in Garden", "by name"), ("knap links in Plans/Week", "with its folder")),
)
@click.argument("note")
@options.limit_option(_NUMBER, shapes.MAX_RESULTS)
@options.pass_options
def incoming(global_options: GlobalOptions, note: str, number: int) -> ExitCode:
    """List the files that link to a note."""
    answer = calls.call(global_options, "links.find_backlinks", note_name=note, limit=number)
    if not answer["exists"]:
        output.note(global_options, f"note: there is no note '{output.plain(note)}'")
    return output.print_listing(global_options, answer, changes.render_backlinks(answer), nothing="nothing links there")


@command.command("out", epilog=options.examples(("knap links out Garden.md", "each with the file that it leads to")))
@click.argument("path")
@options.limit_option(_NUMBER, shapes.MAX_RESULTS)
@options.pass_options
def outgoing(global_options: GlobalOptions, path: str, number: int) -> ExitCode:
    """List the links of a note and their targets."""
    answer = calls.call(global_options, "links.find_outlinks", path=path, limit=number)
    return output.print_listing(global_options, answer, changes.render_outlinks(answer), nothing="it links nowhere")


@command.command(
    "broken",
    epilog=options.examples(("knap links broken", "in all notes"), ("knap links broken Projects", "below a folder")),
)
@click.argument("path", default="")
@options.limit_option(_NUMBER, shapes.MAX_RESULTS)
@options.pass_options
def broken(global_options: GlobalOptions, path: str, number: int) -> ExitCode:
    """List the links whose target is missing.

    PATH limits the list to a note or a folder.
    """
    answer = calls.call(global_options, "links.broken_links", path=path, limit=number)
    return output.print_listing(
        global_options, answer, changes.render_broken_links(answer), nothing="no link is broken"
    )


@command.command("orphans", epilog=options.examples(("knap links orphans", "linked by none, and linking to none")))
@options.limit_option(_NUMBER, shapes.MAX_RESULTS)
@options.pass_options
def orphans(global_options: GlobalOptions, number: int) -> ExitCode:
    """List the notes without incoming or outgoing links."""
    answer = calls.call(global_options, "links.orphans", limit=number)
    return output.print_listing(global_options, answer, changes.render_paths(answer), nothing="every note is linked")
