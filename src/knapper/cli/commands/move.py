"""Move files and folders."""

from typing import Unpack

import click

from knapper.cli import options, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.tools import files


@click.command(
    "move",
    epilog=options.examples(
        ("knap move Shed.md Projects/", "into a folder, created if missing"),
        ("knap move Shed.md 'Garden house.md'", "another name"),
        ("knap move A.md B.md Archive/", "several into one folder"),
        ("knap move Projects Archive/Projects --dry-run", "a folder; only show which links would follow"),
    ),
)
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.argument("destination")
@writing.change_options
@options.pass_options
def command(
    global_options: GlobalOptions, sources: tuple[str, ...], destination: str, **own: Unpack[writing.ChangeOptions]
) -> ExitCode:
    """Move or rename notes, files and folders, and update links.

    Links that would break are rewritten in notes, properties, canvases and bases, and listed. Existing files are never
    overwritten. Moving a folder, or more than 5 files, becomes a proposal.
    """
    if not sources:
        hint = "name what moves, then where to: `knap move Note.md Folder/`"
        raise BadInput(f"where '{destination}' should go isn't said", hint=hint, code="usage")
    if not destination:
        raise BadInput("the destination is empty", hint="give a path, or '.' for the vault's own folder", code="usage")
    with writing.open_vault(global_options, own) as context:
        is_respelled = len(sources) == 1 and files.is_same_path(context, sources[0], destination)
        into = not is_respelled and files.is_folder_target(context, destination)
        if len(sources) > 1 and not into:
            hint = f"end it with a slash to have it made: '{destination}/'"
            raise BadInput(f"'{destination}' is no folder, and several files go there", hint=hint, code="usage")
        writing.complete_index(global_options, context)
        target = f"{destination.rstrip('/')}/" if into else destination
        if len(sources) == 1:
            answer = files.move_file(context, sources[0], target)
        else:
            answer = files.batch_move_files(context, [{"source": one, "destination": target} for one in sources])
    return writing.report_changes(global_options, answer)
