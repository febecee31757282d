"""Places in a note where edits are made: sections, positions such as `after:## Heading`, headings and block ids."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from unicodedata import normalize

from knapper.changes.text import splices
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.vault import parser
from knapper.vault.source import BlockId, Section

Heading = str | Sequence[str]
"""``## Title``, ``Title`` if it occurs once, or a path: ``# A > ## B``, or a list of its parts."""

# A look behind keeps a long run of spaces from being tried from each of them.
_HEADING_PATTERN: Final = re.compile(r"(#*)[ \t]*(.*?)(?:(?<![ \t])[ \t]+#+)?", re.DOTALL)
_PATH_SEPARATOR: Final = re.compile(r"(?<!\s)\s+>\s+")
_MAX_LEVEL: Final = 6
_SHOWN: Final = 5
_LEAST_RATIO: Final = 50
_LIST_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeadingStep:
    level: int
    """0 for any."""
    title: str
    """Folded."""


def find_section(snapshot: Snapshot, heading: Heading, *, strict: bool = False) -> Section:
    """Find a section by its heading, whose case doesn't matter.

    Args:
        snapshot: The note.
        heading: A heading or a path of headings; in a path, steps between may be left out.
        strict: Demand ``#`` signs, as the documented section tools do.

    Raises:
        BadInput: The heading is empty, has more than six signs, or none where *strict*.
        NotFound: No heading fits; the hint names the nearest.
        Ambiguous: Several fit; the message has their lines, the hint their paths.
    """
    requested = heading if isinstance(heading, str) else " > ".join(heading)
    parts_given = [heading] if isinstance(heading, str) else list(heading)
    matches = _matches(snapshot, _parse_steps(parts_given, strict=strict))
    if not matches and isinstance(heading, str) and len(parts := _PATH_SEPARATOR.split(heading.strip())) > 1:
        matches = _matches(snapshot, _parse_steps(parts, strict=strict))
    if not matches:
        labels = {section.start: heading_label(section) for section in snapshot.outline.sections if section.level}
        by_start = {section.start: section.line for section in snapshot.outline.sections}
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a mistyped heading should cost it

        near = process.extract(requested, labels, scorer=fuzz.WRatio, score_cutoff=_LEAST_RATIO, limit=_SHOWN)
        starts = [start for _, _, start in near] or list(labels)[:_SHOWN]
        names = [f"'{labels[start]}' (line {by_start[start]})" for start in starts]
        hint = "the note has no headings"
        if names:
            hint = f"{'nearest' if near else 'the first headings are'}: {', '.join(names)}"
        details: dict[str, object] = {"headings": [labels[start] for start in starts]}
        raise NotFound(f"there is no heading {requested!r}", hint=hint, code="heading_not_found", details=details)
    if len(matches) > 1:
        rows = [chain[0].line for chain in matches]
        paths = [" > ".join(heading_label(section) for section in reversed(chain)) for chain in matches]
        descriptions = [f"'{path}' (line {row})" for path, row in zip(paths, rows, strict=True)]
        hint = f"name one of them by its path: {'; '.join(descriptions)}"
        if len(set(paths)) < len(paths):
            hint = "their paths are the same, so change it by line numbers"
        message = f"the heading {requested!r} occurs {len(rows)} times, in lines {', '.join(map(str, rows))}"
        raise Ambiguous(message, hint=hint, code="heading_ambiguous", details={"lines": rows, "paths": paths})
    return matches[0][0]


def _parse_steps(parts: Sequence[str], *, strict: bool) -> list[_HeadingStep]:
    steps: list[_HeadingStep] = []
    for part in parts:
        match = _HEADING_PATTERN.fullmatch(part.strip())
        signs, title = (match[1], match[2]) if match else ("", part)
        if not part.strip() or len(signs) > _MAX_LEVEL:
            hint = "write it as in the note, such as '## Title'"
            raise BadInput(f"{part!r} is no heading", hint=hint, code="invalid_heading")
        if strict and not signs:
            hint = f"write its level too, such as '## {title}'"
            message = f"invalid heading format: {part!r} has no # prefix"
            raise BadInput(message, hint=hint, code="invalid_heading")
        steps.append(_HeadingStep(level=len(signs), title=_fold_title(title)))
    if not steps:
        raise BadInput("no heading is named", hint="write it as in the note", code="invalid_heading")
    return steps


