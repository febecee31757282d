"""List what was asked, found, proposed, accepted, rejected, changed and undone."""

from typing import TypedDict, Unpack

import click

from knapper import app
from knapper.app import history
from knapper.app.history import EntryKind, HistoryQuery
from knapper.cli import inputs, options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.tools import shapes


class HistoryOptions(TypedDict):
    """The command's own options."""

    number: int
    kind: tuple[EntryKind, ...]
    client: str
    run: str
    note: str
    since: str
    before: str


@click.command(
    "history",
    epilog=options.examples(
        ("knap history", "by pieces of work, that with the latest step first"),
        ("knap history --run r260314-092653-a1b2c3d4", "all of one: a run, session, proposal or change"),
        ("knap history --kind rejected --since 7d", "what was rejected of the proposals of a week"),
        ("knap history --note Projects --client agent", "what agents did with a note or a folder"),
    ),
)
@options.limit_option(history.LIMIT, shapes.MAX_RESULTS)
@click.option("--kind", type=click.Choice(history.KINDS), multiple=True, help="Only steps of this kind; repeatable.")
@click.option("--client", default="", metavar="NAME", help="Only steps of this client.")
@click.option("--run", default="", metavar="ID", help="Only the work of this run, session, proposal or change.")
@click.option("--note", default="", metavar="PATH", type=options.TEXT, help="Only steps about this note or folder.")
@click.option("--since", default="", metavar="TIME", help="Only steps since then, such as 2026-01-31 or 2h.")
@click.option("--before", default="", metavar="PLACE", help="Only steps before a time, or before the end of a page.")
@options.pass_options
def command(global_options: GlobalOptions, **own: Unpack[HistoryOptions]) -> ExitCode:
    """List what was asked, found, proposed and done, by pieces of work.

    A piece of work is a chat session, a run or a task, with what it found, what it proposed, what became of that, and
    what was undone; or a single proposal or change that none of these made.
    """
    before = own["before"]
    if before and "/" not in before:  # a time, which is given in full; the end of a page is used as it is
        before = inputs.parse_time(before).isoformat()
    query = HistoryQuery(
        limit=own["number"],
        before=before,
        since=inputs.parse_time(own["since"]).isoformat() if own["since"] else "",
        client=own["client"],
        work=own["run"],
        kinds=frozenset(own["kind"] or history.KINDS),
        note=own["note"],
    )
    with (
        app.open_hub(setup.read_settings(global_options), only=True) as hub,
        history.open_at_terminal(hub) as sources,
    ):
        page = history.read_page(sources, query)
    text = changes.render_history(page)
    asked = {"--run": own["run"], "--note": own["note"], "--client": own["client"], "--since": own["since"]}
    named = [f"{option} {value}" for option, value in asked.items() if value]
    named += [f"--kind {kind}" for kind in own["kind"]]
    nothing = f"nothing in the history matches {', '.join(named)}" if named else "nothing was done"
    return output.print_listing(global_options, page.as_dict(), text, nothing=nothing)
