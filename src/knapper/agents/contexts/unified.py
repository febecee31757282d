"""Write notes as one text with line numbers and the reason for each, within a limit of tokens."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from knapper.agents import untrusted
from knapper.agents.contexts.records import ContextNote, NoteSelectionMetadata
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.vault import parser, pending
from knapper.vault.paths import NotePath

LEAST_TOKENS: Final = 3_000
_CHARS: Final = 4
"""Characters of a token, roughly."""
_WIDE: Final = re.compile("[\u2e80-\U0010ffff]+")
"""Scripts of which each character is a token."""
_CUT: Final = "… (the rest of this note isn't shown: the token limit is reached)"
_CUT_LINE: Final = " … (the rest of this line isn't shown)"
_HEAD: Final = 100
"""Tokens of the room for a single note that are kept for what stands above and below it."""
_LONG: Final = 200
"""Tokens from which on the beginning of a line is shown where there is no room for all of it."""
_LEAST: Final = 20
"""Tokens of a line below which its beginning isn't worth showing."""
_HALF_ESCAPE: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-f]{0,3})?$")
"""What a cut leaves of a character that is written as several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedContext:
    """Hold what a model is given of the vault."""

    text: str = field(repr=False)
    """Blocks of notes; empty where there are none."""
    notes: tuple[ContextNote, ...]
    """Those in it, as they were read."""
    removed: tuple[NoteSelectionMetadata, ...]
    """Those that the limit took out, the first to go first."""
    cut: NotePath | None
    """The note of which only the beginning is shown."""
    whole_lines: int = 0
    """How many lines of that note are shown to their end."""
    tokens: int
    notices: tuple[str, ...]
    """What the person should know: what was taken out, what can't be read."""
    sizes: Mapping[NotePath, int] = field(default_factory=dict[NotePath, int])
    """Tokens of each note that was read, as it stands in the text, or would."""

    @property
    def paths(self) -> frozenset[NotePath]:
        """Name the notes in it."""
        return frozenset(one.note.path for one in self.notes)

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it, without the notes' text."""
        removed: list[JSONValue] = [
            {"path": one.path, "source": one.source, "why": one.why(), "tokens": self.sizes.get(one.path)}
            for one in self.removed
        ]
        chosen: list[JSONValue] = [
            {**one.why.as_dict(), "tokens": self.sizes.get(one.note.path, 0)} for one in self.notes
        ]
        notices: list[JSONValue] = [*self.notices]
        return {"notes": chosen, "removed": removed, "tokens": self.tokens, "notices": notices}


def build(
    found: Sequence[ContextNote],
    *,
    limit: int,
    mark: str,
    problems: Sequence[str] = (),
    unread: Sequence[NoteSelectionMetadata] = (),
) -> UnifiedContext:
    """Write notes as one text.

    Where it is too long, notes go: those that were added by hand first, then those found by exploring, of the same
    folder, reached by links, and the open one last; within a kind those that say least for themselves first. Of a
    single one that is too long the beginning stays.

    Args:
        found: The notes, in order.
        limit: Tokens at most, 3,000 or more.
        mark: That of the turn's blocks.
        problems: What couldn't be read.
        unread: Notes that weren't read, as there is no room for them; they rank after all others.

    Raises:
        BadInput: The limit is too low.
    """
    check_limit(limit)
    shown = {one.note.path: _block(one, mark, numbered(parser.decode_text(one.note.raw))) for one in found}
    sizes = {path: tokens(text) for path, text in shown.items()}
    total, gone = sum(sizes.values()), dict[NotePath, NoteSelectionMetadata]()
    for one in sorted(found, key=lambda one: one.why.rank, reverse=True):
        if total <= limit or len(gone) == len(found) - 1:
            break
        gone[one.note.path] = one.why
        total -= sizes[one.note.path]
    kept = [one for one in found if one.note.path not in gone]
    removed = [*sorted(unread, key=lambda one: one.rank, reverse=True), *gone.values()]
    cut, whole, told = None, 0, _notices(removed, limit)
    if kept and total > limit:
        cut = kept[0].note.path
        beginning = _beginning(numbered(parser.decode_text(kept[0].note.raw)), limit - _HEAD)
        shown[cut], whole = _block(kept[0], mark, beginning.lines), len(beginning.whole)
        told.append(beginning.notice(cut, limit))
        sizes[cut] = tokens(shown[cut])
    text = "\n\n".join(shown[one.note.path] for one in kept)
    return UnifiedContext(
        text=text,
        notes=tuple(kept),
        removed=tuple(removed),
        cut=cut,
        whole_lines=whole,
        tokens=tokens(text),
        notices=(*problems, *told),
        sizes=sizes,
    )


