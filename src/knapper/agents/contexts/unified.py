"""Write notes as one text with line numbers and the reason for each, within a limit of tokens."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from knapper.agents import untrusted
from knapper.agents.contexts.records import ContextNote, NoteSelectionMetadata
from knapper.errors import BadInput
from knapper.vault import notes, pending
from knapper.vault.outline import JSONValue
from knapper.vault.paths import NotePath

LEAST_TOKENS: Final = 3_000
_CHARS: Final = 4
"""Characters of a token, roughly."""
_WIDE: Final = re.compile("[\u2e80-\U0010ffff]+")
"""Scripts of which each character is a token."""
_CUT: Final = "… (the rest of this note isn't shown: the token limit is reached)"


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
    shown = {one.note.path: _block(one, mark) for one in found}
    sizes = {path: tokens(text) for path, text in shown.items()}
    total, gone = sum(sizes.values()), dict[NotePath, NoteSelectionMetadata]()
    for one in sorted(found, key=lambda one: one.why.rank, reverse=True):
        if total <= limit or len(gone) == len(found) - 1:
            break
        gone[one.note.path] = one.why
        total -= sizes[one.note.path]
    kept = [one for one in found if one.note.path not in gone]
    removed = [*sorted(unread, key=lambda one: one.rank, reverse=True), *gone.values()]
    cut = None
    if kept and total > limit:
        cut = kept[0].note.path
        shown[cut] = _block(kept[0], mark, limit=limit)
        sizes[cut] = tokens(shown[cut])
    text = "\n\n".join(shown[one.note.path] for one in kept)
    return UnifiedContext(
        text=text,
        notes=tuple(kept),
        removed=tuple(removed),
        cut=cut,
        tokens=tokens(text),
        notices=(*problems, *_notices(removed, cut, limit)),
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


def _block(one: ContextNote, mark: str, *, limit: int = 0) -> str:
    lines = numbered(notes.text(one.note.raw))
    if limit:
        lines = _beginning(lines, limit)
    head = f"note: {untrusted.escape(str(one.note.path))}\nwhy: {one.why.why()}"
    if one.why.reason:
        head += f"\nchosen because: {untrusted.escape(one.why.reason)}"
    if one.foreign:
        head += "\nothers wrote this"
    waiting = [
        f"\nlines {block.line}-{block.line + _rows(one, block)}: an edit that waits for the person's word "
        f"({block.kind or 'damaged'}, id {untrusted.escape(block.id)})"
        for block in pending.find(one.note.raw, one.note.outline)
    ]
    return untrusted.enclose("note", head + "".join(waiting) + "\n\n" + "\n".join(lines), mark)


def _rows(one: ContextNote, block: pending.PendingBlock) -> int:
    return one.note.raw[block.start : block.tag_stop].count(b"\n")


def _beginning(lines: list[str], limit: int) -> list[str]:
    kept: list[str] = []
    left = limit - 100
    for line in lines:
        left -= tokens(line) + 1
        if left < 0:
            break
        kept.append(line)
    return [*kept, _CUT]


def _notices(removed: Sequence[NoteSelectionMetadata], cut: NotePath | None, limit: int) -> list[str]:
    told: list[str] = []
    if removed:
        names = ", ".join(f"{one.path} ({one.source})" for one in removed[:10])
        more = f" and {len(removed) - 10} more" if len(removed) > 10 else ""
        told.append(f"the token limit of {limit:,} leaves out {len(removed)} notes: {names}{more}")
    if cut is not None:
        told.append(f"the token limit of {limit:,} leaves out the end of {cut}")
    return told
