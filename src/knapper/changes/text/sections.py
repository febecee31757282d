"""Change what a heading owns: replace it, or put text at its start or end."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

from rapidfuzz import fuzz, process

from knapper.changes.text import splices
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.vault.outline import Section

Heading = str | Sequence[str]
"""``## Title``, ``Title`` where it stands once, or a path: ``# A > ## B``, or a list of its parts."""

_SIGNS: Final = re.compile(r"(#*)[ \t]*(.*?)(?:[ \t]+#+)?[ \t]*", re.DOTALL)
_STEP: Final = re.compile(r"\s+>\s+")
_MAX_LEVEL: Final = 6
_SHOWN: Final = 5
_LEAST_RATIO: Final = 50
_LIST_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    level: int
    """0 for any."""
    title: str
    """Folded."""


def find(snapshot: Snapshot, heading: Heading, *, strict: bool = False) -> Section:
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
    asked = heading if isinstance(heading, str) else " > ".join(heading)
    whole = [heading] if isinstance(heading, str) else list(heading)
    found = _matches(snapshot, _steps(whole, strict=strict))
    if not found and isinstance(heading, str) and len(parts := _STEP.split(heading.strip())) > 1:
        found = _matches(snapshot, _steps(parts, strict=strict))
    if not found:
        raise _missing(snapshot, asked)
    if len(found) > 1:
        raise _several(asked, found)
    return found[0][0]


def _steps(parts: Sequence[str], *, strict: bool) -> list[_Step]:
    steps: list[_Step] = []
    for part in parts:
        match = _SIGNS.fullmatch(part.strip())
        signs, title = (match[1], match[2]) if match else ("", part)
        if not part.strip() or len(signs) > _MAX_LEVEL:
            hint = "Write it as in the note, such as '## Title'."
            raise BadInput(f"{part!r} is no heading.", hint=hint, code="invalid_heading")
        if strict and not signs:
            hint = f"Write its level too, such as '## {title}'."
            message = f"Invalid heading format: {part!r} has no # prefix."
            raise BadInput(message, hint=hint, code="invalid_heading")
        steps.append(_Step(level=len(signs), title=_folded(title)))
    if not steps:
        raise BadInput("No heading is named.", hint="Write it as in the note.", code="invalid_heading")
    return steps


def _folded(title: str) -> str:
    return " ".join(normalize("NFC", title).split()).casefold()


def _with_ancestors(snapshot: Snapshot) -> Iterator[tuple[Section, ...]]:
    """Go through the sections, each followed by those it lies in, from the inside out."""
    path: list[Section] = []
    for section in snapshot.outline.sections:
        if section.level:
            while path and path[-1].level >= section.level:
                _ = path.pop()
            path.append(section)
            yield tuple(reversed(path))


def _matches(snapshot: Snapshot, steps: Sequence[_Step]) -> list[tuple[Section, ...]]:
    return [chain for chain in _with_ancestors(snapshot) if _fits(chain, steps)]


def _fits(chain: Sequence[Section], steps: Sequence[_Step]) -> bool:
    if not _is(chain[0], steps[-1]):
        return False
    outer = iter(chain[1:])
    return all(any(_is(section, step) for section in outer) for step in reversed(steps[:-1]))


def _is(section: Section, step: _Step) -> bool:
    return step.level in {0, section.level} and _folded(section.title) == step.title


def label(section: Section) -> str:
    """Write a section's heading: ``## Title``."""
    return f"{'#' * section.level} {section.title}".rstrip()


def _missing(snapshot: Snapshot, asked: str) -> NotFound:
    found = {section.start: label(section) for section in snapshot.outline.sections if section.level}
    by_start = {section.start: section.line for section in snapshot.outline.sections}
    near = process.extract(asked, found, scorer=fuzz.WRatio, score_cutoff=_LEAST_RATIO, limit=_SHOWN)
    starts = [start for _, _, start in near] or list(found)[:_SHOWN]
    names = [f"'{found[start]}' (line {by_start[start]})" for start in starts]
    hint = "The note has no headings."
    if names:
        hint = f"{'Nearest' if near else 'The first headings are'}: {', '.join(names)}."
    details: dict[str, object] = {"headings": [found[start] for start in starts]}
    return NotFound(f"There is no heading {asked!r}.", hint=hint, code="heading_not_found", details=details)


def _several(asked: str, found: Sequence[tuple[Section, ...]]) -> Ambiguous:
    rows = [chain[0].line for chain in found]
    paths = [" > ".join(label(section) for section in reversed(chain)) for chain in found]
    named = [f"'{path}' (line {row})" for path, row in zip(paths, rows, strict=True)]
    hint = f"Name one of them by its path: {'; '.join(named)}."
    if len(set(paths)) < len(paths):
        hint = "Their paths are the same, so change it by line numbers."
    message = f"The heading {asked!r} stands {len(rows)} times, in lines {', '.join(map(str, rows))}."
    return Ambiguous(message, hint=hint, code="heading_ambiguous", details={"lines": rows, "paths": paths})