def _fold_title(title: str) -> str:
    return " ".join(normalize("NFC", title).split()).casefold()


def _matches(snapshot: Snapshot, steps: Sequence[_HeadingStep]) -> list[tuple[Section, ...]]:
    """Return each section that fits, followed by those that contain it, from the inside out."""
    matching: list[tuple[Section, ...]] = []
    path: list[Section] = []
    for section in snapshot.outline.sections:
        if section.level:
            while path and path[-1].level >= section.level:
                _ = path.pop()
            path.append(section)
            chain = tuple(reversed(path))
            if _matches_steps(chain, steps):
                matching.append(chain)
    return matching


def _matches_steps(chain: Sequence[Section], steps: Sequence[_HeadingStep]) -> bool:
    if not _matches_step(chain[0], steps[-1]):
        return False
    outer = iter(chain[1:])
    return all(any(_matches_step(section, step) for section in outer) for step in reversed(steps[:-1]))


def _matches_step(section: Section, step: _HeadingStep) -> bool:
    return step.level in {0, section.level} and _fold_title(section.title) == step.title


def heading_label(section: Section) -> str:
    """Return a section's heading as text: ``## Title``."""
    return f"{'#' * section.level} {section.title}".rstrip()


def replace_section(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Replace a whole section, heading included, by text that may begin with a heading or not.

    Blank lines between the section and the next heading are kept, and the heading is never repeated. Empty text removes
    the section with those blank lines.

    Raises:
        BadInput: Nothing would change, or as for `find_section`.
    """
    section = find_section(snapshot, heading, strict=strict)
    if not content.strip():
        return Splice(start=section.start, stop=section.stop, new=b"")
    body = _without_heading(section, content)
    if body != content and _without_heading(section, body) != body:
        content = body
    stop = _text_stop(snapshot, section)
    return _ensure_section_change(snapshot, section, snapshot.rewrite(section.start, stop, content.strip("\r\n")))


def replace_section_body(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Replace the text below a heading, inner sections included, and keep the heading.

    If the first line of *content* repeats the heading, it is left out.

    Raises:
        BadInput: Nothing would change, or as for `find_section`.
    """
    section = find_section(snapshot, heading, strict=strict)
    text = _without_heading(section, content).strip("\r\n")
    stop = _text_stop(snapshot, section)
    if stop <= section.body_start:
        if not text:
            hint = "nothing has to be done"
            raise BadInput(f"nothing would change: {heading_label(section)!r} is empty", hint=hint, code="no_change")
        return snapshot.put_lines(section.body_start, text, rank=splices.RANK_BELOW_HEADING)
    number = snapshot.lines.line_number(section.body_start)
    while snapshot.is_blank(number):
        number += 1
    return _ensure_section_change(snapshot, section, snapshot.rewrite(snapshot.line(number)[0], stop, text))


def append_to_section(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Insert text at a section's end, inner sections included, with a blank line before it.

    A blank line is kept or added between the text and the next heading.

    Raises:
        BadInput: There is no text, or as for `find_section`.
    """
    section = find_section(snapshot, heading, strict=strict)
    text = _text_to_insert(section, content)
    last = snapshot.lines.line_number(max(section.start, _text_stop(snapshot, section) - 1))
    at = snapshot.line(last)[2]
    followed = at < len(snapshot.raw) and at == section.stop
    return snapshot.put_lines(at, f"\n{text}\n" + "\n" * followed, rank=splices.RANK_SECTION_END - section.level)


def prepend_to_section(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Insert text right below a heading.

    A blank line separates it from a paragraph that follows, but not list items from list items.

    Raises:
        BadInput: There is no text, or as for `find_section`.
    """
    section = find_section(snapshot, heading, strict=strict)
    text = _text_to_insert(section, content)
    following = snapshot.decode(section.body_start, snapshot.lines.line_stop(section.body_start))
    items = _LIST_ITEM.match(following) and _LIST_ITEM.match(text.splitlines()[-1])
    apart = section.body_start < section.stop and bool(following.strip()) and not items
    return snapshot.put_lines(section.body_start, f"{text}\n" + "\n" * apart, rank=splices.RANK_BELOW_HEADING)


def insert_after_frontmatter(snapshot: Snapshot, content: str) -> Splice:
    """Insert text at a note's beginning: after the frontmatter, with a blank line before and after it.

    Raises:
        BadInput: There is no text.
    """
    text = _text_to_insert(None, content)
    at = snapshot.outline.body_start
    before = "\n" if snapshot.outline.frontmatter else ""
    rest = snapshot.raw[at:]
    apart = bool(rest) and not (before and rest.startswith((b"\n", b"\r")))
    return snapshot.put_lines(at, f"{before}{text}\n" + "\n" * apart, rank=splices.RANK_START)


def append_to_file(snapshot: Snapshot, content: str) -> Splice:
    """Insert text at a note's end.

    Raises:
        BadInput: There is no text.
    """
    return snapshot.put_lines(len(snapshot.raw), _text_to_insert(None, content) + "\n", rank=splices.RANK_END)


def _text_to_insert(section: Section | None, content: str) -> str:
    text = (_without_heading(section, content) if section else content).strip("\r\n")
    if not text.strip():
        raise BadInput("there is no text to insert", hint="give the text in content", code="no_change")
    return text


def _without_heading(section: Section, content: str) -> str:
    """Return text without its first line if that repeats the section's heading."""
    bare = content.lstrip("\r\n")
    first, _, remainder = bare.partition("\n")
    match = _HEADING_PATTERN.fullmatch(first.strip())
    if match and len(match[1]) == section.level and _fold_title(match[2]) == _fold_title(section.title):
        return remainder
    return content


def _text_stop(snapshot: Snapshot, section: Section) -> int:
    """Return the end of a section's last line that isn't blank, without its line ending."""
    last = snapshot.lines.line_number(max(section.start, section.stop - 1))
    while snapshot.line(last)[0] > section.start and snapshot.is_blank(last):
        last -= 1
    return max(snapshot.line(last)[1], section.start)


def _ensure_section_change(snapshot: Snapshot, section: Section, splice: Splice) -> Splice:
    splices.ensure_change(snapshot.raw, [splice], f"the section {heading_label(section)!r} holds this text already")
    return splice


PositionKind = Literal["add", "replace", "delete", "create", "navigate"]

_POSITION_FORMS: Final = (
    "start, end, after:## Heading, insert:N, replace:N, replace:N-M, delete:N, delete:N-M, create, open"
)
_LINE_PATTERN: Final = re.compile(
    r"(?P<word>insert|replace|delete)\s*:\s*(?P<first>\d+)(?:\s*[-\u2013\u2014]\s*(?P<last>\d+))?", re.IGNORECASE
)
_AFTER_PATTERN: Final = re.compile(r"after\s*:\s*(?P<heading>.*\S)", re.IGNORECASE | re.DOTALL)
_LAST_ENDING: Final = re.compile(r"(?:\r\n|\r|\n)\Z")
_LAST_LINES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPosition:
    """Position without an argument.

    ``start`` is where the note's text begins: after the frontmatter, which text before it would break.
    """

    word: Literal["start", "end", "create", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterHeading:
    """Position right below a heading's line."""

    heading: str
    """As for `find_section`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeLine:
    """Position before a line; one more than the last line is the file's end."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpan:
    """Whole lines that are replaced or deleted."""

    word: Literal["replace", "delete"]
    first: int
    last: int
    """Included."""


Position: TypeAlias = NamedPosition | AfterHeading | BeforeLine | LineSpan

_NAMED_POSITIONS: Final[Mapping[str, NamedPosition]] = {
    "start": NamedPosition(word="start"),
    "end": NamedPosition(word="end"),
    "create": NamedPosition(word="create"),
    "open": NamedPosition(word="open"),
}
_NAMED_POSITION_KINDS: Final[Mapping[str, PositionKind]] = {
    "start": "add",
    "end": "add",
    "create": "create",
    "open": "navigate",
}


def parse_position(text: str) -> Position:
    """Parse a position.

    ``"Replace: 5-7"`` gives lines 5 to 7; case, spaces and the kind of dash don't matter.

    Raises:
        BadInput: It is none, or its lines are out of order.
    """
    bare = text.strip()
    mark = _NAMED_POSITIONS.get(bare.casefold())
    if mark is not None:
        return mark
    if after := _AFTER_PATTERN.fullmatch(bare):
        return AfterHeading(heading=after["heading"])
    match = _LINE_PATTERN.fullmatch(bare)
    if match is None:
        raise BadInput(f"{text!r} is no position", hint=f"one of: {_POSITION_FORMS}", code="invalid_position")
    first = int(match["first"])
    last = int(match["last"] or first)
    if first < 1 or last < first:
        hint = "lines count from 1, and the first comes before the last"
        raise BadInput(f"{text!r} names no lines", hint=hint, code="invalid_position")
    word = match["word"].casefold()
    if word == "insert":
        if match["last"]:
            hint = f"use insert:{first}, or replace:{first}-{last}"
            raise BadInput("insert takes one line, before which the text goes", hint=hint, code="invalid_position")
        return BeforeLine(line=first)
    return LineSpan(word="replace" if word == "replace" else "delete", first=first, last=last)


def render_position(position: Position) -> str:
    """Return a position as `parse_position` reads it."""
    match position:
        case NamedPosition(word=word):
            return word
        case AfterHeading(heading=heading):
            return f"after:{heading}"
        case BeforeLine(line=line):
            return f"insert:{line}"
        case LineSpan(word=word, first=first, last=last):
            return f"{word}:{first}" if first == last else f"{word}:{first}-{last}"


def position_kind(position: Position) -> PositionKind:
    """Return the kind of change that a position makes, by which capabilities are checked."""
    match position:
        case NamedPosition(word=word):
            return _NAMED_POSITION_KINDS[word]
        case AfterHeading() | BeforeLine():
            return "add"
        case LineSpan(word=word):
            return word


def resolve_position(snapshot: Snapshot, position: Position, content: str = "") -> Splice:
    r"""Turn a position and its text into the splice it means.

    Inserted text is whole lines; one line ending at its end is the last line's own, so ``"\n"`` is a blank line. A
    replacement with ``""`` leaves a blank line; ``delete`` ignores the text.

    Raises:
        BadInput: There is no such line, no text to insert, nothing would change, or the position isn't one in a text.
        NotFound: There is no such heading.
        Ambiguous: The heading occurs several times.
    """
    match position:
        case LineSpan():
            _check_line(snapshot, position.last, most=snapshot.count)
            start = snapshot.line(position.first)[0]
            _, text_stop, stop = snapshot.line(position.last)
            splice = Splice(start=start, stop=stop, new=b"")
            if position.word != "delete":
                splice = snapshot.rewrite(start, text_stop, _LAST_ENDING.sub("", content))
            where = f"{render_position(position).partition(':')[2]}"
            splices.ensure_change(snapshot.raw, [splice], f"the text of line {where} is the same")
            return splice
        case NamedPosition(word="create" | "open"):
            message = f"'{position.word}' changes no text of a note that exists"
            raise BadInput(message, hint="use start, end or a line", code="invalid_position")
        case _ if not content:
            raise BadInput("there is no text to insert", hint='a blank line is "\\n"', code="no_change")
        case NamedPosition(word="start"):
            return snapshot.put_lines(snapshot.outline.body_start, content, rank=splices.RANK_START)
        case NamedPosition():
            return snapshot.put_lines(len(snapshot.raw), content, rank=splices.RANK_END)
        case AfterHeading(heading=heading):
            section = find_section(snapshot, heading)
            return snapshot.put_lines(section.body_start, content, rank=splices.RANK_BELOW_HEADING)
        case BeforeLine(line=line):
            return snapshot.put_lines(_boundary(snapshot, line), content, rank=splices.RANK_PLAIN)


def _boundary(snapshot: Snapshot, line: int) -> int:
    if line == snapshot.count + 1:
        return len(snapshot.raw)
    _check_line(snapshot, line, most=snapshot.count + 1)
    block = snapshot.outline.frontmatter
    if line == 1 and block is not None:
        hint = f"use start, or insert:{block.end_line + 1}, for the text after it"
        message = f"line 1 opens the frontmatter (lines 1-{block.end_line}); text before it would break the properties"
        raise BadInput(message, hint=hint, code="invalid_position")
    return snapshot.line(line)[0]


def _check_line(snapshot: Snapshot, line: int, *, most: int) -> None:
    if line <= most:
        return
    count = snapshot.count
    excerpt = snapshot.excerpt(count - _LAST_LINES + 1)
    details: dict[str, object] = {"lines": count, "excerpt": excerpt}
    hint = f"its last lines are:\n{excerpt}"
    raise BadInput(f"there is no line {line}; the note has {count}", hint=hint, code="no_such_line", details=details)


_ATX_PATTERN: Final = re.compile(rb"[ \t]*#{1,6}(?P<gap>[ \t]*)")
_HEADING_TAIL: Final = re.compile(rb"(?<![ \t])(?:[ \t]+#+)?(?:[ \t]+\^[A-Za-z0-9-]+)?[ \t]*\Z")
_BLOCK_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9-]+")


def rename_heading(snapshot: Snapshot, heading: Heading, title: str) -> Splice:
    """Return the splice that changes a heading's text; its level, closing signs and block id stay.

    Args:
        snapshot: The note.
        heading: As for `find_section`.
        title: The new text, without ``#`` signs.

    Raises:
        BadInput: *title* is empty, has several lines, can't be a heading's text, or is the same.
        NotFound: There is no such heading.
        Ambiguous: The heading occurs several times.
    """
    section = find_section(snapshot, heading)
    text = title.strip()
    if not text or len(text.splitlines()) > 1:
        raise BadInput(f"{title!r} can't be a heading's text", hint="give one line", code="invalid_heading")
    # after the signs, or all lines above a setext heading's underline
    start, first_stop, _ = snapshot.line(section.line)
    atx = _ATX_PATTERN.match(snapshot.raw, start, first_stop)
    last = snapshot.lines.line_number(section.body_start - 1)
    stop = first_stop if last == section.line else snapshot.line(last - 1)[1]
    lead = b""
    if atx and last == section.line:
        start = atx.end()
        lead = b"" if atx["gap"] else b" "
    row = snapshot.raw[start:stop]
    tail = _HEADING_TAIL.search(row)
    stop = start + (tail.start() if tail else len(row))
    splice = Splice(start=start, stop=stop, new=lead + snapshot.encode(text, start))
    splices.ensure_change(snapshot.raw, [splice], "the heading has this text")
    # The changed note has to have one heading at the place, of the same level and with the new text.
    after = parser.parse_note(splices.merge(snapshot.raw, [splice]))
    candidates = [other for other in after.sections if other.start == section.start and other.level == section.level]
    if len(after.sections) != len(snapshot.outline.sections) or not candidates or candidates[0].title != text:
        hint = "leave out signs at its ends, such as # and ^, and what begins another block"
        raise BadInput(f"{text!r} can't be the text of this heading", hint=hint, code="invalid_heading")
    return splice


def rename_block(snapshot: Snapshot, old: str, new: str) -> Splice:
    """Return the splice that changes a block's id.

    Args:
        snapshot: The note.
        old: The id, with or without ``^``.
        new: The new one.

    Raises:
        BadInput: *new* holds other than letters, digits and ``-``, or is the id of another block.
        NotFound: There is no such id; the hint lists those that there are.
        Ambiguous: It occurs several times.
    """
    old, new = old.strip().removeprefix("^"), new.strip().removeprefix("^")
    if not _BLOCK_ID_PATTERN.fullmatch(new):
        raise BadInput(f"{new!r} can't be a block's id", hint="use letters, digits and -", code="invalid_block_id")
    block = find_block(snapshot.outline.block_ids, old)
    other = [one for one in snapshot.outline.block_ids if one is not block and one.name.casefold() == new.casefold()]
    if other:
        raise BadInput(f"line {other[0].line} has the id ^{new} already", hint="choose another", code="exists")
    start = block.id_start + 1
    splice = Splice(start=start, stop=start + len(block.name.encode()), new=new.encode())
    splices.ensure_change(snapshot.raw, [splice], f"the block's id is ^{new}")
    return splice


def find_block(ids: Sequence[BlockId], name: str) -> BlockId:
    """Find a block by its id, whose case doesn't matter.

    Raises:
        NotFound: There is none.
        Ambiguous: There are several.
    """
    matches = [one for one in ids if one.name.casefold() == name.casefold()]
    if not matches:
        names = ", ".join(f"^{one.name}" for one in ids[:10])
        hint = f"the note has {names}" if names else "the note has no block ids"
        raise NotFound(f"there is no block ^{name}", hint=hint, code="block_not_found")
    if len(matches) > 1:
        rows = [one.line for one in matches]
        message = f"the block id ^{name} occurs {len(rows)} times, in lines {', '.join(map(str, rows))}"
        raise Ambiguous(message, hint="change one of them as text", code="block_ambiguous", details={"lines": rows})
    return matches[0]
