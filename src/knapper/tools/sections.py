"""Change what a heading of a note owns."""

from typing import Annotated, Literal

from knapper.changes.requests import EditSection, RenameBlock, RenameHeading
from knapper.jsontypes import JSONValue
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.written import Written

How = Literal["replace", "replace_body", "append", "prepend"]


def replace_section(
    context: Context, path: str, heading: str, content: str, expected_hash: str = ""
) -> Annotated[Answer, Written]:
    """Replace a heading and all below it, down to the next heading of its level or above.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        heading: With its ``#`` signs, such as ``## Tasks``; ``# Plan > ## Tasks`` where it stands several times.
        content: What comes in its place, with a heading or without.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        NotFound: There is no such note or heading; the hint has the nearest ones.
        Ambiguous: The heading stands several times; the details list the lines.
        BadInput: The heading has no ``#`` signs, or nothing would change.
        ConflictError: The note isn't what was read any more, and the place changed.
        RefusedError: The path is out of the vault, or the client may not write there.
    """
    request = EditSection(path=path, heading=heading, content=content, how="replace", strict=True, base=expected_hash)
    return answers.one(context, request)


def append_to_section(
    context: Context, path: str, heading: str, content: str, expected_hash: str = ""
) -> Annotated[Answer, Written]:
    """Append text at the end of a section, after a blank line; the heading and its text stay.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        heading: With its ``#`` signs, such as ``## Tasks``; ``# Plan > ## Tasks`` where it stands several times.
        content: What is appended.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        KnapError: As for `replace_section`.
    """
    request = EditSection(path=path, heading=heading, content=content, how="append", strict=True, base=expected_hash)
    return answers.one(context, request)


def rename_anchor(
    context: Context, path: str, anchor: str, name: str, expected_hash: str = ""
) -> Annotated[Answer, Written]:
    """Rename a heading or a block id; links that lead there say the new name.

    Args:
        context: The vault, as the client sees it.
        path: Path of an existing note.
        anchor: A heading with its ``#`` signs, such as ``## Tasks``, or a block's ``^id``.
        name: The new heading's text without ``#`` signs, or the new id.
        expected_hash: The note's hash as it was read; empty for whatever it holds now.

    Raises:
        KnapError: As for `replace_section`.
    """
    if anchor.startswith("^"):
        return answers.one(
            context, RenameBlock(path=path, old=anchor[1:], new=name.removeprefix("^"), base=expected_hash)
        )
    return answers.one(context, RenameHeading(path=path, heading=anchor, title=name, base=expected_hash))


def edit_section(context: Context, request: EditSection) -> dict[str, JSONValue]:
    """Change a section in any of the ways that there are; its heading may be written without ``#`` signs.

    Raises:
        KnapError: As for `replace_section`.
    """
    return answers.one(context, request)
