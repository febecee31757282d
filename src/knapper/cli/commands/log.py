"""List what was changed."""

from typing import TypedDict, Unpack

import click

from knapper.cli import calls, inputs, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.errors import KnapError
from knapper.tools import shapes


class LogOptions(TypedDict):
    """The command's own options."""

    number: int
    client: str
    run: str
    proposal: str
    since: str


@click.command(
    "log",
    epilog=options.examples(
        ("knap log", "the newest first, with the ids that `knap undo` takes"),
        ("knap log Projects -n 5", "of a note or a folder"),
        ("knap log --client mcp --since 2h", "what a client changed in the last two hours"),
    ),
)
@click.argument("path", default="")
@options.limit_option(20, shapes.MAX_RESULTS)
@click.option("--client", default="", metavar="NAME", help="Only changes by this client.")
@click.option("--run", default="", metavar="ID", help="Only changes by this run.")
@click.option("--proposal", default="", metavar="ID", help="Only changes from accepting this proposal.")
@click.option("--since", default="", metavar="TIME", help="Only changes since then, such as 2026-01-31 or 2h.")
@options.pass_options
def command(global_options: GlobalOptions, path: str, **own: Unpack[LogOptions]) -> ExitCode:
    """List changes: what, by whom and why.

    Lists the changes made through Knapper by anyone, but not what other editors save.
    """
    since = inputs.parse_time(own["since"]).isoformat() if own["since"] else ""
    answer = calls.call(
        global_options,
        "journal.list_changes",
        limit=own["number"],
        client=own["client"],
        run=own["run"],
        proposal_id=own["proposal"],
        path=path,
        since=since,
    )
    nothing = "nothing was changed"
    if path and not (global_options.as_json or answer["results"]):
        from knapper.cli import setup  # noqa: PLC0415 - what a server answers needs no vault

        with setup.open_vault(global_options) as context:
            try:
                is_there = (context.view.root / path).exists() or bool(context.view.locate(path))
            except KnapError:
                is_there = False
        if not is_there:
            nothing += f", and there is no file or folder '{output.one_line(path)}' in the vault"
    return output.print_listing(global_options, answer, changes.render_changes(answer), nothing=nothing)