def check_limit(limit: int) -> None:
    """Refuse a limit that leaves no room.

    Raises:
        BadInput: It is too low.
    """
    if limit < LEAST_TOKENS:
        raise BadInput(f"the token limit is {limit:,}", hint=f"give {LEAST_TOKENS:,} or more", code="token_limit")


def tokens(text: str) -> int:
    """Estimate how many tokens a text is: characters by four, and more for scripts that need more."""
    wide = 0 if text.isascii() else sum(map(len, _WIDE.findall(text)))
    return (len(text) - wide + _CHARS - 1) // _CHARS + wide


def numbered(text: str) -> list[str]:
    """Begin each line with its number in the file: ``12: text``; lines are escaped as in a JSON string."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if rows and not rows[-1]:
        rows.pop()
    return [f"{number}: {untrusted.escape(row)[1:-1]}" for number, row in enumerate(rows, 1)]


def _block(one: ContextNote, mark: str, lines: Sequence[str]) -> str:
    head = f"note: {untrusted.escape(str(one.note.path))}\nwhy: {one.why.why()}"
    if one.why.reason:
        head += f"\nchosen because: {untrusted.escape(one.why.reason)}"
    if one.foreign:
        head += "\nothers wrote this"
    waiting = [
        f"\nlines {block.line}-{block.line + _rows(one, block)}: an edit that waits for the person's word "
        f"({block.kind or 'damaged'}, id {untrusted.escape(block.id)})"
        for block in pending.find_pending(one.note.raw, one.note.outline)
    ]
    return untrusted.enclose("note", head + "".join(waiting) + "\n\n" + "\n".join(lines), mark)


def _rows(one: ContextNote, block: pending.PendingBlock) -> int:
    return one.note.raw[block.start : block.tag_stop].count(b"\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginning:
    """Hold what there is room for of a note that is too long."""

    whole: Sequence[str] = ()
    part: str = ""
    """Of the line that comes next; empty where none of it is shown."""

    @property
    def lines(self) -> list[str]:
        return [*self.whole, *filter(None, [self.part]), _CUT]

    def notice(self, path: NotePath, limit: int) -> str:
        within = "within " if self.part else ""
        start = f"{within}line {len(self.whole) + 1}"
        return f"the token limit of {limit:,} leaves out the end of {path}, from {start} on"


def _beginning(lines: Sequence[str], room: int) -> _Beginning:
    whole: list[str] = []
    for line in lines:
        size = tokens(line) + 1
        if size > room:
            return _Beginning(whole=whole, part=_shortened(line, room) if size > _LONG else "")
        room -= size
        whole.append(line)
    return _Beginning(whole=whole)


def _shortened(line: str, room: int) -> str:
    """Cut a line, between two words where there is one near the end; empty where there is no room for any of it."""
    room -= tokens(_CUT_LINE)
    if room < _LEAST:
        return ""
    start = line[: bisect_right(range(len(line)), room, key=lambda last: tokens(line[: last + 1]))]
    words, _, rest = start.rpartition(" ")
    return (words if len(rest) < len(start) // 4 else _HALF_ESCAPE.sub(r"\1", start)) + _CUT_LINE


def _notices(removed: Sequence[NoteSelectionMetadata], limit: int) -> list[str]:
    if not removed:
        return []
    names = ", ".join(f"{one.path} ({one.source})" for one in removed[:10])
    more = f" and {len(removed) - 10} more" if len(removed) > 10 else ""
    return [f"the token limit of {limit:,} leaves out {len(removed)} notes: {names}{more}"]
