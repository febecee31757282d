"""Replacement of text in a note, with loose matching and the nearest passage, and composition of a new note."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final
from unicodedata import combining, normalize

from knapper.changes.text import properties, splices
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.jsontypes import JSONValue

_MAX_CHARACTERS: Final = 20_000
_SINGLE: Final = "'\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4"
_DOUBLE: Final = '"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb'
_DASHES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_SPACES: Final = " \t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DOTS: Final = ("\u2026", "...")
_ENDING: Final = rb"(?:\r\n|\r|\n)"
_TOKEN: Final = re.compile(rf"\r\n|\r|\n|[{_SPACES}]+|\u2026|\.\.\.|.[\u0300-\u036f]*", re.DOTALL)
_TRAILING: Final = re.compile(rf"(?<![{_SPACES}])[{_SPACES}]+(?=[\r\n]|\Z)")


def loose_pattern(text: str) -> re.Pattern[bytes]:
    """Return a pattern that matches *text*, and text that differs from it only in easily mistaken ways.

    Curly and straight quotes, dashes, runs of spaces of any kind, spaces at line ends, line endings, the ellipsis,
    composed and decomposed letters each match the other. No match begins within a run of spaces.

    Raises:
        BadInput: The text is too long for that, or only white space.
    """
    if len(text) > _MAX_CHARACTERS or not text.strip():
        raise BadInput("the old text can't be compared loosely: it is blank or very long")
    tokens: list[str] = _TOKEN.findall(_TRAILING.sub("", text))
    # Tried from each space of a long run, a pattern that begins with spaces would take the square of its length.
    return re.compile((_AFTER_NO_SPACE if tokens[0][0] in _BLANK else b"") + b"".join(map(_token_pattern, tokens)))


def _token_pattern(token: str) -> bytes:
    if token[0] in "\r\n":
        return b"(?:" + _any_of(_SPACES) + b")*" + _ENDING
    if token[0] in _SPACES:
        return b"(?:" + _any_of(_SPACES) + b")+"
    if token in _DOTS:
        return _any_of(_DOTS)
    for kind in (_SINGLE, _DOUBLE, _DASHES):
        if token in kind:
            return _any_of(kind)
    return _any_of(sorted({token, normalize("NFC", token), normalize("NFD", token)}))


def _any_of(options: Iterable[str]) -> bytes:
    alternatives = [re.escape(option.encode(errors="surrogatepass")) for option in options]
    return alternatives[0] if len(alternatives) == 1 else b"(?:" + b"|".join(alternatives) + b")"


_BLANK: Final = _SPACES + "\r\n"
_AFTER_NO_SPACE: Final = b"".join(b"(?<!" + _any_of(space) + b")" for space in _SPACES)


def spelling_differences(asked: str, found: str) -> tuple[str, ...]:
    """Return in which ways two texts that match loosely are written differently."""
    kinds = {
        "line endings": (_line_endings(asked), _line_endings(found)),
        "quotes": (_characters_of(asked, _SINGLE + _DOUBLE), _characters_of(found, _SINGLE + _DOUBLE)),
        "dashes": (_characters_of(asked, _DASHES), _characters_of(found, _DASHES)),
        "spaces": (_space_runs(asked), _space_runs(found)),
        "ellipsis": (asked.count(_DOTS[0]), found.count(_DOTS[0])),
        "accents": (_accented_letters(asked), _accented_letters(found)),
    }
    return tuple(name for name, (one, other) in kinds.items() if one != other)


def _line_endings(text: str) -> list[str]:
    return re.findall(r"\r\n|\r|\n", text)


def _characters_of(text: str, kind: str) -> list[str]:
    return [character for character in text if character in kind]


def _space_runs(text: str) -> list[str]:
    return [part for row in re.split(r"\r\n|\r|\n", text) for part in re.findall(rf"[{_SPACES}]+", row)]


def _accented_letters(text: str) -> list[str]:
    return [character for character in text if combining(character) or normalize("NFD", character) != character]


_MAX_BYTES: Final = 4_000_000
_MAX_CANDIDATES: Final = 5
_LEAST_RATIO: Final = 55
_LONGEST_ASKED: Final = 4_000
_SHOWN_CHARACTERS: Final = 400
_SHOWN_DIFFERENCE: Final = 80
_LONGEST_WORD: Final = 20
"""Longest part of a word that is shown beside a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestPassage:
    """Lines that resemble the text that wasn't found."""

    first: int
    last: int
    text: str
    """Truncated if it is long."""
    ratio: float
    """0 to 100."""
    asked_part: str
    """The wanted words where the two first differ; empty if the note has more words there, or they don't differ."""
    note_part: str
    """The note's words there; empty if it has fewer."""


