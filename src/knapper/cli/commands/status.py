"""Tell how the vault's index stands."""

import click

from knapper.changes.disk import storage
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode, pluralize
from knapper.cli.render import indexing
from knapper.errors import KnapError
from knapper.tools import notes


@click.command(
    "status",
    epilog=options.examples(
        ("knap status", "what is indexed, what isn't and why"),
        ("knap -v work status --json", "for programs"),
    ),
)
@options.pass_options
def command(global_options: GlobalOptions) -> ExitCode:
    """Show the state of the index."""
    with setup.open_vault(global_options) as context:
        # After the vault: importing the packages behind it fails where the current folder is gone, without saying so.
        from knapper.agents import stages  # noqa: PLC0415 - `--help` needn't pay for it
        from knapper.server import addresses  # noqa: PLC0415 - the same

        answer = notes.vault_status(context)
        scheduled = stages.ScheduleStore(folder=context.index.folder.parent).all()
        places = {"vault": f"{context.vault} ({context.view.root})", "index": str(context.index.folder)}
        try:
            shared = context.index.check_source()
        except KnapError as error:  # what is local is told all the same
            shared = f"{error.message}; {error.hint}"
        if shared:
            places["shared"] = shared
        state_dir = setup.read_settings(global_options).state_dir
        emptied = [*storage.find_emptied(context.index.folder.parent), *storage.find_emptied(state_dir)]
        if server := addresses.describe_server(state_dir):
            places["server"] = server
    text, now = indexing.render_status(answer, places), stages.wall_clock()
    if scheduled:
        rows = [one.as_dict(now) for one in scheduled]
        answer = {**answer, "schedules": rows}
        text = f"{text}\n{pluralize(len(scheduled), 'schedule')}; `knap schedule` lists them"
        for one in scheduled:
            if one.last is not None and one.last.state in {"held", "failed"}:
                text += "\n  " + output.plain(f"{one.name}: {one.last.state} last time: {one.last.reason}")
    if emptied:
        answer = {**answer, "damaged": [error.as_dict() for error in emptied]}
        text = "\n".join([text, *(f"damaged {output.plain(f'{error.message}; {error.hint}')}" for error in emptied)])
    return output.print_result(global_options, answer, text)
