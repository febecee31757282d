"""Tell how the vault's index stands."""

import click

from knapper.cli import options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.cli.render import indexing
from knapper.errors import KnapError
from knapper.tools import notes


@click.command(
    "status",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap status", "what is indexed, what isn't and why"),
        ("knap -v work status --json", "for programs"),
    ),
)
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions) -> ExitCode:
    """Show the state of the index."""
    with setup.open_vault(said) as context:
        answer = notes.vault_status(context)
        busy = context.index.is_being_filled
        places = {"vault": f"{context.vault} ({context.view.root})", "index": str(context.index.folder)}
        try:
            shared = context.index.check_source()
        except KnapError as error:  # what is local is told all the same
            shared = f"{error.message}; {error.hint}"
        if shared:
            places["shared"] = shared
    return output.print_result(said, answer, indexing.render_status(answer, places, busy=busy))
