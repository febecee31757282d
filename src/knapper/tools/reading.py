"""Read notes, in stretches that fit whoever reads."""

import re
from dataclasses import dataclass
from typing import Annotated, Final

from knapper.changes.text import blocks, sections
from knapper.changes.text.snapshots import Snapshot
from knapper.errors import BadInput
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.reading import Reading
from knapper.vault import notes, pending, source, walk
from knapper.vault.notes import Note
from knapper.vault.outline import JSONValue

LENGTH: Final = 4_000
MOST: Final = 1_000_000
"""Characters that one call gives at most."""
_ENDING: Final = re.compile(r"\r\n|\r|\n")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Hold a stretch of a note's text."""

    text: str
    offset: int
    """In characters, in the whole of which this is a stretch."""
    total: int
    """Characters of that whole."""
    line: int
    """Where it begins, in the note."""


def read_file(
    context: Context,
    path: str,
    offset: int = 0,
    length: int = LENGTH,
    *,
    heading: str = "",
    line_numbers: bool = False,
) -> Annotated[Answer, Reading]:
    """Read a note, or one of its sections.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        offset: Characters that are left out at the beginning.
        length: Characters at most, 1 to 1,000,000.
        heading: Only the section of this heading, such as ``## Tasks`` or ``# Plan > ## Tasks``; empty for the whole.
        line_numbers: Begin each line with its number in the file and a colon.

    Returns:
        ``content`` as it stands in the file, ``hash`` of the whole file, ``truncated`` with ``next_offset`` where more
        follows, ``total_chars``, ``start_line`` and ``end_line``; ``pending`` edits where the note holds some.

    Raises:
        NotFound: No such note or heading is visible.
        Ambiguous: The heading stands several times.
        BadInput: The path can't be one, the file isn't text, or a number is out of its range.
        RefusedError: The path leads out of the vault.
    """
    if offset < 0:
        raise BadInput(f"offset is {offset}", hint="give 0 or more")
    if not 1 <= length <= MOST:
        raise BadInput(f"length is {length}", hint=f"give 1 to {MOST}")
    note = _read(context, path)
    whole, line = _section(note, heading) if heading else (notes.text(note.raw), 1)
    line += len(_ENDING.findall(whole, 0, offset))
    part = _Part(text=whole[offset : offset + length], offset=offset, total=len(whole), line=line)
    return _answer(context, note, part, line_numbers=line_numbers)


def read_lines(
    context: Context, path: str, first: int, last: int, *, line_numbers: bool = False
) -> Annotated[Answer, Reading]:
    """Read whole lines of a note.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        first: From 1.
        last: Included; beyond the end for all that follows.
        line_numbers: Begin each line with its number in the file and a colon.

    Returns:
        The same as `read_file`.

    Raises:
        KnapError: As for `read_file`; a note without the first line is an error too (code ``no_such_line``).
    """
    if first < 1 or last < first:
        raise BadInput(f"{first}-{last} names no lines", hint="lines count from 1, and the first comes before the last")
    note = _read(context, path)
    whole = notes.text(note.raw)
    rows = _LINE.findall(whole)
    if first > max(len(rows), 1):
        hint = f"it has {len(rows)} lines"
        raise BadInput(f"{note.path} has no line {first}", hint=hint, code="no_such_line")
    text = "".join(rows[first - 1 : last])
    at = sum(map(len, rows[: first - 1]))
    return _answer(context, note, _Part(text=text, offset=at, total=len(whole), line=first), line_numbers=line_numbers)


def _read(context: Context, path: str) -> Note:
    note = context.view.read(path)
    if walk.kind_of(note.path) == "attachment" and b"\0" in note.raw:
        hint = "notes, canvases, bases and other text files can be read"
        raise BadInput(f"{note.path} isn't text", hint=hint, code="not_text")
    return note


def _section(note: Note, heading: str) -> tuple[str, int]:
    data = source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw
    found = sections.find(Snapshot(raw=data, outline=note.outline), heading)
    return notes.text(data[found.start : found.stop]), found.line


def _answer(context: Context, note: Note, part: _Part, *, line_numbers: bool) -> dict[str, JSONValue]:
    stop = part.offset + len(part.text)
    breaks = len(_ENDING.findall(part.text))
    ends_line = part.text.endswith(("\r", "\n"))
    shown: dict[str, JSONValue] = {
        "success": True,
        "path": note.path,
        "content": numbered(part.text, part.line) if line_numbers else part.text,
        "hash": note.hash,
        "truncated": stop < part.total,
        "offset": part.offset,
        "total_chars": part.total,
        "start_line": part.line,
        "end_line": part.line + breaks - (1 if ends_line else 0),
    }
    if stop < part.total:
        shown["next_offset"] = stop
    waiting: list[JSONValue] = [*_pending(note)]
    problems: list[JSONValue] = [
        {"code": one.code, "message": one.message, "line": one.line} for one in note.outline.problems
    ]
    if foreign.heard(context, note):
        shown["foreign"] = True
    more: dict[str, JSONValue] = {"pending": waiting, "problems": problems}
    return shown | {name: rows for name, rows in more.items() if rows}


def numbered(text: str, first: int) -> str:
    """Begin each line with its number and a colon: ``12: text``."""
    return "".join(f"{number}: {row}" for number, row in enumerate(_LINE.findall(text), first))


def _pending(note: Note) -> list[JSONValue]:
    """Tell of the edits that wait in a note for a person's word."""
    return [
        {"id": block.id, "type": block.kind, "line": block.line, "is_whole": not blocks.why(block)}
        for block in pending.find(note.raw, note.outline)
    ]
