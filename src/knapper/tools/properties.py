"""Change the properties of notes, and leave every other line of them alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, TypedDict, Unpack, get_args

from knapper.changes.requests import EditProperty
from knapper.changes.text import splices, yaml_values
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import answers, foreign
from knapper.tools import tags as tagging
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.written import Written
from knapper.vault import paths
from knapper.vault.paths import NotePath

Operation = Literal["set", "remove", "append", "rename"]
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)


class Change(TypedDict, total=False):
    """Say what becomes of a property."""

    value: JSONValue
    operation: Operation


class ChangeOfOne(Change, total=False):
    """Say what becomes of a property of one note."""

    expected_hash: str


def update_frontmatter(
    context: Context, path: str, field: str, **change: Unpack[ChangeOfOne]
) -> Annotated[Answer, Written]:
    """Set, remove, append to or rename one property of a note.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        field: The property's name.
        value: What the property gets: numbers, booleans, lists, objects and null as that; text takes the type that the
            property has, else stays text. The new name for ``rename``.
        operation: ``set`` if it isn't given. ``append`` makes the list where there is none, and leaves out what it
            holds already.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        NotFound: There is no such note, or no such property to remove or rename.
        BadInput: The note's YAML is invalid, or the value can't be used.
        ConflictError: The note isn't what was read any more, and the place changed.
        RefusedError: The path is out of the vault, or the client may not write there.
    """
    return answers.one(context, replace(_request(path, field, change), base=change.get("expected_hash", "")))


def batch_update_frontmatter(
    context: Context, paths: Sequence[str], field: str, **change: Unpack[Change]
) -> Annotated[Answer, Written]:
    """Change one property of several notes; those where that fails are listed, and the others go on together.

    More than 5 notes are always a proposal.

    Args:
        context: The vault, as the client sees it.
        paths: Paths of existing notes; the same one twice counts once.
        field: The property's name.
        value: What the property gets: numbers, booleans, lists, objects and null as that; text takes the type that the
            property has, else stays text. The new name for ``rename``.
        operation: ``set`` if it isn't given. ``append`` makes the list where there is none, and leaves out what it
            holds already.

    Returns:
        ``files`` that change, ``failures`` with path, error, code and hint.

    Raises:
        KnapError: It fails for every one of them.
    """
    return answers.several(context, [_request(path, field, change) for path in dict.fromkeys(paths)])


def read_properties(context: Context, path: str) -> dict[str, JSONValue]:
    """Tell a note's properties.

    Raises:
        NotFound: There is no such note.
        BadInput: Its YAML is invalid.
    """
    note = context.view.read(path)
    _ = foreign.heard(context, note)
    block = note.outline.frontmatter
    if block is not None and not block.valid:
        problem = next((one for one in note.outline.problems if one.code == "invalid_yaml"), None)
        said = f": {problem.message}" if problem else ""
        raise BadInput(
            f"the properties of {note.path} can't be read{said}", hint="mend its frontmatter", code="invalid_yaml"
        )
    return {"success": True, "path": note.path, "hash": note.hash, "properties": dict(block.values) if block else {}}


def choose(context: Context, *, folders: Sequence[str] = (), tags: Sequence[str] = ()) -> list[NotePath]:
    """Give the notes below any of the folders that have all of the tags, by path; for `batch_update_frontmatter`.

    What is chosen so is a target by query: the caller lets it wait as a proposal.
    """
    below = ["" if folder == "." else paths.name_key(folder).removeprefix("./").strip("/") for folder in folders]
    found = {
        file.path
        for file in context.view.files()
        if file.kind == "note" and (not below or any(_is_below(file.path, folder) for folder in below))
    }
    for tag in tags:
        found &= set(tagging.notes_with(context, tag))
    return sorted(found)


def value_of(name: str, text: str) -> JSONValue:
    """Read the value that a typed text means for a property of a new note.

    Raises:
        BadInput: It begins like JSON and isn't.
    """
    return yaml_values.interpret_value(splices.take_snapshot(b""), name, text)


def _is_below(path: NotePath, folder: str) -> bool:
    return not folder or paths.name_key(path).startswith(f"{folder}/")


def _request(path: str, field: str, change: Change) -> EditProperty:
    word = change.get("operation", "set")
    if word not in OPERATIONS:
        raise BadInput(f"there is no operation '{word}'", hint=f"operations: {', '.join(OPERATIONS)}")
    if "value" not in change and word != "remove":
        raise BadInput(f"the operation '{word}' needs a value", hint="give one; an empty text will do")
    return EditProperty(path=path, word=word, name=field, value=change.get("value", ""))
