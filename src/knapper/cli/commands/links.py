"""Show links."""

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import listings
from knapper.tools import answers, links

_NUMBER = 100


@click.group(
    "links",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap links in Garden", "who links to it"),
        ("knap links out Garden.md", "where its links lead"),
        ("knap links broken", "links that lead nowhere"),
        ("knap links orphans", "notes without any link"),
    ),
)
@options.shared
def command() -> None:
    """Show links: in, out, broken, and notes without any."""


@command.command(
    "in",
    context_settings=options.CONTEXT,
    epilog=options.examples(("knap links in Garden", "by name"), ("knap links in Plans/Week", "with its folder")),
)
@click.argument("note")
@options.number(_NUMBER, answers.MAX_RESULTS)
@options.reading
@options.shared
@click.pass_obj
def incoming(said: Options, note: str, number: int) -> ExitCode:
    """List the files that link to a note."""
    with session.vault(said) as context:
        answer = links.find_backlinks(context, note, number)
    if not answer["exists"]:
        output.note(said, f"note: there is no note '{output.plain(note)}'")
    return output.listing(said, answer, listings.links_in(answer), nothing="nothing links there")


@command.command(
    "out",
    context_settings=options.CONTEXT,
    epilog=options.examples(("knap links out Garden.md", "each with the file that it leads to")),
)
@click.argument("path")
@options.number(_NUMBER, answers.MAX_RESULTS)
@options.reading
@options.shared
@click.pass_obj
def outgoing(said: Options, path: str, number: int) -> ExitCode:
    """List the links of a note, and where they lead."""
    with session.vault(said) as context:
        answer = links.find_outlinks(context, path, number)
    return output.listing(said, answer, listings.links_out(answer), nothing="it links nowhere")


@command.command(
    "broken",
    context_settings=options.CONTEXT,
    epilog=options.examples(("knap links broken", "in all notes"), ("knap links broken Projects", "below a folder")),
)
@click.argument("path", default="")
@options.number(_NUMBER, answers.MAX_RESULTS)
@options.reading
@options.shared
@click.pass_obj
def broken(said: Options, path: str, number: int) -> ExitCode:
    """List the links that lead nowhere.

    PATH is a note or a folder.
    """
    with session.vault(said) as context:
        answer = links.broken_links(context, path, number)
    return output.listing(said, answer, listings.broken(answer), nothing="no link is broken")


@command.command(
    "orphans",
    context_settings=options.CONTEXT,
    epilog=options.examples(("knap links orphans", "linked by none, and linking to none")),
)
@options.number(_NUMBER, answers.MAX_RESULTS)
@options.reading
@options.shared
@click.pass_obj
def orphans(said: Options, number: int) -> ExitCode:
    """List the notes without any link."""
    with session.vault(said) as context:
        answer = links.orphans(context, number)
    return output.listing(said, answer, listings.paths(answer), nothing="every note is linked")
