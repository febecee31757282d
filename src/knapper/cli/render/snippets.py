"""Cut passages to what fits, and mark the words that were asked for."""

import re
from collections.abc import Callable, Iterable

_WORD = re.compile(r"\w+")
_WANTED = re.compile(r'(?<!\S)-(?:"[^"]*"|\S+)|(\w+)')
_BLANK = re.compile(r"\s+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_STEM = 4
"""Letters that two forms of a word share at least."""


def words(query: str) -> tuple[str, ...]:
    """Give the words that a query asks for; what it excludes with ``-`` isn't among them."""
    found = (match.group(1) for match in _WANTED.finditer(query))
    return tuple(dict.fromkeys(word.casefold() for word in found if word))


def around(text: str, wanted: Iterable[str], limit: int) -> str:
    """Give at most about *limit* characters of a text on one line, where the first wanted word stands.

    Args:
        text: A passage.
        wanted: Words as from `words`.
        limit: In characters; what is left out shows as an ellipsis.
    """
    line = _BLANK.sub(" ", text).strip()
    if len(line) <= limit:
        return line
    first = next(iter(spans(line, wanted)), (0, 0))[0]
    start = _word_start(line, max(0, min(first - limit // 4, len(line) - limit)))
    stop = min(len(line), start + limit)
    if stop < len(line):
        stop = max(line.rfind(" ", start + limit // 2, stop), start + limit // 2)
    return f"{'…' if start else ''}{line[start:stop].strip()}{'…' if stop < len(line) else ''}"


def mark(text: str, wanted: Iterable[str], style: Callable[[str], str]) -> str:
    """Style the wanted words in a text."""
    pieces: list[str] = []
    at = 0
    for start, stop in spans(text, wanted):
        pieces += [text[at:start], style(text[start:stop])]
        at = stop
    return "".join([*pieces, text[at:]])


def spans(text: str, wanted: Iterable[str]) -> list[tuple[int, int]]:
    """Find the words of a text that are forms of wanted ones, in order."""
    asked = tuple(wanted)
    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        word = match.group().casefold()
        if _CJK.search(word):
            found.extend(_inside(match.group(), match.start(), asked))
        elif any(_is_form(word, other) for other in asked):
            found.append(match.span())
    return found


def _inside(run: str, offset: int, asked: tuple[str, ...]) -> list[tuple[int, int]]:
    """Find wanted words in a run of characters that knows no spaces."""
    marked = sorted((at, at + len(word)) for word in asked if (at := run.find(word)) >= 0)
    apart = [span for n, span in enumerate(marked) if not n or span[0] >= marked[n - 1][1]]
    return [(offset + start, offset + stop) for start, stop in apart]


def _is_form(word: str, asked: str) -> bool:
    if word == asked:
        return True
    short, long = sorted((word, asked), key=len)
    return len(short) >= _STEM and long.startswith(short)


def _word_start(line: str, at: int) -> int:
    space = line.find(" ", at, at + 20)
    return space + 1 if at and space >= 0 else at
