"""Read notes, in stretches that fit whoever reads."""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Unpack

from typing_extensions import TypedDict

from knapper.changes.text import blocks, positions
from knapper.changes.text.splices import Snapshot
from knapper.errors import BadInput, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools import answers, embeds, foreign
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes.reading import Reading
from knapper.vault import parser, pending, source, walk
from knapper.vault.parser import Note

LENGTH: Final = 4_000
WHOLE: Final = 100_000
MOST: Final = 1_000_000
"""Characters that one call gives at most."""
_ENDING: Final = re.compile(r"\r\n|\r|\n")
_SLICE: Final = re.compile(
    r"(?P<heading>.*\S)\s*\[\s*(?P<start>(?:-?\d{1,9})?)\s*:\s*(?P<stop>(?:-?\d{1,9})?)\s*\]\s*", re.DOTALL
)
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


class More(TypedDict, total=False):
    """Hold what of a note is read, and how it is shown."""

    heading: str
    line_numbers: bool
    expand_embeds: bool


def read_file(
    context: Context, path: str, offset: int = 0, length: int = LENGTH, **more: Unpack[More]
) -> Annotated[Answer, Reading]:
    """Read a note, or one of its sections.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        offset: Characters that are left out at the beginning.
        length: Characters at most, 1 to 1,000,000.
        heading: Only the section of this heading, such as ``## Tasks`` or ``# Plan > ## Tasks``; with ``[100:400]``
            after it, only these characters of the section.
        line_numbers: Begin each line with its number in the file and a colon.
        expand_embeds: Give in ``embeds`` what embedded notes, sections and blocks say; the text stays as it is.

    Returns:
        ``content`` as it stands in the file, ``hash`` of the whole file, ``truncated`` with ``next_offset`` where more
        follows, ``total_chars``, ``start_line`` and ``end_line``; ``pending`` edits where the note holds some.

    Raises:
        NotFound: No such note or heading is visible.
        Ambiguous: The heading stands several times.
        BadInput: The path can't be one, the file isn't text, or a number is out of its range.
        RefusedError: The path leads out of the vault.
    """
    answers.check_offset(offset)
    if not 1 <= length <= MOST:
        raise BadInput(f"length is {length}", hint=f"give 1 to {MOST}")
    heading = more.get("heading", "")
    if more.get("expand_embeds", False):
        _ = context.freshen(meaning=False)
    note = read(context, path)
    is_foreign = foreign.heard(context, note)  # even the error about a heading tells headings
    whole, line = _section(note, heading) if heading else (parser.decode_text(note.raw), 1)
    line += _breaks(whole, offset)
    part = _Part(text=whole[offset : offset + length], offset=offset, total=len(whole), line=line)
    answer = _answer(note, part, line_numbers=more.get("line_numbers", False), is_foreign=is_foreign)
    if more.get("expand_embeds", False):
        last = line + len(_ENDING.findall(part.text))
        answer["embeds"] = embeds.expand(context, note, line, last)
    return answer


def fetch_note(context: Context, path: str, offset: int = 0, length: int = WHOLE) -> Annotated[Answer, Reading]:
    """Read a whole note; one that is very long comes in stretches.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        offset: Characters that are left out at the beginning.
        length: Characters at most, 1 to 1,000,000.

    Returns:
        ``content`` as it stands in the file, ``hash`` of the whole file, ``truncated`` with ``next_offset`` where more
        follows, ``total_chars``, ``start_line`` and ``end_line``; ``pending`` edits where the note holds some.

    Raises:
        KnapError: As for `read_file`.
    """
    return read_file(context, path, offset, length)


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
    note = read(context, path)
    is_foreign = foreign.heard(context, note)
    whole = parser.decode_text(note.raw)
    rows = _LINE.findall(whole)
    if first > max(len(rows), 1):
        hint = f"it has {len(rows)} lines"
        raise BadInput(f"{note.path} has no line {first}", hint=hint, code="no_such_line")
    text = "".join(rows[first - 1 : last])
    at = sum(map(len, rows[: first - 1]))
    part = _Part(text=text, offset=at, total=len(whole), line=first)
    return _answer(note, part, line_numbers=line_numbers, is_foreign=is_foreign)


def read(context: Context, path: str) -> Note:
    """Read a note or another text file as a whole.

    Raises:
        KnapError: As for `read_file`.
    """
    return _checked(context.view.read(path))


def head(context: Context, path: str) -> Note:
    """Read a file of whose outline only the properties matter.

    Raises:
        KnapError: As for `read_file`.
    """
    return _checked(context.view.read_head(path))


def _checked(note: Note) -> Note:
    if walk.kind_of(note.path) == "attachment" and b"\0" in note.raw:
        hint = "notes, canvases, bases and other text files can be read"
        raise BadInput(f"{note.path} isn't text", hint=hint, code="not_text")
    return note


def _section(note: Note, heading: str) -> tuple[str, int]:
    data = source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw
    snapshot = Snapshot(raw=data, outline=note.outline)
    sliced = _SLICE.fullmatch(heading)
    try:
        found = positions.find_section(snapshot, heading)
    except NotFound:
        if sliced is None:
            raise
        found = positions.find_section(snapshot, sliced["heading"])
    else:
        sliced = None  # a heading may end so
    text = parser.decode_text(data[found.start : found.stop])
    if sliced is None:
        return text, found.line
    start, stop, _ = slice(_number(sliced["start"]), _number(sliced["stop"])).indices(len(text))
    return text[start:stop], found.line + _breaks(text, start)


def _breaks(text: str, at: int) -> int:
    """Count the line endings before a place; one that the place cuts in two isn't over yet."""
    return len(_ENDING.findall(text, 0, at)) - (text[max(at - 1, 0) : at + 1] == "\r\n")


def _number(digits: str) -> int | None:
    return int(digits) if digits else None


def _answer(note: Note, part: _Part, *, line_numbers: bool, is_foreign: bool) -> dict[str, JSONValue]:
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
    if is_foreign:
        shown["foreign"] = True
    more: dict[str, JSONValue] = {"pending": waiting(note), "problems": problems(note)}
    return shown | {name: rows for name, rows in more.items() if rows}


def numbered(text: str, first: int) -> str:
    """Begin each line with its number and a colon: ``12: text``."""
    return "".join(f"{number}: {row}" for number, row in enumerate(_LINE.findall(text), first))


def problems(note: Note) -> list[JSONValue]:
    """Tell what in a note can't be read as it was meant."""
    return [{"code": one.code, "message": one.message, "line": one.line} for one in note.outline.problems]


def waiting(note: Note) -> list[JSONValue]:
    """Tell of the edits that wait in a note for a person's word."""
    return [
        {"id": block.id, "type": block.kind, "line": block.line, "is_whole": not blocks.block_problem(block)}
        for block in pending.find_pending(note.raw, note.outline)
    ]
