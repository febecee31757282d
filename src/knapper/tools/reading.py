"""Read notes in parts, with numbered lines and expanded embeds."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, Unpack

from typing_extensions import TypedDict

from knapper.errors import BadInput, KnapError, NotFound
from knapper.index.graph import NameLookup
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.tools.shapes import MAX_LENGTH
from knapper.tools.shapes.read import EmbedContent, EmbeddedText, NoteProblem, NoteText, PendingEdit
from knapper.vault import links, parser, paths, pending, source, walk
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath
from knapper.vault.source import Link, Outline

_MAX_EMBEDS: Final = 50
"""Most embeds that are expanded."""
_EMBED_LENGTH: Final = 4_000
"""Most characters of each that are shown."""


def expand_embeds(context: Context, note: Note, first: int, last: int) -> list[EmbedContent]:
    """Return the content of the embeds in some lines of a note, or why there is none; in order of place.

    Args:
        context: The vault, as the client sees it.
        note: The note.
        first: Line, from 1.
        last: Included.
    """
    embeds = [link for link in note.outline.links if link.kind == "embed" and first <= link.line <= last]
    lookup = context.index.graph.cached_lookup()
    return [_expand_embed(context, note, link, lookup) for link in embeds[:_MAX_EMBEDS]]


def _expand_embed(context: Context, note: Note, link: Link, lookup: NameLookup) -> EmbedContent:
    row: EmbedContent = {
        "embed": parser.decode_text(utf8_bytes(note)[link.start : link.stop]),
        "line": link.line,
    }
    path = links.resolve(link.target, note.path, lookup).path
    if path is None or not context.sees(path):
        return {**row, "error": "nothing is there", "code": "not_found"}
    row["path"] = path
    if walk.kind_of(path) != "note":
        return {**row, "error": "it isn't a note", "code": "not_a_note"}
    try:
        return {**row, **_embed_content(context, path, link)}
    # The note may have vanished since the index was read; the other embeds are still shown.
    except KnapError as error:
        return {**row, "error": error.message, "code": error.code}


def _embed_content(context: Context, path: NotePath, link: Link) -> EmbeddedText:
    embedded = context.view.read(path)
    span = _embed_span(embedded.outline, link, len(utf8_bytes(embedded)))
    if span is None:
        target_kind, code = ("block", "block_not_found") if link.block else ("heading", "heading_not_found")
        return {"error": f"it has no such {target_kind}", "code": code}
    start, stop = span
    text = parser.decode_text(utf8_bytes(embedded)[start:stop])
    content = text[:_EMBED_LENGTH]
    line = max(bisect_right(embedded.outline.line_starts, start), 1)
    ends_line = content.endswith(("\r", "\n"))
    breaks = content.count("\n") + content.replace("\r\n", "").count("\r")
    fields: EmbeddedText = {
        "start_line": line,
        "end_line": line + breaks - (1 if ends_line else 0),
        "content": content,
        "truncated": len(content) < len(text),
    }
    if answers.mark_if_foreign(context, embedded):
        fields["foreign"] = True
    return fields


def _embed_span(outline: Outline, link: Link, size: int) -> tuple[int, int] | None:
    """Return the span in bytes that an embed shows; no embed shows properties."""
    if link.block:
        wanted_id = paths.fold_target(link.block)
        named_block = next((block for block in outline.block_ids if paths.fold_target(block.name) == wanted_id), None)
        return (named_block.start, named_block.stop) if named_block else None
    if not link.headings:
        return outline.body_start, size
    *outer, own = link.headings
    for section in outline.sections:
        # The last heading is the section's own, the others are above it.
        if section.level and section.path and links.heading_matches(own, section.path[-1]):
            titles = iter(section.path[:-1])
            if all(any(links.heading_matches(wanted, title) for title in titles) for wanted in outer):
                return section.start, section.stop
    return None


def utf8_bytes(note: Note) -> bytes:
    """Return the bytes that an outline's spans refer to: UTF-8, also for a UTF-16 note."""
    return source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw


DEFAULT_LENGTH: Final = 4_000
NOTE_LENGTH: Final = 100_000
_LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")
_SECTION_SLICE: Final = re.compile(
    r"(?P<heading>.*\S)\s*\[\s*(?P<start>(?:-?\d{1,9})?)\s*:\s*(?P<stop>(?:-?\d{1,9})?)\s*\]\s*", re.DOTALL
)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextSlice:
    """A slice of a note's text, or of one of its sections."""

    text: str
    offset: int
    """In characters of the text or section that was sliced."""
    total: int
    """Characters of that text or section."""
    line: int
    """The line of the note at which it begins."""