def find_nearest_passage(snapshot: Snapshot, wanted_text: str) -> NearestPassage | None:
    """Return the lines most like *wanted_text*; None if nothing resembles it, or the note is very large.

    Args:
        snapshot: The note.
        wanted_text: The text that wasn't found.
    """
    rows = wanted_text.strip("\r\n")[:_LONGEST_ASKED].splitlines()
    if len(snapshot.raw) > _MAX_BYTES or not any(row.strip() for row in rows):
        return None
    texts = [snapshot.decode(*snapshot.line(number)[:2]) for number in range(1, snapshot.count + 1)]
    key = max(range(len(rows)), key=lambda index: len(rows[index].strip()))
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - 30 ms that only a text that isn't found should cost

    near = process.extract(
        rows[key],
        texts,
        scorer=fuzz.partial_ratio,
        score_cutoff=_LEAST_RATIO,
        limit=_MAX_CANDIDATES,
        processor=str.strip,
    )
    best: NearestPassage | None = None
    for _, _, index in near:
        first = max(0, index - key)
        passage = _compare_passage("\n".join(rows), texts[first : first + len(rows)], first + 1)
        if best is None or passage.ratio > best.ratio:
            best = passage
    return best if best and best.ratio >= _LEAST_RATIO else None


def _compare_passage(wanted_text: str, rows: list[str], first: int) -> NearestPassage:
    from rapidfuzz import fuzz  # noqa: PLC0415 - as above

    text = "\n".join(rows)
    best_part, ratio = text, fuzz.ratio(wanted_text, text)
    if (
        len(text) > len(wanted_text)
        and (part := fuzz.partial_ratio_alignment(wanted_text, text))
        and part.score > ratio
    ):
        best_part, ratio = text[_word_start(text, part.dest_start) : _word_end(text, part.dest_end)], part.score
    if len(wanted_text.split()) == 1:
        best_part = max(best_part.split(), key=lambda word: fuzz.ratio(wanted_text, word), default="")
    asked_part, note_part = _first_difference(wanted_text, best_part)
    return NearestPassage(
        first=first,
        last=first + len(rows) - 1,
        text=text[:_SHOWN_CHARACTERS],
        ratio=ratio,
        asked_part=asked_part,
        note_part=note_part,
    )


def _first_difference(wanted_text: str, note_text: str) -> tuple[str, str]:
    """Return the whole words of both where they first differ; if one has none there, with the word before."""
    pairs = enumerate(zip(wanted_text, note_text, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(wanted_text), len(note_text)))
    remainders = (wanted_text[same : same + _SHOWN_CHARACTERS], note_text[same : same + _SHOWN_CHARACTERS])
    if not any(remainders):
        return "", ""
    _, _, end, _, note_end = SequenceMatcher(None, *remainders, autojunk=False).get_opcodes()[0]
    ends = (_word_end(wanted_text, same + end), _word_end(note_text, same + note_end))
    start = _word_start(wanted_text, same)
    if not (wanted_text[start : ends[0]].strip() and note_text[start : ends[1]].strip()):
        start = _word_start(wanted_text, len(wanted_text[:start].rstrip()))
    asked_part, note_part = (
        text[start:stop].strip() for text, stop in zip((wanted_text, note_text), ends, strict=True)
    )
    return asked_part[:_SHOWN_DIFFERENCE], note_part[:_SHOWN_DIFFERENCE]


def _word_start(text: str, at: int) -> int:
    """Return where the word before a place begins; some scripts have no spaces, so the distance is limited."""
    least = max(0, at - _LONGEST_WORD)
    while at > least and text[at - 1].isalnum():
        at -= 1
    return at


def _word_end(text: str, at: int) -> int:
    """Return the end of the word that a place is in, or begins."""
    most = min(len(text), at + _LONGEST_WORD)
    while at < most and text[at].isalnum() and (at == 0 or text[at - 1].isalnum()):
        at += 1
    return at


_MAX_PLACES: Final = 1_000
"""Most places that one replacement changes."""
_MAX_LISTED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReplacement:
    """Replacement of text, and how the text was found."""

    splices: tuple[Splice, ...]
    lines: tuple[int, ...]
    """Line in which each match begins."""
    normalised: bool = False
    """True if the note has the text only with other quotes, dashes, white space or accents."""
    differences: tuple[str, ...] = ()
    """What differed, such as ``("quotes",)``."""


