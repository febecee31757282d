"""The options that commands that write have in common, and the report of their outcome."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

import click

from knapper.cli import options, output
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.errors import BadInput, CallerError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from knapper.cli.options import GlobalOptions
    from knapper.tools.context import Context
    from knapper.tools.shapes.write import WriteResult


class ChangeOptions(TypedDict):
    """The options of every command that writes."""

    dry_run: bool
    yes: bool
    propose: bool
    reason: str


def change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that writes."""
    return options.decorate(
        command,
        click.option("--dry-run", is_flag=True, help="Show what would change without changing anything."),
        click.option("-y", "--yes", is_flag=True, help="Apply at once what would otherwise become a proposal."),
        click.option("--propose", is_flag=True, help="Always save the change as a proposal."),
        click.option("-m", "--reason", default="", metavar="TEXT", help="Reason to record in the journal."),
    )


def hash_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that requires a known state of the note."""
    option = click.option(
        "--hash", "expected", default="", metavar="HASH", help="Fail unless the note still has this hash."
    )
    return option(command)


def open_vault(options: GlobalOptions, own: Mapping[str, Any]) -> Context:
    """Open the chosen vault for writing as the options say; the command closes it.

    Args:
        options: The shared options.
        own: The command's own, including those of `ChangeOptions`.

    Raises:
        BadInput: Two options contradict each other.
        SetupError: No vault is chosen, or its state can't be kept.
    """
    if own["yes"] and own["propose"]:
        raise BadInput("--yes and --propose contradict each other", hint="give one of them", code="usage")
    from knapper.changes.writer import SubmitOptions  # noqa: PLC0415 - a server's answers need nothing that writes
    from knapper.cli import setup  # noqa: PLC0415 - the same

    intent = SubmitOptions(
        reason=own["reason"], dry_run=own["dry_run"], propose=own["propose"], approved_by_person=own["yes"]
    )
    return replace(setup.open_vault(options, writes=True), submit_options=intent)


@contextmanager
def note_first(context: Context, path: str, others: Sequence[str], usage: str) -> Generator[None]:
    """Where there is no such note, and one of the other arguments names one, have the error say that it comes first.

    Args:
        context: The vault.
        path: The argument that is taken for the note.
        others: The arguments after it.
        usage: The arguments in their order, as the help has them.
    """
    try:
        yield
    except NotFound as error:
        from knapper.vault import paths  # noqa: PLC0415 - `knap tags`, which a server answers, needs nothing of a vault

        is_missing = error.message.startswith(f"no file {paths.quote_path(path)}")
        if is_missing and any(one.endswith(".md") and _is_file(context, one) for one in others):
            error.hint = f"the note comes first: `{usage}`"
        raise


def _is_file(context: Context, path: str) -> bool:
    try:
        _ = context.view.path(path)
    except CallerError:
        return False
    return True


def complete_index(options: GlobalOptions, context: Context) -> None:
    """Complete the index before links are looked up in it, and show the progress: a large vault takes a while.

    Raises:
        ConflictError: Another process has been writing the index for a minute.
        StorageError: The index can't be written.
    """
    from knapper.cli import setup  # noqa: PLC0415 - as above
    from knapper.cli.render import indexing  # noqa: PLC0415 - the same

    if context.index.graph.is_complete and not context.index.is_being_written:
        return
    setup.note_if_busy(options, is_busy=context.index.is_being_written)
    with indexing.show_progress(options) as on_progress:
        _ = context.index.refresh(progress=on_progress)


def report_changes(options: GlobalOptions, answer: WriteResult) -> ExitCode:
    """Print the outcome of the requested changes.

    Returns:
        The exit code, which says whether any part failed.
    """
    failures = [*answer.get("failures", ()), *answer.get("refusals", ())]
    if options.as_json:
        output.write_json(answer)
    else:
        own = click.get_current_context().params
        # `--yes` would make a difference: the command has that option, and isn't set to propose.
        takes_yes = own.get("yes") is False and not own.get("propose")
        output.write(options, changes.render_outcome(answer, takes_yes=takes_yes))
        for row in failures:
            click.echo(changes.render_failure(row), err=True)
        for notice in answer.get("notes", ()):
            output.note(options, f"note: {output.plain(notice)}")
    return ExitCode.NOTHING if failures else ExitCode.OK
