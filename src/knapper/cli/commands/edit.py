"""Change text in a note."""

from typing import Unpack

import click

from knapper.cli import inputs, options, writing
from knapper.cli.inputs import TextCommand
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.tools import files

_OLD_AND_NEW = 2


class EditOptions(writing.ChangeOptions):
    """The command's own options."""

    at: str
    count: int
    expected: str


@click.command(
    "edit",
    cls=TextCommand,
    epilog=options.examples(
        ("knap edit Garden.md 'every evening' 'twice a day'", "old text, new text"),
        ("knap edit Garden.md tomato potato --count 3", "if it occurs exactly three times"),
        ("knap edit Garden.md --at end 'Buy seeds.'", "or: start, 'after:## Heading', insert:7"),
        ("knap edit Garden.md --at replace:3-5 -", "replace lines 3 to 5 with standard input"),
        ("knap edit Garden.md --at delete:9", "line 9, as `knap read --numbers` counts"),
    ),
)
@click.argument("path")
@click.argument("text", nargs=-1, metavar="OLD NEW | TEXT")
@click.option("--at", default="", metavar="POSITION", help="Put TEXT at this position; - reads standard input.")
@click.option(
    "--count", type=click.IntRange(1), default=1, show_default=True, help="Number of times that OLD must occur."
)
@writing.hash_option
@writing.change_options
@options.pass_options
def command(global_options: GlobalOptions, path: str, text: tuple[str, ...], **own: Unpack[EditOptions]) -> ExitCode:
    """Change text in a note.

    OLD must occur exactly once, or exactly --count times. Positions for --at are start, end, after:HEADING, insert:N,
    replace:N-M and delete:N-M.
    """
    content = ""
    if own["at"]:
        if len(text) > 1:
            raise BadInput("with --at there is one text", hint="quote it if it holds spaces", code="usage")
        action, _, place = own["at"].partition(":")
        if action == "delete" and any(text):
            hint = f"'--at replace:{place}' puts it in the place of what is there; leave it out to delete only"
            raise BadInput(f"'{own['at']}' takes no text", hint=hint, code="usage")
        content = inputs.read_text(global_options, text[0], required=True) if text else ""
    elif len(text) != _OLD_AND_NEW:
        hint = "quote each if it holds spaces; '' as the new text deletes the old one"
        raise BadInput("an old and a new text are needed", hint=hint, code="usage")
    usage = "knap edit PATH --at POSITION TEXT" if own["at"] else "knap edit PATH OLD NEW"
    with writing.open_vault(global_options, own) as context, writing.note_first(context, path, text, usage):
        if len(text) == _OLD_AND_NEW:  # with --at there is one at most
            answer = files.edit_file(context, path, text[0], text[1], own["count"], own["expected"])
        else:
            answer = files.edit_at(context, path, own["at"], content, own["expected"])
    return writing.report_changes(global_options, answer)
