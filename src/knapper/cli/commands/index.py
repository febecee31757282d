"""Build or update the search index."""

import time
from contextlib import nullcontext

import click

from knapper import extras
from knapper.app import hub
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import indexing
from knapper.errors import StorageError
from knapper.index.documents import Filter
from knapper.index.refresh import RefreshOutcome
from knapper.index.status import IndexStatus
from knapper.tools.context import Context

_EMBED_WAIT_S = 60.0
"""How long to wait for another process that computes vectors; with a slow model that takes hours."""
_MANY_CHUNKS = 50_000
"""Passages from which on it's worth naming the extra for many vectors."""


@click.command(
    "index",
    epilog=options.examples(
        ("knap index", "update with what changed"),
        ("knap index --full", "delete the index and rebuild it"),
        ("knap index --no-embed", "text only; the next run computes vectors"),
    ),
)
@click.option("--full", is_flag=True, help="Delete the index and rebuild it.")
@click.option("--no-embed", is_flag=True, help="Don't compute the vectors for search by meaning.")
@options.pass_options
def command(global_options: GlobalOptions, *, full: bool, no_embed: bool) -> ExitCode:
    """Build or update the search index.

    Text is indexed first, and search works from then on; then the vectors for search by meaning are computed. You can
    interrupt the command: finished work is kept. The notes aren't changed.
    """
    start = time.monotonic()
    with setup.open_vault(global_options) as context:
        setup.note_if_busy(global_options, is_busy=context.index.is_being_filled)
        try:
            outcome, embedded, status = _update(global_options, context, full=full, no_embed=no_embed)
        except StorageError as error:
            question = f"{error.message}. Is its disk mounted? Remove all of them from the index?"
            if error.code != "vault_empty" or not (output.can_ask() and output.confirm(question)):
                raise
            outcome, embedded, status = _update(global_options, context, full=True, no_embed=no_embed)
        failed = context.index.publishing.error
        is_deriving = bool(status.pending) and context.index.is_deriving
        outcome.problems += (*context.view.settings.problems, *context.view.ignore.problems)
    summary = indexing.IndexReport(
        outcome=outcome,
        embedded=embedded,
        status=status,
        seconds=time.monotonic() - start,
        is_published=not setup.read_settings(global_options).vault.has_files,
        is_deriving=is_deriving,
    )
    output.write_either(global_options, summary.as_dict(), summary.text())
    if failed is not None:
        # What was indexed is there, and is published by the next run.
        raise failed
    if (
        output.stderr_is_terminal()
        and not global_options.quiet
        and hub.prepare_sandbox(setup.read_settings(global_options))
    ):
        output.note(global_options, "preparing the sandbox for scripts, in the background; this is done once")
    if (
        status.model
        and status.chunks >= _MANY_CHUNKS
        and not global_options.quiet
        and not extras.is_installed("vectors")
    ):
        command = extras.find_installation().shown_command("vectors")
        output.note(
            global_options, f"search by meaning is several times as quick in {status.chunks:,} passages with: {command}"
        )
    return ExitCode.OK


def _update(
    global_options: GlobalOptions, context: Context, *, full: bool, no_embed: bool
) -> tuple[RefreshOutcome, int, IndexStatus]:
    """Index the text and compute its vectors.

    Returns:
        What was done, how many chunks were embedded, and how the index stood then.
    """
    with indexing.show_progress(global_options) as on_progress:
        # Else a second `knap index --full` could clear the index before its vectors are computed and it is counted.
        with context.index.filling() if full else nullcontext() as is_alone:
            outcome = context.index.refresh(full=full, progress=on_progress)
            embedded = 0
            if not no_embed:
                wait_s = 0 if is_alone is False else _EMBED_WAIT_S  # which it has waited already
                embedded = context.index.embed(progress=on_progress, publishes=False, wait_s=wait_s)
            status = context.index.status(context.restrict(Filter()))
        # Publishing takes as long as a server of others does, so nobody waits for it.
        context.index.publish(progress=on_progress)
    return outcome, embedded, status
