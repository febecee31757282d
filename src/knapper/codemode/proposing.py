"""Propose what scripts write."""

from collections.abc import Mapping
from dataclasses import replace

from knapper.changes.requests import Create, Rewrite
from knapper.changes.text import replacement
from knapper.changes.writer import SubmitOptions
from knapper.jsontypes import JSONValue
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.vault import parser
from knapper.vault.parser import Note


def propose(
    context: Context, raw: str, content: str, values: Mapping[str, JSONValue], there: tuple[Note, str] | None
) -> dict[str, JSONValue]:
    """Propose a new note, or a new text of one.

    Args:
        context: The vault, as the client sees it.
        raw: The path, as the script wrote it.
        content: The text.
        values: Properties that are put before it.
        there: The note of that path, and the hash that the new text is bound to; None where there is none.

    Raises:
        KnapError: It can't be made, the client may not, or the note isn't what was read any more.
    """
    request = Create(path=raw, content=content, properties=values or None)
    if there is not None:
        note, base = there
        request = Rewrite(
            path=note.path, content=parser.decode_text(replacement.compose_note(content, values)), base=base
        )
    asked = replace(context.asked or SubmitOptions(), propose=True)
    if not asked.reason:
        asked = replace(asked, reason="a script")
    return answers.one(replace(context, asked=asked), request)
