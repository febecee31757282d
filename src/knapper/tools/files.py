"""Create, edit, move, delete and restore files, and edit the sections and properties of notes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypedDict, Unpack, get_args

from knapper.changes import text_edits
from knapper.changes.drafts import (
    AddText,
    AtPosition,
    Create,
    EditProperty,
    EditSection,
    EditText,
    Move,
    RenameBlock,
    RenameHeading,
    Request,
    Restore,
    Rewrite,
    Trash,
)
from knapper.changes.text import diff, splices, yaml_values
from knapper.errors import BadInput, KnapError
from knapper.jsontypes import JSONValue, is_object
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.tools.shapes.read import NoteProperties
from knapper.tools.shapes.write import WriteResult
from knapper.vault import files, paths
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_PROPERTIES_HINT = 'give an object, such as {"tags": ["meeting"]}'


def create_file(
    context: Context, path: str, content: str = "", frontmatter: str | Mapping[str, JSONValue] = ""
) -> WriteResult:
    """Create a new note; nothing is ever overwritten, and missing folders are created.

    Args:
        context: The vault, as the client sees it.
        path: Path of the new note; without an extension it gets ``.md``.
        content: The note's text, without frontmatter.
        frontmatter: The note's properties: an object, or an object as JSON text.

    Raises:
        BadInput: The properties aren't an object, or the path can't be a file's.
        ConflictError: There is a file already.
        RefusedError: The path is hidden, ignored or outside the vault.
    """
    properties: Mapping[str, JSONValue] | None = None
    if not isinstance(frontmatter, str):
        properties = frontmatter or None
    elif frontmatter.strip():
        try:
            value: object = json.loads(frontmatter)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"frontmatter isn't JSON: {error}", hint=_PROPERTIES_HINT, code="invalid_json") from None
        if not is_object(value):
            raise BadInput("frontmatter isn't an object", hint=_PROPERTIES_HINT, code="invalid_json")
        properties = value
    return answers.submit_one(context, Create(path=path, content=content, properties=properties))


def write_file(context: Context, path: str, content: str, expected_hash: str) -> WriteResult:
    """Replace the whole text of a note; its line endings and byte-order mark stay.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        content: The new text.
        expected_hash: The note's ``hash`` from read_file.

    Raises:
        ConflictError: The note has changed since it was read.
    """
    if not expected_hash:
        hint = "read the note, and give its hash"
        raise BadInput(f"replacing '{path}' needs the hash of what is replaced", hint=hint, code="hash_needed")
    return answers.submit_one(context, Rewrite(path=path, content=content, base=expected_hash))


def append_to_file(context: Context, path: str, content: str, expected_hash: str = "") -> WriteResult:
    """Append text to the end of a note, on lines of its own.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        content: The text to append.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        NotFound: There is no such note.
        ConflictError: The note was changed at this place since it was read.
        RefusedError: The path is outside the vault, or the client may not write there.
    """
    return answers.submit_one(context, AddText(path=path, content=content, where="end", base=expected_hash))


def prepend_to_file(context: Context, path: str, content: str, expected_hash: str = "") -> WriteResult:
    """Insert text at the beginning of a note, after its properties and before a blank line.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        content: The text to insert before the note's own.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        KnapError: As for `append_to_file`.
    """
    return answers.submit_one(context, AddText(path=path, content=content, where="start", base=expected_hash))


def edit_file(
    context: Context, path: str, old_text: str, new_text: str, count: int = 1, expected_hash: str = ""
) -> WriteResult:
    """Replace text in a note.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        old_text: The text in the note; a match that differs only in quotes, dashes or space counts, and is reported.
        new_text: The replacement; empty to delete the text.
        count: How many times the old text occurs; all occurrences are replaced.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        NotFound: The text isn't there; the hint shows the most similar one.
        Ambiguous: It occurs another number of times; the details list the lines.
        ConflictError: The note was changed at this place since it was read.
    """
    return answers.submit_one(context, EditText(path=path, old=old_text, new=new_text, count=count, base=expected_hash))


def edit_at(context: Context, path: str, position: str, content: str = "", expected_hash: str = "") -> WriteResult:
    """Insert, replace or delete whole lines of a note at a position.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note; with the position ``create``, of a new one.
        position: ``start``, ``end``, ``after:## Heading``, ``insert:N``, ``replace:N-M``, ``delete:N-M`` or ``create``.
        content: The lines to put there; empty for ``delete``.
        expected_hash: The note's hash when its lines were counted; empty to skip the check.

    Raises:
        BadInput: There is no such position or line.
        KnapError: As for `edit_file`.
    """
    return answers.submit_one(context, AtPosition(path=path, position=position, content=content, base=expected_hash))


def delete_file(context: Context, path: str, expected_hash: str = "") -> WriteResult:
    """Move a file to the trash that the vault's settings name; nothing is deleted permanently.

    Args:
        context: The vault, as the client sees it.
        path: Path of a note or any other file.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        NotFound: There is no such file.
        ConflictError: It has changed since it was read.
    """
    return answers.submit_one(context, Trash(path=path, base=expected_hash))


def restore_files(context: Context, names: Sequence[str]) -> WriteResult:
    """Restore files from the vault's own trash to where they were; nothing is overwritten.

    Args:
        context: The vault, as the client sees it.
        names: Paths that the files had, or have below ``.trash``.

    Raises:
        NotFound: The trash has none of them.
        ConflictError: Other files are in their places.
    """
    requests = [Restore(path=name) for name in dict.fromkeys(names)]
    return answers.submit_one(context, requests[0]) if len(requests) == 1 else answers.submit_several(context, requests)


def diff_rewrite(note: Note, content: str) -> str:
    """Return what `write_file` would change in a note, in the form of ``diff -u``.

    Raises:
        BadInput: The text can't be written, or is the note's own.
    """
    request = Rewrite(path=note.path, content=content, base=note.hash)
    edit = text_edits.resolve_request(note, request, version=lambda _: None)
    return diff.unified_diff(note.raw, text_edits.apply_all(note, [edit]), note.path)


SectionOperation = Literal["replace", "replace_body", "append", "prepend"]


def replace_section(context: Context, path: str, heading: str, content: str, expected_hash: str = "") -> WriteResult:
    """Replace a heading and everything below it, up to the next heading of its level or above.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        heading: With its ``#`` signs, such as ``## Tasks``; ``# Plan > ## Tasks`` where it occurs several times.
        content: The new text, with a heading or without.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        NotFound: There is no such note or heading; the hint has the nearest ones.
        Ambiguous: The heading occurs several times; the details list the lines.
        BadInput: The heading has no ``#`` signs, or nothing would change.
        ConflictError: The note was changed at this place since it was read.
        RefusedError: The path is outside the vault, or the client may not write there.
    """
    request = EditSection(path=path, heading=heading, content=content, how="replace", strict=True, base=expected_hash)
    return answers.submit_one(context, request)


def append_to_section(context: Context, path: str, heading: str, content: str, expected_hash: str = "") -> WriteResult:
    """Append text at the end of a section, after a blank line; the heading and its text stay.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        heading: With its ``#`` signs, such as ``## Tasks``; ``# Plan > ## Tasks`` where it occurs several times.
        content: The text to append.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        KnapError: As for `replace_section`.
    """
    request = EditSection(path=path, heading=heading, content=content, how="append", strict=True, base=expected_hash)
    return answers.submit_one(context, request)


def rename_anchor(context: Context, path: str, anchor: str, name: str, expected_hash: str = "") -> WriteResult:
    """Rename a heading or a block id; links to it are updated.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        anchor: A heading with its ``#`` signs, such as ``## Tasks``, or a block's ``^id``.
        name: The new heading's text without ``#`` signs, or the new id.
        expected_hash: The note's hash when it was read; empty to skip the check.

    Raises:
        KnapError: As for `replace_section`.
    """
    if anchor.startswith("^"):
        return answers.submit_one(
            context, RenameBlock(path=path, old=anchor[1:], new=name.removeprefix("^"), base=expected_hash)
        )
    return answers.submit_one(context, RenameHeading(path=path, heading=anchor, title=name, base=expected_hash))


def edit_section(context: Context, request: EditSection) -> WriteResult:
    """Edit a section in any of the supported ways; its heading may be written without ``#`` signs.

    Raises:
        KnapError: As for `replace_section`.
    """
    return answers.submit_one(context, request)


_MOVE_HINT: Final = 'give {"source": "old/path.md", "destination": "new/path.md"}'


def move_file(context: Context, source: str, destination: str) -> WriteResult:
    """Move a note, another file or a folder; every link to it is rewritten, and nothing is overwritten.

    Args:
        context: The vault, as the client sees it.
        source: Path of the file or folder as it is now.
        destination: The new path; ``Folder/`` keeps the name, and missing folders are created.

    Returns:
        ``links_rewritten`` with path, line, old and new of each link.

    Raises:
        NotFound: There is no such file or folder.
        ConflictError: Something is at the destination already.
        BadInput: A folder would move into itself, or a name can't be used.
        RefusedError: One of the paths is outside the vault, hidden or ignored.
    """
    return answers.submit_one(context, Move(source=source, destination=destination))


def batch_move_files(context: Context, moves: Sequence[Mapping[str, str]]) -> WriteResult:
    """Move several files or folders; those that can't be moved are listed, and the others form one change.

    More than 5 are always a proposal.

    Args:
        context: The vault, as the client sees it.
        moves: Objects with ``source``, the path now, and ``destination``, the new one; ``Folder/`` keeps the name.

    Raises:
        BadInput: An item isn't such an object.
        KnapError: None of them can be moved.
    """
    requests: list[Request] = []
    for number, move in enumerate(moves):
        source, destination = move.get("source"), move.get("destination")
        if not (isinstance(source, str) and isinstance(destination, str) and set(move) == {"source", "destination"}):
            raise BadInput(f"item {number} of moves can't be used", hint=_MOVE_HINT)
        requests.append(Move(source=source, destination=destination))
    return answers.submit_several(context, requests)


def delete_files(context: Context, names: Sequence[str]) -> WriteResult:
    """Move several files to the trash; failures are listed, and the others form one change.

    Raises:
        KnapError: It fails for every one of them.
    """
    return answers.submit_several(context, [Trash(path=path) for path in dict.fromkeys(names)])


def is_folder_target(context: Context, destination: str) -> bool:
    """Return whether a destination names a folder: it ends with a slash, or is one."""
    if destination.endswith("/"):
        return True
    try:
        resolved = files.find_path(context.view.root, context.view.parse(destination))
    except KnapError:
        return destination.strip() in {".", ""}
    return resolved.file.is_dir() and not context.view.ignore.hides(resolved.path, is_folder=True)


def is_same_path(context: Context, source: str, destination: str) -> bool:
    """Return whether a destination is the source itself, in the same or another spelling of case and Unicode form."""
    if destination.endswith("/"):
        return False
    try:
        source_path, destination_path = (context.view.parse(raw) for raw in (source, destination))
    except KnapError:
        return False
    return paths.name_key(source_path) == paths.name_key(destination_path)


PropertyOperation = Literal["set", "remove", "append", "rename"]
PROPERTY_OPERATIONS: Final[tuple[PropertyOperation, ...]] = get_args(PropertyOperation)


class PropertyChange(TypedDict, total=False):
    """A change of a property."""

    value: JSONValue
    operation: PropertyOperation


class NotePropertyChange(PropertyChange, total=False):
    """A change of a property of one note."""

    expected_hash: str


def update_frontmatter(context: Context, path: str, field: str, **change: Unpack[NotePropertyChange]) -> WriteResult:
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
) -> WriteResult:
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


def read_properties(context: Context, path: str) -> NoteProperties:
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
    keys = ["" if folder == "." else paths.name_key(folder).removeprefix("./").strip("/") for folder in folders]
    beginnings = tuple(f"{key}/" if key else "" for key in keys)
    selected = {
        file.path
        for file in context.view.list_files()
        if file.kind == "note" and (not folders or paths.name_key(file.path).startswith(beginnings))
    }
    for tag in tags:
        from knapper.tools import notes  # noqa: PLC0415 - all that searches, which a command that writes needn't wait for

        selected &= set(notes.notes_with_tag(context, tag))
    return sorted(selected)


def parse_value(name: str, text: str) -> JSONValue:
    """Parse a typed text as the value for a property of a new note.

    Raises:
        BadInput: It begins like JSON, but isn't valid JSON.
    """
    return yaml_values.interpret_value(splices.take_snapshot(b""), name, text)


def _edit_request(path: str, field: str, change: PropertyChange) -> EditProperty:
    operation = change.get("operation", "set")
    if operation not in PROPERTY_OPERATIONS:
        raise BadInput(f"there is no operation '{operation}'", hint=f"operations: {', '.join(PROPERTY_OPERATIONS)}")
    if "value" not in change and operation != "remove":
        raise BadInput(f"the operation '{operation}' needs a value", hint="give one; an empty text will do")
    return EditProperty(path=path, word=operation, name=field, value=change.get("value", ""))
