"""Make a note."""

from typing import Unpack

import click

from knapper.cli import options, texts, writing
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import files, properties


class Said(writing.Said):
    """Hold the command's own options."""

    text: str
    prop: tuple[str, ...]


@click.command(
    "new",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap new Inbox/Idea.md --text 'Paint the shed'", "with a line of text"),
        ("pbpaste | knap new Inbox/Clip.md --text -", "from the standard input"),
        ("knap new Plans/Week --prop status=open --prop 'tags=[\"plan\"]'", "with properties"),
    ),
)
@click.argument("path")
@click.option("-t", "--text", default="", metavar="TEXT|-", help="The text; - for the standard input.")
@click.option("-p", "--prop", multiple=True, metavar="NAME=VALUE", help="A property; may stand several times.")
@writing.options
@options.shared
@click.pass_obj
def command(said: Options, path: str, **own: Unpack[Said]) -> ExitCode:
    """Make a note.

    Nothing is ever overwritten, and missing folders are made. A name without ending gets `.md`.
    """
    text = texts.given(said, own["text"])
    content = text if not text or text.endswith("\n") or own["text"] == texts.STDIN else f"{text}\n"
    with writing.vault(said, own) as context:
        answer = files.create_file(context, path, content, _properties(own["prop"]))
    return writing.tell(said, answer)


def _properties(given: tuple[str, ...]) -> dict[str, JSONValue]:
    found: dict[str, JSONValue] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise BadInput(f"'{one}' is no property", hint="write it like status=open", code="usage")
        found[name.strip()] = properties.parse_value(name.strip(), value)
    return found