class ReadParameters(TypedDict, total=False):
    """Optional parameters of `read_file`."""

    heading: str
    line_numbers: bool
    expand_embeds: bool


def read_file(
    context: Context, path: str, offset: int = 0, length: int = DEFAULT_LENGTH, **more: Unpack[ReadParameters]
) -> NoteText:
    """Read a note, or one of its sections.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, absolute and inside it, or a name: the end of a path, a title or an alias.
        offset: Characters to skip at the beginning.
        length: Characters at most, 1 to 1,000,000.
        heading: Only the section of this heading, such as ``## Tasks`` or ``# Plan > ## Tasks``; with ``[100:400]``
            after it, only these characters of the section.
        line_numbers: Begin each line with its number in the file and a colon.
        expand_embeds: Return the text of embedded notes, sections and blocks in ``embeds``; ``content`` stays as it is.

    Returns:
        ``content`` as it stands in the file, and where it is cut, a last line that says so with the offset to read on
        at; ``hash`` of the whole file, ``truncated`` with ``next_offset`` where more follows, ``total_chars``,
        ``start_line`` and ``end_line``; ``pending`` edits where the note holds some.

    Raises:
        NotFound: No such note or heading is visible.
        Ambiguous: Several notes have the name, or the heading occurs several times.
        BadInput: The path isn't valid, the file isn't text, or a number is out of its range.
        RefusedError: The path leads outside the vault.
    """
    _check_range(offset, length)
    # Embeds are resolved by the names in the index.
    if more.get("expand_embeds", False):
        _ = context.freshen(meaning=False)
    note = read_note(context, path)
    # Before the heading is looked up: the error about a missing one quotes the note's headings.
    is_foreign = answers.mark_if_foreign(context, note)
    text_slice = _take_slice(note, more.get("heading", ""), offset, length)
    answer = _slice_answer(note, text_slice, line_numbers=more.get("line_numbers", False), is_foreign=is_foreign)
    if answer["truncated"]:
        # For readers of the text alone: where it is cut, and how to read on.
        start, stop = text_slice.offset, text_slice.offset + len(text_slice.text)
        cut = f"[cut here: characters {start} to {stop} of {text_slice.total}; read on with offset {stop}]"
        answer["content"] = f"{answer['content']}\n\n{cut}"
    if more.get("expand_embeds", False):
        last_line = text_slice.line + len(_LINE_BREAK.findall(text_slice.text))
        answer["embeds"] = expand_embeds(context, note, text_slice.line, last_line)
    return answer


def _check_range(offset: int, length: int) -> None:
    answers.check_offset(offset)
    if not 1 <= length <= MAX_LENGTH:
        raise BadInput(f"length is {length}", hint=f"give 1 to {MAX_LENGTH}")


def _take_slice(note: Note, heading: str, offset: int, length: int) -> _TextSlice:
    """Return a slice of a note's text, or of the section of a heading."""
    full_text, line = _section_text(note, heading) if heading else (parser.decode_text(note.raw), 1)
    line += _count_breaks(full_text, offset)
    return _TextSlice(text=full_text[offset : offset + length], offset=offset, total=len(full_text), line=line)


def fetch_note(context: Context, path: str, offset: int = 0, length: int = NOTE_LENGTH) -> NoteText:
    """Read a whole note; a very long one comes in parts.

    Args:
        context: The vault, as the client sees it.
        path: Relative to the vault, or absolute and inside it.
        offset: Characters to skip at the beginning.
        length: Characters at most, 1 to 1,000,000.

    Returns:
        ``content`` as it stands in the file, ``hash`` of the whole file, ``truncated`` with ``next_offset`` where more
        follows, ``total_chars``, ``start_line`` and ``end_line``; ``pending`` edits where the note holds some.

    Raises:
        KnapError: As for `read_file`.
    """
    _check_range(offset, length)
    note = read_note(context, path)
    is_foreign = answers.mark_if_foreign(context, note)
    return _slice_answer(note, _take_slice(note, "", offset, length), line_numbers=False, is_foreign=is_foreign)


