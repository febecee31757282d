"""Read the vault into its index."""

import time

import click

from knapper.app import hub
from knapper.cli import options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.cli.render import indexing
from knapper.index.filters import Filter


@click.command(
    "index",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap index", "take in what changed"),
        ("knap index --full", "forget the index and read everything again"),
        ("knap index --no-embed", "words only; meaning comes with the next run"),
    ),
)
@click.option("--full", is_flag=True, help="Forget the index and read everything again.")
@click.option("--no-embed", is_flag=True, help="Leave out the vectors that search by meaning needs.")
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, *, full: bool, no_embed: bool) -> ExitCode:
    """Read the vault into its index.

    Words come first, and search answers from then on; then passages get the vectors that search by meaning needs. It
    may be interrupted: what is done stays done. The notes aren't changed.
    """
    start = time.monotonic()
    with setup.open_vault(said) as context:
        setup.note_if_busy(said, context)
        with indexing.show_progress(said) as on_progress:
            outcome = context.index.refresh(full=full, progress=on_progress)
            embedded = 0 if no_embed else context.index.embed(progress=on_progress)
        status = context.index.status(context.restrict(Filter()))
        outcome.problems += (*context.view.settings.problems, *context.view.ignore.problems)
    summary = indexing.IndexReport(outcome=outcome, embedded=embedded, status=status, seconds=time.monotonic() - start)
    if said.as_json:
        output.write_json(summary.as_dict())
    else:
        output.write(said, summary.text())
    if output.stderr_is_terminal() and not said.quiet and hub.prepare_sandbox(setup.read_settings(said)):
        output.note(said, "preparing the sandbox for scripts, in the background; this is done once")
    return ExitCode.OK
