"""Tell how the vault's index stands."""

import click

from knapper.cli import options, output, session
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import standing
from knapper.tools import notes


@click.command(
    "status",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap status", "what is indexed, what isn't, and why"),
        ("knap -v work status --json", "for programs"),
    ),
)
@options.shared
@click.pass_obj
def command(said: Options) -> ExitCode:
    """Tell how the vault's index stands."""
    with session.vault(said) as context:
        answer = notes.vault_status(context)
        busy = context.index.is_being_filled
        places = {"vault": f"{context.vault} ({context.view.root})", "index": str(context.index.folder)}
    return output.result(said, answer, standing.of_vault(answer, places, busy=busy))
