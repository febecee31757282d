"""Tell what of a script's context the vault has really said, and what the script has put there by itself.

A script that writes the task's own words over its context would otherwise seem to have found them.
"""

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

MOST_HEARD: Final = 4_000_000
"""Characters of what was heard that are looked at."""
_WORD: Final = re.compile(r"\w+")
_RUN: Final = 4
"""Words in a row that nobody writes by accident as another has."""

Run: TypeAlias = tuple[str, ...]


def grounded(context: str, heard: Iterable[str], task: str) -> str:
    """Give the words of a context that stand there as the vault has them.

    A word does that within four in a row, or in a line of which the vault has said every word and the task hasn't said
    all: a short note, or a table that a script has made.

    Args:
        context: What a script has put together.
        heard: The texts that it was given.
        task: What it is for.

    Returns:
        Those words in order, one line a line.
    """
    lines = [
        [(found.group(), found.group().casefold()) for found in _WORD.finditer(line)] for line in context.split("\n")
    ]
    words = [(number, shown, folded) for number, line in enumerate(lines) for shown, folded in line]
    said, runs = _compare([folded for *_, folded in words], heard)
    told = frozenset(_WORD.findall(task.casefold()))
    kept: list[list[str]] = [[] for _ in lines]
    whole = [_is_told([folded for _, folded in line], said, told) for line in lines]
    for place, (number, shown, _) in enumerate(words):
        if runs[place] or whole[number]:
            kept[number].append(shown)
    return "\n".join(" ".join(line) for line in kept if line)


def shown(texts: Iterable[str], context: str) -> list[str]:
    """Give what of some texts a context shows: words within four in a row that stand there, and short lines.

    A script that cites a note and shows nothing of it has found nothing there.
    """
    said = _words(context)
    known = frozenset(said)
    runs = frozenset(zip(*(said[at:] for at in range(_RUN)), strict=False))
    return [_shown(text, known, runs) for text in texts]


def _shown(text: str, known: frozenset[str], runs: frozenset[Run]) -> str:
    lines = [_WORD.findall(line) for line in text.split("\n")]
    words = [(number, word) for number, line in enumerate(lines) for word in line]
    folded = [word.casefold() for _, word in words]
    seen = [False] * len(words)
    for at in range(len(words) - _RUN + 1):
        if tuple(folded[at : at + _RUN]) in runs:
            seen[at : at + _RUN] = [True] * _RUN
    short = [len(line) < _RUN and known.issuperset(word.casefold() for word in line) for line in lines]
    kept: list[list[str]] = [[] for _ in lines]
    for place, (number, word) in enumerate(words):
        if seen[place] or short[number]:
            kept[number].append(word)
    return "\n".join(" ".join(line) for line in kept if line)


def _compare(words: list[str], heard: Iterable[str]) -> tuple[set[str], list[bool]]:
    """Give the words that were heard at all, and of each place whether its words were heard in a row."""
    places: dict[Run, list[int]] = {}
    for place in range(len(words) - _RUN + 1):
        places.setdefault(tuple(words[place : place + _RUN]), []).append(place)
    said: set[str] = set()
    runs = [False] * len(words)
    left = MOST_HEARD
    wanted = set(words)
    for text in heard:
        if left <= 0:
            break
        found = _words(text[:left])
        left -= len(text)
        said |= wanted.intersection(found)
        for at in range(len(found) - _RUN + 1):
            for place in places.pop(tuple(found[at : at + _RUN]), ()):
                runs[place : place + _RUN] = [True] * _RUN
    return said, runs


def _is_told(words: list[str], said: set[str], told: frozenset[str]) -> bool:
    return bool(words) and said.issuperset(words) and not told.issuperset(words)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
