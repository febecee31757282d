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
_LONGEST_WORD: Final = 20
"""Characters that are shown beside a difference."""


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
    """The words in which the two first differ: those asked for. Empty where the note has more, or none were found."""
    note_part: str
    """Those of the note; empty where it has fewer."""


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
        shown, ratio = text[_word_start(text, part.dest_start) : _word_end(text, part.dest_end)], part.score
    if len(asked.split()) == 1:
        shown = max(shown.split(), key=lambda word: fuzz.ratio(asked, word), default="")
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
    """Give whole words of both where they first differ; where one has none there, the word before, too."""
    pairs = enumerate(zip(asked, found, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(asked), len(found)))
    rest = (asked[same : same + _SHOWN], found[same : same + _SHOWN])
    if not any(rest):
        return "", ""
    _, _, end, _, found_end = SequenceMatcher(None, *rest, autojunk=False).get_opcodes()[0]
    ends = (_word_end(asked, same + end), _word_end(found, same + found_end))
    start = _word_start(asked, same)
    if not (asked[start : ends[0]].strip() and found[start : ends[1]].strip()):
        start = _word_start(asked, len(asked[:start].rstrip()))
    asked_part, note_part = (text[start:stop].strip() for text, stop in zip((asked, found), ends, strict=True))
    return asked_part[:_SHOWN_DIFFERENCE], note_part[:_SHOWN_DIFFERENCE]


def _word_start(text: str, at: int) -> int:
    """Go back to where the word before a place begins; some scripts have no spaces, so not too far."""
    least = max(0, at - _LONGEST_WORD)
    while at > least and text[at - 1].isalnum():
        at -= 1
    return at


def _word_end(text: str, at: int) -> int:
    """Go on to the end of the word that a place is in, or begins."""
    most = min(len(text), at + _LONGEST_WORD)
    while at < most and text[at].isalnum() and (at == 0 or text[at - 1].isalnum()):
        at += 1
    return at
