"""Move files to the trash, or restore them."""

from typing import Unpack

import click

from knapper.cli import options, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.tools import files


class RmOptions(writing.ChangeOptions):
    """The command's own options."""

    expected: str
    restore: bool


@click.command(
    "rm",
    epilog=options.examples(
        ("knap rm Inbox/Old.md", "into the trash that the vault's settings name"),
        ("knap rm A.md B.md -m 'merged into C'", "several, and why"),
        ("knap undo", "restore it"),
        ("knap rm --restore Inbox/Old.md", "restore it from the vault's own trash"),
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--restore", is_flag=True, help="Restore files from the vault's own trash.")
@writing.hash_option
@writing.change_options
@options.pass_options
def command(global_options: GlobalOptions, paths: tuple[str, ...], **own: Unpack[RmOptions]) -> ExitCode:
    """Move files to the trash, or restore them.

    Nothing is deleted for good: the vault's settings choose the trash, and `knap undo` restores the files.
    """
    if own["expected"] and len(paths) > 1:
        raise BadInput("--hash is of one note", hint="leave it out, or name one path", code="usage")
    if own["expected"] and own["restore"]:
        raise BadInput("--hash isn't of what lies in the trash", hint="leave it out", code="usage")
    with writing.open_vault(global_options, own) as context:
        if own["restore"]:
            answer = files.restore_files(context, paths)
        elif len(paths) == 1:
            answer = files.delete_file(context, paths[0], own["expected"])
        else:
            answer = files.delete_files(context, paths)
    return writing.report_changes(global_options, answer)
