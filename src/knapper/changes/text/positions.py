"""Say where in a note a change goes: the positions that models and people write.

``start``, ``end``, ``after:## Heading``, ``insert:N``, ``replace:N`` or ``replace:N-M``, ``delete:N`` or
``delete:N-M``, ``create`` and ``open``. Lines count from 1, those of the file on disk, frontmatter included.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from knapper.changes.text import sections, splices
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput

Kind = Literal["add", "replace", "delete", "create", "navigate"]

_FORMS: Final = "start, end, after:## Heading, insert:N, replace:N, replace:N-M, delete:N, delete:N-M, create, open"
_LINES: Final = re.compile(
    r"(?P<word>insert|replace|delete)\s*:\s*(?P<first>\d+)(?:\s*[-\u2013\u2014]\s*(?P<last>\d+))?", re.IGNORECASE
)
_AFTER: Final = re.compile(r"after\s*:\s*(?P<heading>.*\S)", re.IGNORECASE | re.DOTALL)
_LAST_ENDING: Final = re.compile(r"(?:\r\n|\r|\n)\Z")
_LAST_LINES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Stand for a position without an argument.

    ``start`` is where the note's text begins: after the frontmatter, which text before it would break.
    """

    word: Literal["start", "end", "create", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """Stand for the place right below a heading's line."""

    heading: str
    """As `sections.find` takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Stand for the place before a line; one more than the last line is the file's end."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Stand for whole lines that are replaced or deleted."""

    word: Literal["replace", "delete"]
    first: int
    last: int
    """Included."""


Position: TypeAlias = Mark | After | Before | Span

_MARKS: Final[Mapping[str, Mark]] = {
    "start": Mark(word="start"),
    "end": Mark(word="end"),
    "create": Mark(word="create"),
    "open": Mark(word="open"),
}
_MARK_KINDS: Final[Mapping[str, Kind]] = {"start": "add", "end": "add", "create": "create", "open": "navigate"}


def parse(text: str) -> Position:
    """Read a position.

    ``"Replace: 5-7"`` gives lines 5 to 7; case, spaces and the kind of dash don't matter.

    Raises:
        BadInput: It is none, or its lines are out of order.
    """
    bare = text.strip()
    mark = _MARKS.get(bare.casefold())
    if mark is not None:
        return mark
    if after := _AFTER.fullmatch(bare):
        return After(heading=after["heading"])
    found = _LINES.fullmatch(bare)
    if found is None:
        raise BadInput(f"{text!r} is no position.", hint=f"One of: {_FORMS}.", code="invalid_position")
    first = int(found["first"])
    last = int(found["last"] or first)
    if first < 1 or last < first:
        hint = "Lines count from 1, and the first comes before the last."
        raise BadInput(f"{text!r} names no lines.", hint=hint, code="invalid_position")
    return _numbered(found["word"].casefold(), first, last if found["last"] else None)


def _numbered(word: str, first: int, last: int | None) -> Position:
    if word == "insert":
        if last is not None:
            hint = f"Use insert:{first}, or replace:{first}-{last}."
            raise BadInput("insert takes one line, before which the text goes.", hint=hint, code="invalid_position")
        return Before(line=first)
    return Span(word="replace" if word == "replace" else "delete", first=first, last=last or first)


def render(position: Position) -> str:
    """Write a position as `parse` reads it."""
    match position:
        case Mark(word=word):
            return word
        case After(heading=heading):
            return f"after:{heading}"
        case Before(line=line):
            return f"insert:{line}"
        case Span(word=word, first=first, last=last):
            return f"{word}:{first}" if first == last else f"{word}:{first}-{last}"


def kind(position: Position) -> Kind:
    """Tell what a change at a position does, so that capabilities can be checked."""
    match position:
        case Mark(word=word):
            return _MARK_KINDS[word]
        case After() | Before():
            return "add"
        case Span(word=word):
            return word


def resolve(snapshot: Snapshot, position: Position, content: str = "") -> Splice:
    r"""Turn a position and its text into the splice it means.

    Inserted text is whole lines; one line ending at its end is the last line's own, so ``"\n"`` is a blank line. A
    replacement with ``""`` leaves a blank line; ``delete`` ignores the text.

    Raises:
        BadInput: There is no such line, no text to insert, nothing would change, or the position isn't one in a text.
        NotFound: There is no such heading.
        Ambiguous: The heading stands several times.
    """
    match position:
        case Span():
            splice = _over_lines(snapshot, position, content)
            where = f"{render(position).partition(':')[2]}"
            splices.ensure_change(snapshot.raw, [splice], f"the text of line {where} is the same")
            return splice
        case Mark(word="create" | "open"):
            message = f"'{position.word}' changes no text of a note that exists."
            raise BadInput(message, hint="Use start, end or a line.", code="invalid_position")
        case _:
            if not content:
                raise BadInput("There is no text to insert.", hint='A blank line is "\\n".', code="no_change")
            return _insert(snapshot, position, content)


def _insert(snapshot: Snapshot, position: Mark | After | Before, content: str) -> Splice:
    match position:
        case Mark(word="start"):
            return snapshot.put_lines(snapshot.outline.body_start, content, rank=splices.START)
        case Mark():
            return snapshot.put_lines(len(snapshot.raw), content, rank=splices.END)
        case After(heading=heading):
            section = sections.find(snapshot, heading)
            return snapshot.put_lines(section.body_start, content, rank=splices.BELOW)
        case Before(line=line):
            return snapshot.put_lines(_boundary(snapshot, line), content, rank=splices.PLAIN)


def _boundary(snapshot: Snapshot, line: int) -> int:
    if line == snapshot.count + 1:
        return len(snapshot.raw)
    _check(snapshot, line, most=snapshot.count + 1)
    block = snapshot.outline.frontmatter
    if line == 1 and block is not None:
        hint = f"Use start, or insert:{block.end_line + 1}, for the text after it."
        message = f"Line 1 opens the frontmatter (lines 1-{block.end_line}); text before it would break the properties."
        raise BadInput(message, hint=hint, code="invalid_position")
    return snapshot.line(line)[0]


def _over_lines(snapshot: Snapshot, position: Span, content: str) -> Splice:
    _check(snapshot, position.last, most=snapshot.count)
    start = snapshot.line(position.first)[0]
    _, text_stop, stop = snapshot.line(position.last)
    if position.word == "delete":
        return Splice(start=start, stop=stop, new=b"")
    return snapshot.rewrite(start, text_stop, _LAST_ENDING.sub("", content))


def _check(snapshot: Snapshot, line: int, *, most: int) -> None:
    if line <= most:
        return
    count = snapshot.count
    excerpt = snapshot.excerpt(count - _LAST_LINES + 1)
    details: dict[str, object] = {"lines": count, "excerpt": excerpt}
    hint = f"Its last lines are:\n{excerpt}"
    raise BadInput(f"There is no line {line}; the note has {count}.", hint=hint, code="no_such_line", details=details)
