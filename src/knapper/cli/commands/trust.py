"""Show who only proposes because they have read untrusted content, and trust them again."""

import click

from knapper.app import clients
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode, plain


@click.command(
    "trust",
    epilog=options.examples(
        ("knap trust", "restricted clients, since when, and what they had read"),
        ("knap trust mcp", "trust that client again, in all its sessions"),
        ("knap trust --all", "trust all clients, runs and sessions again"),
    ),
)
@click.argument("client", default="", metavar="[CLIENT]")
@click.option("--all", "everyone", is_flag=True, help="Lift all restrictions.")
@options.pass_options
def command(global_options: GlobalOptions, client: str, *, everyone: bool) -> ExitCode:
    """Show clients restricted to proposals, and lift the restriction.

    A client that has read untrusted content can only propose changes: in the run, session or connection in which it
    read that, or without one for an hour (proposals.taint_minutes). With the name of a client, this command lifts the
    restriction: your configuration decides again what is applied and what is proposed.
    """
    with setup.open_vault(global_options) as context:
        lifts = bool(client) or everyone
        taints = clients.trust(context, client=client, everyone=everyone) if lifts else clients.list_restricted(context)
    rows = [clients.describe_restriction(taint) for taint in taints]
    answer = {"success": True, "results": rows, "total": len(rows), "trusted": lifts}
    nothing = "nobody has read untrusted content"
    if lifts and taints:
        text = f"{client or 'everybody'} is trusted again"
        return output.print_listing(global_options, answer, text, nothing=nothing)
    lines: list[str] = []
    for taint in taints:
        where = f" in {taint.run}" if taint.run else ""
        until = f" until {taint.until.astimezone():%Y-%m-%d %H:%M}" if taint.until else ""
        since = f"{taint.at.astimezone():%Y-%m-%d %H:%M}"
        lines.append(plain(f"{taint.client}{where}  since {since}{until}, of {taint.source}"))
    return output.print_listing(global_options, answer, "\n".join(lines), nothing=nothing)
