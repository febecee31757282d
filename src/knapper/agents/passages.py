"""Find the place in a note that somebody names, and tell whether a text stands there."""

import re
import unicodedata
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from knapper.codemode.bridge import MAIN_VAULT
from knapper.errors import KnapError, NotFound
from knapper.index import chunker
from knapper.tools.context import Context
from knapper.vault import links, parser, source
from knapper.vault.outline import Section
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_QUOTES: Final = '\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"'
_SIGNS: Final = {**dict.fromkeys(_QUOTES, "'"), "\u2013": "-", "\u2014": "-"}
_PLAIN: Final = str.maketrans(_SIGNS)
_MARKS: Final = re.compile(r"[*_`~=]+|^\s*(?:>+|[-+]|\d+[.)])\s+|\[\[(?:[^\]|\n]*\|)?|\]\]", re.MULTILINE)
_MOST_COLONS: Final = 3
"""Up to which a target may be read as a vault's name."""
_GAP: Final = re.compile(r"\s*(?:\u2026|\.{3}|\[\.\.\.\]|\[\u2026\])\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Name a place, as a link and a stretch of lines do."""

    target: str
    """A note as links name it; one of another vault has that vault's name and a colon before it."""
    headings: tuple[str, ...] = ()
    block: str = ""
    first: int = 0
    """1-based; 0 for all that the heading owns, or the whole note."""
    last: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Hold a stretch of whole lines of a note."""

    vault: str = ""
    """Empty for the vault that was asked from."""
    path: NotePath
    heading: str
    """As the note has it; empty where none was named."""
    first: int
    last: int
    start: int
    """Span in the file's bytes."""
    stop: int
    hash: str
    """Of the whole file."""
    text: str
    """As it reads until a person has decided on the edits that wait in it."""
    note: Note = field(repr=False)


def find(context: Context, place: Place) -> Passage:
    """Find a place in the files as they are now.

    Raises:
        NotFound: The note, the heading, the block or the lines aren't there (codes ``no_note``, ``no_heading``,
            ``no_block``, ``no_such_line``), or the lines aren't under the heading (``other_section``). A vault that
            the client doesn't know of is as one that isn't there.
        KnapError: The note can't be read.
    """
    home, path = _resolved(context, place.target)
    note = home.view.read(path)
    section = _section(note, place.headings) if place.headings else None
    count = len(note.outline.line_starts)
    first, last = place.first, max(place.first, place.last)
    if last and not first:
        raise NotFound(f"{note.path} has no line 0", hint="lines are counted from 1", code="no_such_line")
    if place.block:
        named = next((one for one in note.outline.block_ids if one.name == place.block), None)
        if named is None:
            raise NotFound(f"{note.path} has no block ^{place.block}", code="no_block")
        span = source.measure_lines(_data(note))
        first, last = (first, last) if first else (span.number(named.start), span.number(named.stop - 1))
    if not first:
        first, last = (section.line, section.end_line) if section else (1, count)
    if last > count:
        hint = f"it has {count} lines"
        raise NotFound(f"{note.path} has no line {last}", hint=hint, code="no_such_line")
    if section and (last < section.line or first > section.end_line):
        raise NotFound(
            f"lines {first}-{last} of {note.path} aren't under '{section.title}'",
            hint=f"that heading owns lines {section.line}-{section.end_line}",
            code="other_section",
        )
    vault = "" if home.vault == context.vault else home.vault
    return replace(_passage(note, section, first, last), vault=vault)


def hold(passage: Passage, quote: str) -> None:
    """Check that a text stands in a passage; marks of Markdown, white space and kinds of quotes don't count.

    An ellipsis in the quotation stands for anything.

    Raises:
        NotFound: It doesn't (code ``not_quoted``); the hint tells where else in the note it stands.
    """
    if _stands(passage.text, quote):
        return
    raise NotFound(
        f"“{quote[:80]}” doesn't stand in lines {passage.first}-{passage.last} of {passage.path}",
        hint=_elsewhere(passage, quote),
        code="not_quoted",
    )


def numbered(passage: Passage, *, around: int, most: int) -> str:
    """Show a passage and some lines around it, each with its number in the file.

    Args:
        passage: Which.
        around: Lines before and after.
        most: Lines in all.
    """
    rows = _rows(passage.note)
    begin = max(0, passage.first - 1 - around)
    end = min(len(rows), passage.last + around, begin + most)
    return "".join(f"{number}: {row}\n" for number, row in enumerate(rows[begin:end], begin + 1))


def _resolved(context: Context, target: str) -> tuple[Context, NotePath]:
    """Find the note that a target means; one of this vault goes before another vault's, as a name may hold a colon."""
    own = _path(context, target)
    if own is not None:
        return context, own
    hint = ""
    for colon in islice(re.finditer(":", target), _MOST_COLONS):
        name, rest = target[: colon.start()].strip(), target[colon.end() :].strip()
        if name in {MAIN_VAULT, context.vault}:
            hint = f"a note of this vault goes without '{name}:'"
            continue
        home = _vault(context, name)
        found = _path(home, rest) if home else None
        if home and found:
            return home, found
    raise NotFound(f"there is no note '{target}'", hint=hint, code="no_note")


def _vault(context: Context, name: str) -> Context | None:
    """Open another vault; one that can't be opened is none."""
    try:
        return context.scripting.open_vault(name) if name else None
    except KnapError:
        return None


def _path(context: Context, target: str) -> NotePath | None:
    """Find a note of one vault: by its path, or by its name as links do."""
    for spelling in (target, f"{target}.md"):
        try:
            return context.view.path(spelling)
        except KnapError:
            continue
    found = links.resolve(
        target, NotePath(""), lambda key: [path for path in context.index.graph.lookup(key) if context.sees(path)]
    )
    return found.path if target.strip() else None


def _section(note: Note, headings: tuple[str, ...]) -> Section:
    for section in note.outline.sections:
        if not section.level or not links.heading_matches(headings[-1], section.title):
            continue
        above = list(section.path[:-1])
        if all(any(links.heading_matches(wanted, title) for title in above) for wanted in headings[:-1]):
            return section
    raise NotFound(f"{note.path} has no heading '{headings[-1]}'", code="no_heading")


def _passage(note: Note, section: Section | None, first: int, last: int) -> Passage:
    starts = note.outline.line_starts
    data = _data(note)
    start = starts[first - 1]
    stop = starts[last] if last < len(starts) else len(data)
    return Passage(
        path=note.path,
        heading=f"{'#' * section.level} {section.title}" if section else "",
        first=first,
        last=last,
        start=start,
        stop=stop,
        hash=note.hash,
        text=_text(note, start, stop),
        note=note,
    )


def _data(note: Note) -> bytes:
    return source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw


def _text(note: Note, start: int, stop: int) -> str:
    """Read lines; where an edit waits, the text before it stands in its block's place."""
    original = chunker.restore_original(note.raw, note.outline)
    if original is None:
        return parser.decode_text(_data(note)[start:stop])
    kept: list[bytes] = []
    begin = 0
    for row in original.data.splitlines(keepends=True):
        disk_start, disk_stop = original.place(begin, begin + len(row))
        if disk_start < stop and disk_stop > start:
            kept.append(row)
        begin += len(row)
    return parser.decode_text(b"".join(kept))


def _rows(note: Note) -> list[str]:
    return [parser.decode_text(row) for row in _data(note).splitlines()]


def _stands(text: str, quote: str) -> bool:
    whole, at = _plain(text), 0
    for part in _GAP.split(quote.strip().strip(".,;:!?")):
        wanted = _plain(part)
        found = whole.find(wanted, at)
        if found < 0:
            return False
        at = found + len(wanted)
    return True


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFC", text).translate(_PLAIN)
    return " ".join(_MARKS.sub("", folded).split()).casefold()


def _elsewhere(passage: Passage, quote: str) -> str:
    rows = _rows(passage.note)
    for size in (1, 2, 3):
        for begin in range(len(rows) - size + 1):
            if _stands("\n".join(rows[begin : begin + size]), quote):
                return (
                    f"it stands in lines {begin + 1}-{begin + size}" if size > 1 else f"it stands in line {begin + 1}"
                )
    return "it stands nowhere in that note"