def read_lines(context: Context, path: str, first: int, last: int, *, line_numbers: bool = False) -> NoteText:
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
    note = read_note(context, path)
    is_foreign = answers.mark_if_foreign(context, note)
    full_text = parser.decode_text(note.raw)
    rows = _LINE.findall(full_text)
    if first > max(len(rows), 1):
        hint = f"it has {len(rows)} lines"
        raise BadInput(f"{note.path} has no line {first}", hint=hint, code="no_such_line")
    text = "".join(rows[first - 1 : last])
    offset = sum(map(len, rows[: first - 1]))
    text_slice = _TextSlice(text=text, offset=offset, total=len(full_text), line=first)
    return _slice_answer(note, text_slice, line_numbers=line_numbers, is_foreign=is_foreign)


def read_if_exists(context: Context, path: str) -> Note | None:
    """Read a note, or return None where there is none."""
    try:
        return context.view.read(path)
    except NotFound:
        return None


def read_note(context: Context, path: str) -> Note:
    """Read a note or another text file as a whole.

    Raises:
        KnapError: As for `read_file`.
    """
    return _check_is_text(context.view.read(context.view.locate(path)))


def read_note_head(context: Context, path: str) -> Note:
    """Read a file of whose outline only the properties are needed.

    Raises:
        KnapError: As for `read_file`.
    """
    return _check_is_text(context.view.read_head(context.view.locate(path)))


def _check_is_text(note: Note) -> Note:
    if walk.kind_of(note.path) == "attachment" and b"\0" in note.raw:
        hint = "notes, canvases, bases and other text files can be read"
        raise BadInput(f"{note.path} isn't text", hint=hint, code="not_text")
    return note


def _section_text(note: Note, heading: str) -> tuple[str, int]:
    # Headings are found as edits find them; most reads name none, and needn't load what edits do.
    from knapper.changes.text import positions  # noqa: PLC0415
    from knapper.changes.text.splices import Snapshot  # noqa: PLC0415

    data = utf8_bytes(note)
    snapshot = Snapshot(raw=data, outline=note.outline)
    sliced = _SECTION_SLICE.fullmatch(heading)
    try:
        section = positions.find_section(snapshot, heading)
    except NotFound:
        if sliced is None:
            raise
        section = positions.find_section(snapshot, sliced["heading"])
    else:
        # The whole text is a heading: one may end in what looks like a slice.
        sliced = None
    text = parser.decode_text(data[section.start : section.stop])
    if sliced is None:
        return text, section.line
    start, stop, _ = slice(_optional_int(sliced["start"]), _optional_int(sliced["stop"])).indices(len(text))
    return text[start:stop], section.line + _count_breaks(text, start)


def _count_breaks(text: str, at: int) -> int:
    """Count the line endings before a place; a CRLF that the place splits doesn't count yet."""
    return len(_LINE_BREAK.findall(text, 0, at)) - (text[max(at - 1, 0) : at + 1] == "\r\n")


def _optional_int(digits: str) -> int | None:
    return int(digits) if digits else None


def _slice_answer(note: Note, part: _TextSlice, *, line_numbers: bool, is_foreign: bool) -> NoteText:
    stop = part.offset + len(part.text)
    breaks = len(_LINE_BREAK.findall(part.text))
    ends_line = part.text.endswith(("\r", "\n"))
    answer: NoteText = {
        "success": True,
        "path": note.path,
        "content": number_lines(part.text, part.line) if line_numbers else part.text,
        "hash": note.hash,
        "truncated": stop < part.total,
        "offset": part.offset,
        "total_chars": part.total,
        "start_line": part.line,
        "end_line": part.line + breaks - (1 if ends_line else 0),
    }
    if stop < part.total:
        answer["next_offset"] = stop
    if is_foreign:
        answer["foreign"] = True
    if waiting := pending_rows(note):
        answer["pending"] = waiting
    if problems := problem_rows(note):
        answer["problems"] = problems
    return answer


def number_lines(text: str, first: int) -> str:
    """Put its number and a colon before each line: ``12: text``."""
    return "".join(f"{number}: {row}" for number, row in enumerate(_LINE.findall(text), first))


def problem_rows(note: Note) -> list[NoteProblem]:
    """Return the parts of a note that can't be parsed as they were meant."""
    return [{"code": one.code, "message": one.message, "line": one.line} for one in note.outline.problems]


def pending_rows(note: Note) -> list[PendingEdit]:
    """Return the edits in a note that wait for a person's decision."""
    waiting = pending.find_pending(note.raw, note.outline)
    if not waiting:
        return []
    from knapper.changes.text import blocks  # noqa: PLC0415 - few notes hold pending edits

    return [
        {"id": block.id, "type": block.kind, "line": block.line, "is_whole": not blocks.block_problem(block)}
        for block in waiting
    ]
