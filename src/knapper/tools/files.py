"""Make notes, change their text, and put files into the trash."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from knapper.changes import text_edits
from knapper.changes.requests import AddText, AtPosition, Create, EditText, Restore, Rewrite, Trash
from knapper.changes.text import diff
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.written import Written
from knapper.vault.parser import Note

_PROPERTIES = 'give an object, such as {"tags": ["meeting"]}'


def create_file(
    context: Context, path: str, content: str = "", frontmatter: str | Mapping[str, JSONValue] = ""
) -> Annotated[Answer, Written]:
    """Create a new note; nothing is ever overwritten, and missing folders are made.

    Args:
        context: The vault, as the client sees it.
        path: Path of the new note; without an ending it gets ``.md``.
        content: The note's text, without frontmatter.
        frontmatter: The note's properties: an object, or an object as JSON text.

    Raises:
        BadInput: The properties aren't an object, or the path can't be a file's.
        ConflictError: There is a file already.
        RefusedError: The path is hidden, ignored or out of the vault.
    """
    return answers.one(context, Create(path=path, content=content, properties=_properties(frontmatter)))


def write_file(context: Context, path: str, content: str, expected_hash: str) -> Annotated[Answer, Written]:
    """Replace the whole text of a note; its line endings and byte-order mark stay.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        content: The new text.
        expected_hash: The ``hash`` that read_file told of the note that is replaced.

    Raises:
        ConflictError: The note has another hash by now.
    """
    if not expected_hash:
        hint = "read the note, and give the hash that reading it told"
        raise BadInput(f"replacing '{path}' needs the hash of what is replaced", hint=hint, code="hash_needed")
    return answers.one(context, Rewrite(path=path, content=content, base=expected_hash))


def append_to_file(context: Context, path: str, content: str, expected_hash: str = "") -> Annotated[Answer, Written]:
    """Append text to the end of a note, on lines of its own.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        content: What comes after its last line.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        NotFound: There is no such note.
        ConflictError: The note isn't what was read any more, and the place changed.
        RefusedError: The path is out of the vault, or the client may not write there.
    """
    return answers.one(context, AddText(path=path, content=content, where="end", base=expected_hash))


def prepend_to_file(context: Context, path: str, content: str, expected_hash: str = "") -> Annotated[Answer, Written]:
    """Insert text at the beginning of a note, after its properties and before a blank line.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        content: What comes before its text.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        KnapError: As for `append_to_file`.
    """
    return answers.one(context, AddText(path=path, content=content, where="start", base=expected_hash))


def edit_file(
    context: Context, path: str, old_text: str, new_text: str, count: int = 1, expected_hash: str = ""
) -> Annotated[Answer, Written]:
    """Replace text in a note by other text.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        old_text: As it stands there; a match that differs only in quotes, dashes or white space is taken, and reported.
        new_text: What comes in its place; empty to delete it.
        count: How many times the old text stands there; all of them are replaced.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        NotFound: The text isn't there; the hint shows what is most like it.
        Ambiguous: It stands there another number of times; the details list the lines.
        ConflictError: The note isn't what was read any more, and the place changed.
    """
    return answers.one(context, EditText(path=path, old=old_text, new=new_text, count=count, base=expected_hash))


def edit_at(
    context: Context, path: str, position: str, content: str = "", expected_hash: str = ""
) -> Annotated[Answer, Written]:
    """Insert, replace or delete whole lines of a note at a position.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note; with the position ``create``, of a new one.
        position: ``start``, ``end``, ``after:## Heading``, ``insert:N``, ``replace:N-M``, ``delete:N-M`` or ``create``.
        content: The lines that come there; empty for ``delete``.
        expected_hash: The hash of the note that lines were counted in; empty for whatever it holds now.

    Raises:
        BadInput: There is no such position or line.
        KnapError: As for `edit_file`.
    """
    return answers.one(context, AtPosition(path=path, position=position, content=content, base=expected_hash))


def delete_file(context: Context, path: str, expected_hash: str = "") -> Annotated[Answer, Written]:
    """Put a file into the trash that the vault's settings name; nothing is deleted for good.

    Args:
        context: The vault, as the client sees it.
        path: Path of a note or any other file.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        NotFound: There is no such file.
        ConflictError: It isn't what was read any more.
    """
    return answers.one(context, Trash(path=path, base=expected_hash))


def restore_files(context: Context, names: Sequence[str]) -> Annotated[Answer, Written]:
    """Take files out of the vault's own trash, each to where it was; nothing is overwritten.

    Args:
        context: The vault, as the client sees it.
        names: Paths that the files had, or have below ``.trash``.

    Raises:
        NotFound: The trash has none of them.
        ConflictError: There are files where they would go.
    """
    asked = [Restore(path=name) for name in dict.fromkeys(names)]
    return answers.one(context, asked[0]) if len(asked) == 1 else answers.several(context, asked)


def difference(note: Note, content: str) -> str:
    """Write what `write_file` would change in a note as ``diff -u`` does.

    Raises:
        BadInput: The text can't be written, or is what the note holds.
    """
    request = Rewrite(path=note.path, content=content, base=note.hash)
    made = text_edits.resolve_request(note, request, version=lambda _: None)
    return diff.unified_diff(note.raw, text_edits.apply_all(note, [made]), note.path)


def _properties(given: str | Mapping[str, JSONValue]) -> Mapping[str, JSONValue] | None:
    if not isinstance(given, str):
        return given or None
    if not given.strip():
        return None
    try:
        value: object = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"frontmatter isn't JSON: {error}", hint=_PROPERTIES, code="invalid_json") from None
    if not isinstance(value, dict):
        raise BadInput("frontmatter isn't an object", hint=_PROPERTIES, code="invalid_json")
    return cast("dict[str, JSONValue]", value)
