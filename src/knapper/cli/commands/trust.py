"""Show who only proposes because they have read other people's text, and trust them again."""

from collections.abc import Sequence

import click

from knapper.changes.proposals.taint import Taint
from knapper.cli import options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.cli.output import plain
from knapper.errors import NotFound


@click.command(
    "trust",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap trust", "restricted clients, since when, and what they had read"),
        ("knap trust mcp", "trust that client again, in all its sessions"),
    ),
)
@click.argument("client", default="", metavar="[CLIENT]")
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, client: str) -> ExitCode:
    """Show clients restricted to proposals, and lift the restriction.

    A client that has read other people's text can only propose changes from then on. With the name of a client, this
    command lifts the restriction: your configuration decides again what is applied and what is proposed.
    """
    with setup.open_vault(said) as context:
        writer = context.writer
        taints = [one for one in writer.taints.entries() if client in {"", one.client}]
        if client and not taints:
            clients = ", ".join(dict.fromkeys(one.client for one in writer.taints.entries())) or "nobody"
            raise NotFound(f"'{client}' isn't held to proposals", hint=f"who is: {clients}", code="not_tainted")
        if client:
            for one in taints:
                _ = writer.taints.clear(one.client, one.run, by=writer.grants)
    rows = [
        {"client": one.client, "run": one.run, "since": one.at.isoformat(timespec="seconds"), "source": one.source}
        for one in taints
    ]
    answer = {"success": True, "results": rows, "total": len(rows), "trusted": bool(client)}
    text = f"{client} is trusted again" if client else _render_taints(taints)
    return output.print_listing(said, answer, text, nothing="nobody has read other people's text")


def _render_taints(taints: Sequence[Taint]) -> str:
    return "\n".join(
        f"{one.client}{f' in {one.run}' if one.run else ''}  since {one.at.astimezone():%Y-%m-%d %H:%M}, "
        f"of {plain(one.source)}"
        for one in taints
    )
