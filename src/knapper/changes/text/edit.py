"""Put new text in the place of old text, wherever in the note that stands."""

import re
from dataclasses import dataclass
from typing import Final

from knapper.changes.text import passages, splices, variants
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import Ambiguous, BadInput, NotFound

_MAX_PLACES: Final = 1_000
_LISTED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Hold what an edit does, and how its text was found."""

    splices: tuple[Splice, ...]
    lines: tuple[int, ...]
    """Where each match begins."""
    normalised: bool = False
    """True where the text stands in the note only in another spelling of quotes, dashes, white space or accents."""
    differences: tuple[str, ...] = ()
    """What of that differed, such as ``("quotes",)``."""


def replace(snapshot: Snapshot, old: str, new: str, *, count: int = 1) -> Edit:
    """Replace *old* by *new* where it stands exactly *count* times.

    Where it doesn't stand as given, text that differs only in quotes, dashes, white space, line endings or composed
    letters is taken, and reported. The new text gets the note's line endings.

    Raises:
        BadInput: *old* is empty, *count* is below 1, matches overlap, or nothing would change.
        NotFound: Nothing matches; the hint shows the passage most like it.
        Ambiguous: It stands more or fewer times than *count*; ``details`` has the lines.
    """
    if not old:
        raise BadInput("The old text is empty.", hint="Use the position start or end to add text.")
    if count < 1:
        raise BadInput(f"count is {count}.", hint="Give how many times the old text stands in the note.")
    if old == new:
        hint = "Give another new text."
        raise BadInput("Nothing would change: old and new text are the same.", hint=hint, code="no_change")
    places = _exact(snapshot, old)
    normalised = not places
    if normalised:
        places = _loose(snapshot, old)
    if not places:
        raise _missing(snapshot, old)
    if len(places) != count:
        raise _several(snapshot, places, count)
    made = tuple(snapshot.rewrite(start, stop, new) for start, stop in places)
    splices.ensure_change(snapshot.raw, made, "the note holds the new text already")
    _ = splices.order(snapshot.raw, made)
    found = snapshot.decode(*places[0])
    return Edit(
        splices=made,
        lines=tuple(snapshot.lines.number(start) for start, _ in places),
        normalised=normalised,
        differences=variants.differences(old, found) if normalised else (),
    )


def _exact(snapshot: Snapshot, old: str) -> list[tuple[int, int]]:
    """Find each place, those that overlap included."""
    try:
        wanted = old.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"The old text holds half a character at position {error.start}.") from None
    places: list[tuple[int, int]] = []
    at = snapshot.raw.find(wanted)
    while at >= 0 and len(places) < _MAX_PLACES:
        places.append((at, at + len(wanted)))
        at = snapshot.raw.find(wanted, at + 1)
    return places


def _loose(snapshot: Snapshot, old: str) -> list[tuple[int, int]]:
    try:
        wanted = variants.pattern(old)
    except BadInput:  # too long or blank: then only the exact text counts
        return []
    places: list[tuple[int, int]] = []
    at: re.Match[bytes] | None = wanted.search(snapshot.raw)
    while at and len(places) < _MAX_PLACES:
        places.append(at.span())
        at = wanted.search(snapshot.raw, at.start() + 1)
    # A run of spaces can be entered at each of its spaces; matches with one end are one place.
    return list({stop: (start, stop) for start, stop in reversed(places)}.values())[::-1]


def _missing(snapshot: Snapshot, old: str) -> NotFound:
    passage = passages.nearest(snapshot, old)
    message = "The old text doesn't stand in the note."
    if passage is None:
        return NotFound(message, hint="Read the note, and copy the text from there.", code="text_not_found")
    where = f"line {passage.first}" if passage.first == passage.last else f"lines {passage.first}-{passage.last}"
    told = f", which has {passage.note_part!r} where you gave {passage.asked_part!r}"
    hint = f"Most like it is {where}{told if passage.note_part and passage.asked_part else ''}."
    nearest = {"start_line": passage.first, "end_line": passage.last, "text": passage.text}
    return NotFound(message, hint=hint, code="text_not_found", details={"nearest": nearest})


def _several(snapshot: Snapshot, places: list[tuple[int, int]], count: int) -> Ambiguous:
    rows = [snapshot.lines.number(start) for start, _ in places]
    listed = ", ".join(map(str, rows[:_LISTED])) + (", …" if len(rows) > _LISTED else "")
    times = "once" if len(rows) == 1 else f"{len(rows)} times"
    message = f"The old text stands {times}, in lines {listed}, and not {count} times."
    if count == 1:
        message = f"The old text stands {times}, in lines {listed}."
    all_of_it = f"give the number of matches expected, {len(rows)}, to change all"
    hint = f"Add text around it until it stands once, or {all_of_it}."
    return Ambiguous(message, hint=hint, code="text_ambiguous", details={"lines": rows})
