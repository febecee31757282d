"""Read and change the properties of notes; every other line of them stays as it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, TypedDict, Unpack, get_args

from knapper.changes.drafts import EditProperty
from knapper.changes.text import splices, yaml_values
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import answers, notes
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.write import WriteResult
from knapper.vault import paths
from knapper.vault.paths import NotePath

PropertyOperation = Literal["set", "remove", "append", "rename"]
PROPERTY_OPERATIONS: Final[tuple[PropertyOperation, ...]] = get_args(PropertyOperation)


class PropertyChange(TypedDict, total=False):
    """A change of a property."""

    value: JSONValue
    operation: PropertyOperation


class NotePropertyChange(PropertyChange, total=False):
    """A change of a property of one note."""

    expected_hash: str


def update_frontmatter(
    context: Context, path: str, field: str, **change: Unpack[NotePropertyChange]
) -> Annotated[Answer, WriteResult]:
    """Set, remove, append to or rename one property of a note.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        field: The property's name.
        value: The new value: numbers, booleans, lists, objects and null as such; text takes the type that the property
            has, else stays text. For ``rename``, the new name.
        operation: ``set`` if it isn't given. ``append`` creates the list where there is none, and skips values that it
            holds already.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        NotFound: There is no such note, or no such property to remove or rename.
        BadInput: The note's YAML is invalid, or the value can't be used.
        ConflictError: The note was changed at this place since it was read.
        RefusedError: The path is outside the vault, or the client may not write there.
    """
    return answers.submit_one(
        context, replace(_edit_request(path, field, change), base=change.get("expected_hash", ""))
    )


def batch_update_frontmatter(
    context: Context, paths: Sequence[str], field: str, **change: Unpack[PropertyChange]
) -> Annotated[Answer, WriteResult]:
    """Change one property of several notes; failures are listed, and the other notes form one change.

    More than 5 notes are always a proposal.

    Args:
        context: The vault, as the client sees it.
        paths: Paths of existing notes; the same one twice counts once.
        field: The property's name.
        value: The new value: numbers, booleans, lists, objects and null as such; text takes the type that the property
            has, else stays text. For ``rename``, the new name.
        operation: ``set`` if it isn't given. ``append`` creates the list where there is none, and skips values that it
            holds already.

    Returns:
        ``files`` that change, ``failures`` with path, error, code and hint.

    Raises:
        KnapError: It fails for every one of them.
    """
    return answers.submit_several(context, [_edit_request(path, field, change) for path in dict.fromkeys(paths)])


def read_properties(context: Context, path: str) -> dict[str, JSONValue]:
    """Return a note's properties.

    Raises:
        NotFound: There is no such note.
        BadInput: Its YAML is invalid.
    """
    note = context.view.read(context.view.locate(path))
    _ = answers.mark_if_foreign(context, note)
    block = note.outline.frontmatter
    if block is not None and not block.valid:
        problem = next((candidate for candidate in note.outline.problems if candidate.code == "invalid_yaml"), None)
        detail = f": {problem.message}" if problem else ""
        raise BadInput(
            f"the properties of {note.path} can't be read{detail}", hint="mend its frontmatter", code="invalid_yaml"
        )
    return {"success": True, "path": note.path, "hash": note.hash, "properties": dict(block.values) if block else {}}


def select_notes(context: Context, *, folders: Sequence[str] = (), tags: Sequence[str] = ()) -> list[NotePath]:
    """Return the notes below any of the folders that have all of the tags, by path; for `batch_update_frontmatter`.

    Notes that a query selects aren't named one by one, so the caller submits the change as a proposal.
    """
    folder_keys = ["" if folder == "." else paths.name_key(folder).removeprefix("./").strip("/") for folder in folders]
    selected = {
        file.path
        for file in context.view.list_files()
        if file.kind == "note" and (not folder_keys or any(_is_below(file.path, folder) for folder in folder_keys))
    }
    for tag in tags:
        selected &= set(notes.notes_with_tag(context, tag))
    return sorted(selected)


def parse_value(name: str, text: str) -> JSONValue:
    """Parse a typed text as the value for a property of a new note.

    Raises:
        BadInput: It begins like JSON, but isn't valid JSON.
    """
    return yaml_values.interpret_value(splices.take_snapshot(b""), name, text)


def _is_below(path: NotePath, folder: str) -> bool:
    return not folder or paths.name_key(path).startswith(f"{folder}/")


def _edit_request(path: str, field: str, change: PropertyChange) -> EditProperty:
    operation = change.get("operation", "set")
    if operation not in PROPERTY_OPERATIONS:
        raise BadInput(f"there is no operation '{operation}'", hint=f"operations: {', '.join(PROPERTY_OPERATIONS)}")
    if "value" not in change and operation != "remove":
        raise BadInput(f"the operation '{operation}' needs a value", hint="give one; an empty text will do")
    return EditProperty(path=path, word=operation, name=field, value=change.get("value", ""))
