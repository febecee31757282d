"""Show and change properties."""

from dataclasses import dataclass, replace
from typing import Final, Unpack

import click

from knapper.changes.writer import SubmitOptions
from knapper.cli import options, output, writing
from knapper.cli.arguments import TextCommand
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import property_lists
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import properties
from knapper.tools.context import Context
from knapper.tools.properties import PropertyOperation

_ARGUMENTS: Final[dict[PropertyOperation, tuple[str, ...]]] = {
    "set": ("NAME", "VALUE"),
    "remove": ("NAME",),
    "append": ("NAME", "VALUE"),
    "rename": ("NAME", "NEW"),
}
_SHOW: Final = "show"


class Said(writing.Said):
    """Hold the command's own options."""

    folder: tuple[str, ...]
    tag: tuple[str, ...]
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Hold what the arguments say."""

    paths: tuple[str, ...]
    word: PropertyOperation | None
    """None to show."""
    name: str = ""
    value: str | None = None


@click.command(
    "props",
    cls=TextCommand,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap props Garden.md", "show them"),
        ("knap props Garden.md set status done", "the type that the property has is kept"),
        ("knap props Garden.md append tags outdoors", "to a list, unless it has it"),
        ('knap props Garden.md set tags \'["a", "b"]\'', "JSON for lists"),
        ("knap props A.md B.md remove draft", "in several notes"),
        ("knap props --folder Projects set status open", "waits as a proposal"),
    ),
)
@click.argument("words", nargs=-1, metavar="[PATH]... [show | set NAME VALUE | remove NAME | append ... | rename ...]")
@click.option("--folder", multiple=True, metavar="FOLDER", help="All notes below this folder.")
@click.option("--tag", multiple=True, metavar="TAG", help="All notes with this tag, or one nested below it.")
@writing.expected_hash
@writing.options
@options.shared
@click.pass_obj
def command(said: Options, words: tuple[str, ...], **own: Unpack[Said]) -> ExitCode:
    """Show and change properties.

    Only the lines of the property change. A value is JSON where it begins with [, { or ", else it keeps the property's
    type, else it is text. Notes chosen by folder or tag, and more than 5, wait as a proposal.
    """
    wanted = _parse(words)
    chosen = _chosen(own)
    if not (wanted.paths or chosen):
        raise BadInput("no note is named", hint="name paths, or give --folder or --tag", code="usage")
    with writing.vault(said, own) as context:
        if wanted.word is None:
            _refuse_mistyped(context, wanted.paths if chosen else wanted.paths[1:])
        if chosen:
            found = properties.select_notes(context, folders=own["folder"], tags=own["tag"])
            wanted = replace(wanted, paths=(*wanted.paths, *found))
        if not wanted.paths:
            return output.answer(said, {"success": True, "results": []}, "")
        if wanted.word is None:
            return _show(said, context, wanted.paths)
        return writing.tell(said, _change(context, wanted, own, chosen=chosen))


def _refuse_mistyped(context: Context, words: tuple[str, ...]) -> None:
    """Refuse what is like one of the words that say what to do, and no file.

    Raises:
        BadInput: There is one.
    """
    for word in words:
        hint = options.did_you_mean(word, (_SHOW, *_ARGUMENTS), "")
        if hint and not (context.view.root / word).exists():
            raise BadInput(
                f"'{word}' is no note, and nothing that can be done with properties", hint=hint, code="usage"
            )


def _parse(words: tuple[str, ...]) -> _Wanted:
    """Tell paths from the word that says what to do, and its arguments."""
    at = next((n for n, word in enumerate(words) if word in {_SHOW, *_ARGUMENTS}), len(words))
    paths, rest = words[:at], words[at + 1 :]
    word: PropertyOperation | None = next((known for known in _ARGUMENTS if words[at : at + 1] == (known,)), None)
    needed = _ARGUMENTS[word] if word else ()
    if len(rest) != len(needed):
        hint = "quote what holds spaces; `knap props --help` shows how it is used"
        called = " ".join((word or _SHOW, *needed))
        raise BadInput(f"it is '{called}', and there are {len(rest)} arguments after it", hint=hint, code="usage")
    if word is None:
        return _Wanted(paths=paths, word=None)
    return _Wanted(paths=paths, word=word, name=rest[0], value=rest[1] if len(rest) > 1 else None)


def _show(said: Options, context: Context, paths: tuple[str, ...]) -> ExitCode:
    found = [properties.read_properties(context, path) for path in paths]
    if said.as_json:
        results: list[JSONValue] = [*found]
        output.write_json(found[0] if len(found) == 1 else {"success": True, "results": results})
    else:
        output.write(said, property_lists.text(found))
    return ExitCode.OK


def _change(context: Context, wanted: _Wanted, own: Said, *, chosen: str) -> dict[str, JSONValue]:
    said: properties.PropertyChange = {"operation": wanted.word or "set"}
    if wanted.value is not None:
        said["value"] = wanted.value
    if len(wanted.paths) == 1 and not chosen:
        return properties.update_frontmatter(
            context, wanted.paths[0], wanted.name, **said, expected_hash=own["expected"]
        )
    if own["expected"]:
        raise BadInput("--hash is of one note", hint="leave it out, or name one path", code="usage")
    if chosen:
        context = replace(context, asked=replace(context.asked or SubmitOptions(), chosen=chosen))
    return properties.batch_update_frontmatter(context, wanted.paths, wanted.name, **said)


def _chosen(own: Said) -> str:
    """Say how notes were chosen; empty where they are named."""
    parts = (("folder", " or ".join(own["folder"])), ("tag", " and ".join(own["tag"])))
    return ", and by ".join(f"{kind} {names}" for kind, names in parts if names)
