"""Change what a heading owns."""

from typing import Final, Literal, Unpack

import click

from knapper.changes.requests import EditSection
from knapper.cli import options, texts, writing
from knapper.cli.arguments import TextCommand
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.errors import BadInput
from knapper.tools import files
from knapper.tools.files import SectionOperation

_HELP: Final[dict[SectionOperation, str]] = {
    "append": "Put TEXT at the section's end.",
    "prepend": "Put TEXT right below the heading.",
    "replace": "Replace the section, heading included.",
    "replace_body": "Replace what stands below the heading.",
}
_RENAME: Final = "Give the heading, or the block ^ID in its place, the name TEXT; links to it follow."


class Said(writing.Said):
    """Hold the command's own options."""

    append: bool
    prepend: bool
    replace: bool
    replace_body: bool
    rename: bool
    expected: str


@click.command(
    "section",
    cls=TextCommand,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap section Garden.md '## Tasks' '- [ ] weed'", "at the section's end"),
        ("knap section Garden.md '# 2026 > ## May' --prepend -", "where a heading stands twice"),
        ("date | knap section Log.md Latest - --body", "new text below the heading"),
        ("knap section Garden.md '## Tasks' 'To do' --rename", "links to the heading follow"),
    ),
)
@click.argument("path")
@click.argument("heading")
@click.argument("text", metavar="TEXT|-")
@click.option("--append", is_flag=True, help=f"{_HELP['append']} The default.")
@click.option("--prepend", is_flag=True, help=_HELP["prepend"])
@click.option("--replace", is_flag=True, help=_HELP["replace"])
@click.option("--body", "replace_body", is_flag=True, help=_HELP["replace_body"])
@click.option("--rename", is_flag=True, help=_RENAME)
@writing.expected_hash
@writing.options
@options.shared
@click.pass_obj
def command(said: Options, path: str, heading: str, text: str, **own: Unpack[Said]) -> ExitCode:
    """Change what a heading owns.

    HEADING may be written with its # signs, which then have to be right, or without. TEXT is - for the standard input.
    """
    how = _how(own)
    content = texts.given(said, text, needed=True)
    with writing.vault(said, own) as context:
        if how == "rename":
            writing.catch_up(said, context)
            answer = files.rename_anchor(context, path, heading, content.strip(), own["expected"])
        else:
            request = EditSection(path=path, heading=heading, content=content, how=how, base=own["expected"])
            answer = files.edit_section(context, request)
    return writing.tell(said, answer)


def _how(own: Said) -> SectionOperation | Literal["rename"]:
    """Tell which of the ways was asked for.

    Raises:
        BadInput: Several were.
    """
    given: dict[SectionOperation | Literal["rename"], bool] = {
        "append": own["append"],
        "prepend": own["prepend"],
        "replace": own["replace"],
        "replace_body": own["replace_body"],
        "rename": own["rename"],
    }
    asked: list[SectionOperation | Literal["rename"]] = [how for how in given if given[how]]
    if len(asked) > 1:
        names = " and ".join("--body" if how == "replace_body" else f"--{how}" for how in asked)
        raise BadInput(f"{names} contradict each other", hint="give one of them", code="usage")
    return asked[0] if asked else "append"
