"""Replace a whole note, or create it."""

from typing import Unpack

import click

from knapper.cli import inputs, options, output, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput, NotFound
from knapper.tools import files, reading


class WriteOptions(writing.ChangeOptions):
    """The command's own options."""

    expected: str


@click.command(
    "write",
    epilog=options.examples(
        ("knap write Garden.md draft.md", "shows the difference, and asks"),
        ("knap write Garden.md draft.md --hash sha256:…", "if the note still has this hash"),
        ("sort list.txt | knap write Lists/Sorted.md", "a new note from standard input"),
    ),
)
@click.argument("path")
@click.argument("file", default=inputs.STDIN, metavar="[FILE|-]")
@writing.hash_option
@writing.change_options
@options.pass_options
def command(global_options: GlobalOptions, path: str, file: str, **own: Unpack[WriteOptions]) -> ExitCode:
    """Replace a whole note, or create it.

    An existing note is replaced only if you give its hash, which `knap read --json` prints, or confirm the difference
    at a terminal. Its line endings are kept.
    """
    content = inputs.read_file(global_options, file)
    with writing.open_vault(global_options, own) as context:
        note = reading.read_if_exists(context, path)
        if note is None:
            if own["expected"]:
                raise NotFound(f"there is no note '{path}' that could have this hash", hint="leave --hash out")
            return writing.report_changes(global_options, files.create_file(context, path, content))
        if not (own["expected"] or own["dry_run"] or own["propose"]):
            if global_options.as_json or not output.can_ask():
                raise BadInput(
                    f"replacing '{note.path}' needs the hash of what is replaced",
                    hint="give --hash, as `knap read --json` shows it, or run this at a terminal",
                    code="hash_needed",
                )
            click.echo(output.colour_diff(files.diff_rewrite(note, content)), err=True)
            if not output.confirm(f"Replace {output.plain(note.path)}?"):
                output.note(global_options, "nothing is changed")
                return ExitCode.NOTHING
        # The note's hash binds the answer to what was shown.
        base = own["expected"] or note.hash
        return writing.report_changes(global_options, files.write_file(context, note.path, content, base))
