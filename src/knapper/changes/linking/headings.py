"""Follow the headings that a link names into a note, and name a section so that a link finds it."""

import re
from collections.abc import Sequence
from typing import Final

from knapper.vault import links
from knapper.vault.outline import Section

_NOT_IN_LINK: Final = re.compile(r"[:#|^\\\[\]\r\n]|%%")


def find(wanted: Sequence[str], sections: Sequence[Section]) -> tuple[int, ...]:
    """Find the section that a link means: the first with the last heading that lies below the ones named before it.

    ``("A", "C")`` finds ``# A > ## B > ### C``: headings between may be left out.

    Args:
        wanted: The link's headings, outermost first.
        sections: The note's, in order.

    Returns:
        The place of each named heading's section, the last one that of the section itself; empty where none fits.
    """
    keys = [links.heading_key(heading) for heading in wanted]
    path: list[int] = []
    for number, section in enumerate(sections):
        if not section.level:
            continue
        while path and sections[path[-1]].level >= section.level:
            _ = path.pop()
        path.append(number)
        found = _chain(keys, path, sections)
        if found:
            return found
    return ()


def _chain(keys: Sequence[str], path: Sequence[int], sections: Sequence[Section]) -> tuple[int, ...]:
    if not keys or links.heading_key(sections[path[-1]].title) != keys[-1]:
        return ()
    found = [path[-1]]
    outer = iter(reversed(path[:-1]))
    for key in reversed(keys[:-1]):
        above = next((number for number in outer if links.heading_key(sections[number].title) == key), None)
        if above is None:
            return ()
        found.append(above)
    return tuple(reversed(found))


def above(number: int, sections: Sequence[Section]) -> tuple[int, ...]:
    """List a section with those it lies in, outermost first."""
    found = [number]
    for other in range(number - 1, -1, -1):
        if 0 < sections[other].level < sections[found[-1]].level:
            found.append(other)
    return tuple(reversed(found))


def linkable(title: str) -> str:
    """Write a heading as a link names it: without the signs that end a link or begin another heading."""
    return " ".join(_NOT_IN_LINK.sub(" ", title).split())
