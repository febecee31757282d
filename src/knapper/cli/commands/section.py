"""Change the section under a heading."""

from typing import Final, Literal, Unpack

import click

from knapper.changes.drafts import EditSection
from knapper.cli import inputs, options, writing
from knapper.cli.inputs import TextCommand
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.tools import files
from knapper.tools.files import SectionOperation

_MODE_HELP: Final[dict[SectionOperation, str]] = {
    "append": "Add TEXT at the end of the section.",
    "prepend": "Add TEXT right below the heading.",
    "replace": "Replace the section, including its heading.",
    "replace_body": "Replace the text below the heading.",
}
_RENAME_HELP: Final = "Rename the heading, or a block ^ID, to TEXT and update links to it."


class SectionOptions(writing.ChangeOptions):
    """The command's own options."""

    append: bool
    prepend: bool
    replace: bool
    replace_body: bool
    rename: bool
    expected: str


@click.command(
    "section",
    cls=TextCommand,
    epilog=options.examples(
        ("knap section Garden.md '## Tasks' '- [ ] weed'", "at the section's end"),
        ("knap section Garden.md '# 2026 > ## May' --prepend -", "if a heading occurs twice"),
        ("date | knap section Log.md Latest - --body", "new text below the heading"),
        ("knap section Garden.md '## Tasks' 'To do' --rename", "updates links to the heading"),
    ),
)
@click.argument("path")
@click.argument("heading")
@click.argument("text", metavar="TEXT|-")
@click.option("--append", is_flag=True, help=f"{_MODE_HELP['append']} The default.")
@click.option("--prepend", is_flag=True, help=_MODE_HELP["prepend"])
@click.option("--replace", is_flag=True, help=_MODE_HELP["replace"])
@click.option("--body", "replace_body", is_flag=True, help=_MODE_HELP["replace_body"])
@click.option("--rename", is_flag=True, help=_RENAME_HELP)
@writing.hash_option
@writing.change_options
@options.pass_options
def command(
    global_options: GlobalOptions, path: str, heading: str, text: str, **own: Unpack[SectionOptions]
) -> ExitCode:
    """Change the section under a heading.

    HEADING may include its # signs, which must then match. TEXT - reads standard input.
    """
    flags: dict[SectionOperation | Literal["rename"], bool] = {
        "append": own["append"],
        "prepend": own["prepend"],
        "replace": own["replace"],
        "replace_body": own["replace_body"],
        "rename": own["rename"],
    }
    modes: list[SectionOperation | Literal["rename"]] = [how for how in flags if flags[how]]
    if len(modes) > 1:
        names = " and ".join("--body" if how == "replace_body" else f"--{how}" for how in modes)
        raise BadInput(f"{names} contradict each other", hint="give one of them", code="usage")
    how = modes[0] if modes else "append"
    content = inputs.read_text(global_options, text, required=True)
    usage = "knap section PATH HEADING TEXT"
    with writing.open_vault(global_options, own) as context, writing.note_first(context, path, (heading, text), usage):
        if how == "rename":
            writing.complete_index(global_options, context)
            answer = files.rename_anchor(context, path, heading, content.strip(), own["expected"])
        else:
            request = EditSection(path=path, heading=heading, content=content, how=how, base=own["expected"])
            answer = files.edit_section(context, request)
    return writing.report_changes(global_options, answer)
