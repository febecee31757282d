"""Rename what links point at inside a note: headings and block ids. The links themselves are others' work."""

import re
from collections.abc import Sequence
from typing import Final

from knapper.changes.text import sections, splices
from knapper.changes.text.sections import Heading
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.vault import parser
from knapper.vault.outline import BlockId, Section

_ATX: Final = re.compile(rb"[ \t]*#{1,6}(?P<gap>[ \t]*)")
_TAIL: Final = re.compile(rb"(?:[ \t]+#+)?(?:[ \t]+\^[A-Za-z0-9-]+)?[ \t]*\Z")
_ID: Final = re.compile(r"[A-Za-z0-9-]+")


def rename_heading(snapshot: Snapshot, heading: Heading, title: str) -> Splice:
    """Give a heading another text; its level, closing signs and block id stay.

    Args:
        snapshot: The note.
        heading: As for `sections.find`.
        title: The new text, without ``#`` signs.

    Raises:
        BadInput: *title* is empty, has several lines, can't be a heading's text, or is the same.
        NotFound: There is no such heading.
        Ambiguous: The heading stands several times.
    """
    section = sections.find(snapshot, heading)
    text = title.strip()
    if not text or len(text.splitlines()) > 1:
        raise BadInput(f"{title!r} can't be a heading's text.", hint="Give one line.", code="invalid_heading")
    splice = _title(snapshot, section, text)
    splices.ensure_change(snapshot.raw, [splice], "the heading has this text")
    _check(snapshot, section, splice, text)
    return splice


def _title(snapshot: Snapshot, section: Section, text: str) -> Splice:
    """Find a heading's text: after the signs, or all lines above a setext heading's underline."""
    start, first_stop, _ = snapshot.line(section.line)
    atx = _ATX.match(snapshot.raw, start, first_stop)
    last = snapshot.lines.number(section.body_start - 1)
    stop = first_stop if last == section.line else snapshot.line(last - 1)[1]
    lead = b""
    if atx and last == section.line:
        start = atx.end()
        lead = b"" if atx["gap"] else b" "
    row = snapshot.raw[start:stop]
    tail = _TAIL.search(row)
    stop = start + (tail.start() if tail else len(row))
    return Splice(start=start, stop=stop, new=lead + snapshot.encode(text, start))


def _check(snapshot: Snapshot, section: Section, splice: Splice, text: str) -> None:
    """Read the note again: there has to be one heading at the place, of the level and with the text."""
    after = parser.parse_note(splices.merge(snapshot.raw, [splice]))
    there = [other for other in after.sections if other.start == section.start and other.level == section.level]
    if len(after.sections) != len(snapshot.outline.sections) or not there or there[0].title != text:
        hint = "Leave out signs at its ends, such as # and ^, and what begins another block."
        raise BadInput(f"{text!r} can't be the text of this heading.", hint=hint, code="invalid_heading")


def rename_block(snapshot: Snapshot, old: str, new: str) -> Splice:
    """Give a block another id.

    Args:
        snapshot: The note.
        old: The id, with or without ``^``.
        new: The new one.

    Raises:
        BadInput: *new* holds other than letters, digits and ``-``, or is the id of another block.
        NotFound: There is no such id; the hint lists those that are.
        Ambiguous: It stands several times.
    """
    old, new = old.strip().removeprefix("^"), new.strip().removeprefix("^")
    if not _ID.fullmatch(new):
        raise BadInput(f"{new!r} can't be a block's id.", hint="Use letters, digits and -.", code="invalid_block_id")
    block = find_block(snapshot.outline.block_ids, old)
    other = [one for one in snapshot.outline.block_ids if one is not block and one.name.casefold() == new.casefold()]
    if other:
        raise BadInput(f"Line {other[0].line} has the id ^{new} already.", hint="Choose another.", code="exists")
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
    found = [one for one in ids if one.name.casefold() == name.casefold()]
    if not found:
        names = ", ".join(f"^{one.name}" for one in ids[:10])
        hint = f"The note has {names}." if names else "The note has no block ids."
        raise NotFound(f"There is no block ^{name}.", hint=hint, code="block_not_found")
    if len(found) > 1:
        rows = [one.line for one in found]
        message = f"The block id ^{name} stands {len(rows)} times, in lines {', '.join(map(str, rows))}."
        raise Ambiguous(message, hint="Change one of them as text.", code="block_ambiguous", details={"lines": rows})
    return found[0]
