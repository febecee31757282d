"""Find the passage of a note that is most like a text that isn't there."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from rapidfuzz import fuzz, process

from knapper.changes.text.snapshots import Snapshot

_MAX_BYTES: Final = 4_000_000
_CANDIDATES: Final = 5
_LEAST_RATIO: Final = 55
_LONGEST_ASKED: Final = 4_000
_SHOWN: Final = 400
_SHOWN_DIFFERENCE: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Hold lines that are like what was looked for."""

    first: int
    last: int
    text: str
    """Cut where it is long."""
    ratio: float
    """0 to 100."""
    asked_part: str
    """Where the two first differ: the text asked for; empty where the note has more."""
    note_part: str


def nearest(snapshot: Snapshot, asked: str) -> Passage | None:
    """Find the lines most like *asked*; None where nothing is like it, or the note is very large.

    Args:
        snapshot: The note.
        asked: The text that wasn't found.
    """
    rows = asked.strip("\r\n")[:_LONGEST_ASKED].splitlines()
    if len(snapshot.raw) > _MAX_BYTES or not any(row.strip() for row in rows):
        return None
    texts = [snapshot.decode(*snapshot.line(number)[:2]) for number in range(1, snapshot.count + 1)]
    key = max(range(len(rows)), key=lambda index: len(rows[index].strip()))
    near = process.extract(
        rows[key], texts, scorer=fuzz.partial_ratio, score_cutoff=_LEAST_RATIO, limit=_CANDIDATES, processor=str.strip
    )
    best: Passage | None = None
    for _, _, index in near:
        first = max(0, index - key)
        passage = _compared("\n".join(rows), texts[first : first + len(rows)], first + 1)
        if best is None or passage.ratio > best.ratio:
            best = passage
    return best if best and best.ratio >= _LEAST_RATIO else None


def _compared(asked: str, rows: list[str], first: int) -> Passage:
    text = "\n".join(rows)
    shown, ratio = text, fuzz.ratio(asked, text)
    if len(text) > len(asked) and (part := fuzz.partial_ratio_alignment(asked, text)) and part.score > ratio:
        shown, ratio = text[part.dest_start : part.dest_end], part.score
    asked_part, note_part = _difference(asked, shown)
    return Passage(
        first=first,
        last=first + len(rows) - 1,
        text=text[:_SHOWN],
        ratio=ratio,
        asked_part=asked_part,
        note_part=note_part,
    )


def _difference(asked: str, found: str) -> tuple[str, str]:
    for tag, a, b, c, d in SequenceMatcher(None, asked[:_SHOWN], found[:_SHOWN], autojunk=False).get_opcodes():
        if tag != "equal":
            return asked[a:b][:_SHOWN_DIFFERENCE], found[c:d][:_SHOWN_DIFFERENCE]
    return "", ""
