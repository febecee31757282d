"""Read the vault into its index."""

import time

import click

from knapper.app import hub
from knapper.cli import options, output, session, settings
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import progress, standing
from knapper.index.filters import Filter


@click.command(
    "index",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap index", "take in what changed"),
        ("knap index --full", "forget the index and read everything again"),
        ("knap index --no-embed", "words only; meaning comes with the next run"),
    ),
)
@click.option("--full", is_flag=True, help="Forget the index and read everything again.")
@click.option("--no-embed", is_flag=True, help="Leave out the vectors that search by meaning needs.")
@options.shared
@click.pass_obj
def command(said: Options, *, full: bool, no_embed: bool) -> ExitCode:
    """Read the vault into its index.

    Words come first, and search answers from then on; then passages get the vectors that search by meaning needs. It
    may be interrupted: what is done stays done. The notes aren't changed.
    """
    start = time.monotonic()
    with session.vault(said) as context:
        session.tell_if_busy(said, context)
        with progress.shown(said) as heard:
            outcome = context.index.refresh(full=full, progress=heard)
            embedded = 0 if no_embed else context.index.embed(progress=heard)
        status = context.index.status(context.restrict(Filter()))
        outcome.problems += (*context.view.settings.problems, *context.view.ignore.problems)
    summary = standing.Summary(outcome=outcome, embedded=embedded, status=status, seconds=time.monotonic() - start)
    if said.as_json:
        output.write_json(summary.as_dict())
    else:
        output.write(said, summary.text())
    if output.is_terminal() and not said.quiet and hub.prepare_sandbox(settings.read(said)):
        output.note(said, "preparing the sandbox for scripts, in the background; this is done once")
    return ExitCode.OK
