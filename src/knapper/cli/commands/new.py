"""Create a note."""

from typing import Unpack

import click

from knapper.cli import inputs, options, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import files


class NewOptions(writing.ChangeOptions):
    """The command's own options."""

    text: str
    prop: tuple[str, ...]


@click.command(
    "new",
    epilog=options.examples(
        ("knap new Inbox/Idea.md --text 'Paint the shed'", "with a line of text"),
        ("pbpaste | knap new Inbox/Clip.md --text -", "from the standard input"),
        ("knap new Plans/Week --prop status=open --prop 'tags=[\"plan\"]'", "with properties"),
    ),
)
@click.argument("path")
@click.option("-t", "--text", default="", metavar="TEXT|-", help="Text of the note; - reads standard input.")
@click.option("-p", "--prop", multiple=True, metavar="NAME=VALUE", help="Property of the note; repeatable.")
@writing.change_options
@options.pass_options
def command(global_options: GlobalOptions, path: str, **own: Unpack[NewOptions]) -> ExitCode:
    """Create a note.

    Existing files are never overwritten, and missing folders are created. A name without an extension gets `.md`.
    """
    text = inputs.read_text(global_options, own["text"])
    content = text if not text or text.endswith("\n") or own["text"] == inputs.STDIN else f"{text}\n"
    with writing.open_vault(global_options, own) as context:
        values: dict[str, JSONValue] = {}
        for assignment in own["prop"]:
            name, sign, value = assignment.partition("=")
            if not sign or not name.strip():
                raise BadInput(f"'{assignment}' is no property", hint="write it like status=open", code="usage")
            if name.strip() in values:
                hint = f'give it once; a list is written like {name.strip()}=\'["a", "b"]\''
                raise BadInput(f"the property '{name.strip()}' is given twice", hint=hint, code="usage")
            values[name.strip()] = files.parse_value(name.strip(), value)
        answer = files.create_file(context, path, content, values)
    return writing.report_changes(global_options, answer)