def replace_text(snapshot: Snapshot, old: str, new: str, *, count: int = 1) -> TextReplacement:
    """Replace *old* by *new* if it occurs exactly *count* times.

    If it doesn't occur exactly, text that differs only in quotes, dashes, white space, line endings or composed letters
    is replaced, and reported. The new text gets the note's line endings.

    Raises:
        BadInput: *old* is empty, *count* is below 1 or above 1,000, matches overlap, or nothing would change.
        NotFound: Nothing matches; the hint shows the passage most like it.
        Ambiguous: It occurs more or fewer times than *count*; ``details`` has the lines.
    """
    if not old:
        raise BadInput("the old text is empty", hint="use the position start or end to add text")
    if count < 1:
        raise BadInput(f"count is {count}", hint="give how many times the old text occurs in the note")
    if count > _MAX_PLACES:
        hint = "add text around it, so that fewer places match"
        raise BadInput(f"count is {count}, and {_MAX_PLACES:,} are the most at once", hint=hint)
    if old == new:
        hint = "give another new text"
        raise BadInput("nothing would change: old and new text are the same", hint=hint, code="no_change")
    places = _find_exact(snapshot, old)
    normalised = not places
    if normalised:
        places = _find_loose(snapshot, old)
    if not places:
        raise _text_not_found(snapshot, old)
    if len(places) != count:
        rows = [snapshot.lines.line_number(start) for start, _ in places]
        lines = list(dict.fromkeys(rows))
        listed = ", ".join(map(str, lines[:_MAX_LISTED])) + (", …" if len(lines) > _MAX_LISTED else "")
        too_many = len(rows) > _MAX_PLACES
        amount = f"more than {_MAX_PLACES:,}" if too_many else str(len(rows))
        times = "once" if len(rows) == 1 else f"{amount} times"
        message = f"the old text occurs {times}, in {'line' if len(lines) == 1 else 'lines'} {listed}"
        if count != 1:
            message += f", and not {count} times"
        hint = "add text around it until it occurs once"
        if not too_many:
            hint += f", or give the number of matches expected, {len(rows)}, to change all"
        raise Ambiguous(message, hint=hint, code="text_ambiguous", details={"lines": rows})
    new_splices = tuple(snapshot.rewrite(start, stop, new) for start, stop in places)
    splices.ensure_change(snapshot.raw, new_splices, "the note holds the new text already")
    _ = splices.check_order(snapshot.raw, new_splices)
    matched_text = snapshot.decode(*places[0])
    return TextReplacement(
        splices=new_splices,
        lines=tuple(snapshot.lines.line_number(start) for start, _ in places),
        normalised=normalised,
        differences=spelling_differences(old, matched_text) if normalised else (),
    )


def _find_exact(snapshot: Snapshot, old: str) -> list[tuple[int, int]]:
    """Return the span of each occurrence, overlapping ones included; of more than 1,000, the first 1,001."""
    try:
        needle = old.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"the old text holds half a character at position {error.start}") from None
    places: list[tuple[int, int]] = []
    at = snapshot.raw.find(needle)
    while at >= 0 and len(places) <= _MAX_PLACES:
        places.append((at, at + len(needle)))
        at = snapshot.raw.find(needle, at + 1)
    return places


def _find_loose(snapshot: Snapshot, old: str) -> list[tuple[int, int]]:
    try:
        compiled = loose_pattern(old)
    except BadInput:
        # Text that is too long or blank is only matched exactly.
        return []
    starts: dict[int, int] = {}
    at: re.Match[bytes] | None = compiled.search(snapshot.raw)
    while at and len(starts) <= _MAX_PLACES:
        # A line ending can be entered at each of its two bytes; matches with one end are one place.
        _ = starts.setdefault(at.end(), at.start())
        at = compiled.search(snapshot.raw, at.start() + 1)
    return [(start, stop) for stop, start in starts.items()]


def _text_not_found(snapshot: Snapshot, old: str) -> NotFound:
    passage = find_nearest_passage(snapshot, old)
    message = "the old text isn't in the note"
    if passage is None:
        return NotFound(message, hint="read the note, and copy the text from there", code="text_not_found")
    where = f"line {passage.first}" if passage.first == passage.last else f"lines {passage.first}-{passage.last}"
    difference = ""
    if snapshot.outline.encoding == "unknown" and "\ufffd" in passage.text and not old.isascii():
        difference = ", which isn't UTF-8: give only plain letters of it, or convert the file to UTF-8 first"
    elif passage.note_part and passage.asked_part:
        difference = f", which has {passage.note_part!r} where you gave {passage.asked_part!r}"
    hint = f"most like it is {where}{difference}"
    nearest = {"start_line": passage.first, "end_line": passage.last, "text": passage.text}
    return NotFound(message, hint=hint, code="text_not_found", details={"nearest": nearest})


def compose_note(content: str, values: Mapping[str, JSONValue] | None = None) -> bytes:
    r"""Return the bytes of a new note; the text stays as it is.

    ``("# A\n", {"tags": ["x"]})`` gives ``---``, ``tags:``, ``  - x``, ``---`` and ``# A``, a line each.

    Args:
        content: The text; it may begin with frontmatter of its own, to which the properties are added.
        values: The properties, in the order in which they are to be written.

    Raises:
        BadInput: The text holds half a character, its own frontmatter is invalid, or a name can't be a property's.
    """
    try:
        raw = content.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"the text holds half a character at position {error.start}") from None
    for key, value in (values or {}).items():
        note = splices.take_snapshot(raw)
        present_values = properties.read_values(note)
        if key not in present_values or not properties.same_value(present_values[key], value):
            raw = splices.merge(raw, properties.set_property(note, key, value).splices)
    return raw
