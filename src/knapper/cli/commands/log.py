"""List what was changed."""

from typing import TypedDict, Unpack

import click

from knapper.cli import options, output, session, times
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import listings
from knapper.tools import answers, journal


class Said(TypedDict):
    """Hold the command's own options."""

    number: int
    client: str
    run: str
    proposal: str
    since: str


@click.command(
    "log",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap log", "the newest first, with the ids that `knap undo` takes"),
        ("knap log Projects -n 5", "of a note or a folder"),
        ("knap log --client mcp --since 2h", "what a client changed in the last two hours"),
    ),
)
@click.argument("path", default="")
@options.number(20, answers.MAX_RESULTS)
@click.option("--client", default="", metavar="NAME", help="Only what this client changed.")
@click.option("--run", default="", metavar="ID", help="Only what this run changed.")
@click.option("--proposal", default="", metavar="ID", help="Only what accepting this proposal changed.")
@click.option("--since", default="", metavar="TIME", help="Only from then on: 2026-01-31, or 2h.")
@options.reading
@options.shared
@click.pass_obj
def command(said: Options, path: str, **own: Unpack[Said]) -> ExitCode:
    """List what was changed, by whom, and why.

    Changes made with this program are listed, whoever asked for them; what an editor saves isn't.
    """
    since = times.moment(own["since"]).isoformat() if own["since"] else ""
    with session.vault(said) as context:
        answer = journal.list_changes(
            context,
            own["number"],
            client=own["client"],
            run=own["run"],
            proposal_id=own["proposal"],
            path=path,
            since=since,
        )
        is_there = not path or (context.view.root / path).exists()
    nothing = "nothing was changed"
    if not is_there:
        nothing += f", and there is no file or folder '{output.line(path)}' in the vault"
    return output.listing(said, answer, listings.changes(answer), nothing=nothing)