def replace(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Replace a whole section, heading included, by text that may begin with a heading or not.

    Blank lines between the section and the next heading stay, and the heading never comes to stand twice in a row.
    Empty text takes the section away with those blank lines.

    Raises:
        BadInput: Nothing would change, or as for `find`.
    """
    section = find(snapshot, heading, strict=strict)
    if not content.strip():
        return Splice(start=section.start, stop=section.stop, new=b"")
    rest = _without_heading(section, content)
    if rest != content and _without_heading(section, rest) != rest:
        content = rest
    stop = _text_stop(snapshot, section)
    return _changed(snapshot, section, snapshot.rewrite(section.start, stop, content.strip("\r\n")))


def replace_body(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Replace what stands below a heading, inner sections included, and keep the heading.

    A heading that *content* repeats in its first line is left out, so that it doesn't stand twice.

    Raises:
        BadInput: Nothing would change, or as for `find`.
    """
    section = find(snapshot, heading, strict=strict)
    text = _without_heading(section, content).strip("\r\n")
    start, stop = _body_text(snapshot, section)
    if start == stop:
        if not text:
            hint = "Nothing has to be done."
            raise BadInput(f"Nothing would change: {label(section)!r} is empty.", hint=hint, code="no_change")
        return snapshot.put_lines(section.body_start, text, rank=splices.BELOW)
    return _changed(snapshot, section, snapshot.rewrite(start, stop, text))


def append(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Put text at a section's end, inner sections included, with a blank line before it.

    A blank line stays, or comes, between the text and the next heading.

    Raises:
        BadInput: There is no text, or as for `find`.
    """
    section = find(snapshot, heading, strict=strict)
    text = _text(section, content)
    last = snapshot.lines.number(max(section.start, _text_stop(snapshot, section) - 1))
    at = snapshot.line(last)[2]
    followed = at < len(snapshot.raw) and at == section.stop
    return snapshot.put_lines(at, f"\n{text}\n" + "\n" * followed, rank=splices.SECTION - section.level)


def prepend(snapshot: Snapshot, heading: Heading, content: str, *, strict: bool = False) -> Splice:
    """Put text right below a heading.

    A blank line keeps it apart from a paragraph that follows; a list goes on with list items.

    Raises:
        BadInput: There is no text, or as for `find`.
    """
    section = find(snapshot, heading, strict=strict)
    text = _text(section, content)
    following = snapshot.decode(section.body_start, snapshot.lines.stop(section.body_start))
    items = _LIST_ITEM.match(following) and _LIST_ITEM.match(text.splitlines()[-1])
    apart = section.body_start < section.stop and bool(following.strip()) and not items
    return snapshot.put_lines(section.body_start, f"{text}\n" + "\n" * apart, rank=splices.BELOW)


def after_frontmatter(snapshot: Snapshot, content: str) -> Splice:
    """Put text at a note's beginning: after the frontmatter and a blank line, and before another blank line.

    Raises:
        BadInput: There is no text.
    """
    text = _text(None, content)
    at = snapshot.outline.body_start
    before = "\n" if snapshot.outline.frontmatter else ""
    rest = snapshot.raw[at:]
    apart = bool(rest) and not (before and rest.startswith((b"\n", b"\r")))
    return snapshot.put_lines(at, f"{before}{text}\n" + "\n" * apart, rank=splices.START)


def append_to_file(snapshot: Snapshot, content: str) -> Splice:
    """Put text at a note's end.

    Raises:
        BadInput: There is no text.
    """
    return snapshot.put_lines(len(snapshot.raw), _text(None, content) + "\n", rank=splices.END)


def _text(section: Section | None, content: str) -> str:
    text = (_without_heading(section, content) if section else content).strip("\r\n")
    if not text.strip():
        raise BadInput("There is no text to insert.", hint="Give the text in content.", code="no_change")
    return text


def _without_heading(section: Section, content: str) -> str:
    """Leave out the section's own heading where text repeats it in its first line."""
    bare = content.lstrip("\r\n")
    first, _, rest = bare.partition("\n")
    match = _SIGNS.fullmatch(first.strip())
    if match and len(match[1]) == section.level and _folded(match[2]) == _folded(section.title):
        return rest
    return content


def _text_stop(snapshot: Snapshot, section: Section) -> int:
    """Find the end of a section's last line that isn't blank, without its line ending."""
    last = snapshot.lines.number(max(section.start, section.stop - 1))
    while snapshot.line(last)[0] > section.start and snapshot.is_blank(last):
        last -= 1
    return max(snapshot.line(last)[1], section.start)


def _body_text(snapshot: Snapshot, section: Section) -> tuple[int, int]:
    """Find what stands below a heading without blank lines around it; an empty span where nothing does."""
    stop = _text_stop(snapshot, section)
    if stop <= section.body_start:
        return section.body_start, section.body_start
    number = snapshot.lines.number(section.body_start)
    while snapshot.is_blank(number):
        number += 1
    return snapshot.line(number)[0], stop


def _changed(snapshot: Snapshot, section: Section, splice: Splice) -> Splice:
    splices.ensure_change(snapshot.raw, [splice], f"the section {label(section)!r} holds this text already")
    return splice
