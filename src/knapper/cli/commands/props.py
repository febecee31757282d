"""Show and change the properties of notes."""

import shlex
from dataclasses import dataclass, replace
from typing import Final, Unpack

import click

from knapper.changes.writer import SubmitOptions
from knapper.cli import options, output, writing
from knapper.cli.inputs import TextCommand
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import notes
from knapper.errors import BadInput
from knapper.tools import files
from knapper.tools.context import Context
from knapper.tools.files import PropertyOperation
from knapper.tools.shapes.write import WriteResult

_OPERATION_ARGUMENTS: Final[dict[PropertyOperation, tuple[str, ...]]] = {
    "set": ("NAME", "VALUE"),
    "remove": ("NAME",),
    "append": ("NAME", "VALUE"),
    "rename": ("NAME", "NEW"),
}
_SHOW: Final = "show"


class PropsOptions(writing.ChangeOptions):
    """The command's own options."""

    folder: tuple[str, ...]
    tag: tuple[str, ...]
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _PropsArguments:
    """The parsed arguments."""

    paths: tuple[str, ...]
    operation: PropertyOperation | None
    """None to show."""
    name: str = ""
    value: str | None = None


@click.command(
    "props",
    cls=TextCommand,
    epilog=options.examples(
        ("knap props Garden.md", "show them"),
        ("knap props Garden.md set status done", "keeps the property's type"),
        ("knap props Garden.md append tags outdoors", "adds to a list, unless it is there already"),
        ('knap props Garden.md set tags \'["a", "b"]\'', "JSON for lists"),
        ("knap props A.md B.md remove draft", "in several notes"),
        ("knap props --folder Projects set status open", "becomes a proposal"),
    ),
)
@click.argument("words", nargs=-1, metavar="[PATH]... [show | set NAME VALUE | remove NAME | append ... | rename ...]")
@click.option("--folder", multiple=True, metavar="FOLDER", help="All notes below this folder; repeatable.")
@click.option("--tag", multiple=True, metavar="TAG", help="All notes with this tag or one nested below it; repeatable.")
@writing.hash_option
@writing.change_options
@options.pass_options
def command(global_options: GlobalOptions, words: tuple[str, ...], **own: Unpack[PropsOptions]) -> ExitCode:
    """Show and change the properties of notes.

    Only the lines of the property change. A value that begins with [, { or " is read as JSON; any other value keeps the
    property's type, or becomes text. A note says where the type changes. Changing notes by folder or tag, or more than
    5 notes, becomes a proposal.
    """
    arguments = _parse_arguments(words)
    # Describe how notes were selected; empty if they are named.
    parts = (("folder", " or ".join(own["folder"])), ("tag", " and ".join(own["tag"])))
    selection = ", and by ".join(f"{kind} {names}" for kind, names in parts if names)
    if not (arguments.paths or selection):
        raise BadInput("no note is named", hint="name paths, or give --folder or --tag", code="usage")
    with writing.open_vault(global_options, own) as context:
        if arguments.operation is None:
            for word in arguments.paths if selection else arguments.paths[1:]:
                hint = options.did_you_mean(word, (_SHOW, *_OPERATION_ARGUMENTS), "")
                if hint and not (context.view.root / word).exists():
                    raise BadInput(
                        f"'{word}' is no note, and nothing that can be done with properties", hint=hint, code="usage"
                    )
        if selection:
            matches = files.select_notes(context, folders=own["folder"], tags=own["tag"])
            arguments = replace(arguments, paths=(*arguments.paths, *matches))
        if not arguments.paths:
            return output.print_answer(global_options, {"success": True, "results": []}, "")
        if arguments.operation is None:
            answers = [files.read_properties(context, path) for path in arguments.paths]
            if global_options.as_json:
                output.write_json(answers[0] if len(answers) == 1 else {"success": True, "results": answers})
            else:
                output.write(global_options, notes.render_properties(answers))
            return ExitCode.OK
        return writing.report_changes(global_options, _change_properties(context, arguments, own, selection=selection))


def _parse_arguments(words: tuple[str, ...]) -> _PropsArguments:
    """Split the arguments into paths, the action and its arguments."""
    at = next((n for n, word in enumerate(words) if word in {_SHOW, *_OPERATION_ARGUMENTS}), len(words))
    paths, rest = words[:at], words[at + 1 :]
    word: PropertyOperation | None = next(
        (known for known in _OPERATION_ARGUMENTS if words[at : at + 1] == (known,)), None
    )
    needed = _OPERATION_ARGUMENTS[word] if word else ()
    if len(rest) != len(needed):
        hint = "quote what holds spaces; `knap props --help` shows the usage"
        if word and not paths and len(rest) == len(needed) + 1:
            hint = f"the note comes first: `knap props {shlex.join((rest[0], word, *rest[1:]))}`"
        usage = " ".join((word or _SHOW, *needed))
        raise BadInput(f"it is '{usage}', and there are {len(rest)} arguments after it", hint=hint, code="usage")
    if word is None:
        return _PropsArguments(paths=paths, operation=None)
    return _PropsArguments(paths=paths, operation=word, name=rest[0], value=rest[1] if len(rest) > 1 else None)


def _change_properties(
    context: Context, arguments: _PropsArguments, own: PropsOptions, *, selection: str
) -> WriteResult:
    change: files.PropertyChange = {"operation": arguments.operation or "set"}
    if arguments.value is not None:
        change["value"] = arguments.value
    if len(arguments.paths) == 1 and not selection:
        return files.update_frontmatter(
            context, arguments.paths[0], arguments.name, **change, expected_hash=own["expected"]
        )
    if own["expected"]:
        raise BadInput("--hash is of one note", hint="leave it out, or name one path", code="usage")
    if selection:
        context = replace(
            context, submit_options=replace(context.submit_options or SubmitOptions(), chosen_by=selection)
        )
    return files.batch_update_frontmatter(context, arguments.paths, arguments.name, **change)
