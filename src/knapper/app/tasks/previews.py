"""Show what a task would be done with; no model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from knapper.agents import untrusted
from knapper.agents.pipeline import context as pipeline_context
from knapper.agents.pipeline.records import ScoutResult
from knapper.tools import answers
from knapper.vault import parser

if TYPE_CHECKING:
    from knapper.agents.pipeline.context import TaskRequest, UnifiedContext
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import Context


_CHARS = 4
"""Characters of a token, roughly."""


def preview(context: Context, reader: Context, request: TaskRequest, *, texts: bool = False) -> dict[str, JSONValue]:
    """Show the notes that a request would be done with, each with why and its tokens, and what the limit leaves out.

    Where the scout is to look for notes, what it would choose isn't known: the open note and those added are shown.

    Args:
        context: The vault, as the agents see it that act for the client.
        reader: The vault, as the client sees it; it has read the texts.
        request: The task; what it says isn't used.
        texts: Whether the notes' texts come along.

    Raises:
        NotFound: The open note, or one that was added, isn't there.
    """
    explored = ScoutResult() if request.toggles.scout else None
    built = pipeline_context.gather_context(
        context, request, explored, mark=untrusted.new_mark(), reader=pipeline_context.read_for_person
    )
    shown = built.as_dict()
    rows = cast("list[dict[str, JSONValue]]", shown["notes"])
    for row, one in zip(rows, built.notes, strict=True):
        row["foreign"] = one.foreign
        if texts:
            _ = answers.mark_if_foreign(reader, one.note)
            row["text"] = _text(built, parser.decode_text(one.note.raw), is_cut=one.note.path == built.cut)
    return {**shown, "cut": built.cut, "limit": request.token_limit, "explored": explored is not None}


def _text(built: UnifiedContext, text: str, *, is_cut: bool) -> str:
    return text[: built.tokens * _CHARS] if is_cut else text
