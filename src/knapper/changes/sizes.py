"""Tell small changes from large ones: those that a careful client may make by itself from those to look at first."""

import re
from typing import Final

from knapper.changes.drafts import Draft, FileDraft

_FENCES: Final = re.compile(rb"-{3,}|`{3,}.*|\xef\xbb\xbf")
"""Lines that nearly any two notes have in common."""
_FEW_LINES: Final = 2


def why_large(draft: Draft) -> str:
    """Tell why a draft isn't small; empty where it is.

    Small is what changes one file, in a place that was named exactly, and overwrites, moves and trashes nothing: text
    that stands there once, a unique heading's section, a property, the start or end, a new note.
    """
    if draft.by_query or draft.folders:
        return why_unnamed(draft)
    asked = [file for file in draft.files if file.cause == "asked"]
    if len(asked) != 1:
        return f"it changes {len(asked)} files"
    return _why_large(asked[0])


def why_unnamed(draft: Draft) -> str:
    """Tell why the files of a draft count as not named one by one; empty where they were.

    A folder that moves file by file reads like one that moves as a whole: the difference tells what is hidden in it.
    """
    asked = [file for file in draft.files if file.cause == "asked"]
    if draft.folders or (draft.by_query and asked and all(file.target is not None for file in asked)):
        return "it moves a folder"
    return "its files were chosen by a query" if draft.by_query else ""


def _why_large(file: FileDraft) -> str:
    if file.target is not None:
        return f"it moves '{file.path}'"
    if file.trash is not None:
        return f"it trashes '{file.path}'"
    if file.before is None:
        return ""
    if not file.anchored:
        return f"it doesn't name the exact place in '{file.path}'"
    return f"it replaces what '{file.path}' holds" if overwrites(file.before, file.after or b"") else ""


def overwrites(before: bytes, after: bytes) -> bool:
    """Tell whether nothing is left of a note of several lines."""
    old, new = _lines(before), _lines(after)
    return len(old) >= _FEW_LINES and old.isdisjoint(new)


def _lines(raw: bytes) -> set[bytes]:
    rows = (row.strip() for row in raw.splitlines())
    return {row for row in rows if row and not _FENCES.fullmatch(row)}
