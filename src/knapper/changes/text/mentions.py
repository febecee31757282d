"""Find the names of notes in text."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_WORD: Final = re.compile(r"\w+")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LETTER: Final = re.compile(r"[^\W\d_]")
_UNLINKABLE: Final = re.compile(r"[\[\]#^|\\\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Hold one place where text says a note's name."""

    start: int
    stop: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Hold names of notes by the first word of each, so that a text's length alone decides how long a look takes."""

    by_word: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Iterable[str]) -> "Names":
        """Sort names; single characters, numbers, and what no wikilink can hold are left out."""
        found: dict[str, list[str]] = {}
        for name in {unicodedata.normalize("NFC", name) for name in names}:
            word = _WORD.search(name)
            if word is not None and _is_linkable(name):
                found.setdefault(word.group(), []).append(name)
        return cls(by_word={word: tuple(several) for word, several in found.items()})

    def find(self, text: str) -> list[Mention]:
        """Find names in NFC text, spelled as they are, at word boundaries; a longer name wins over what it overlaps.

        Returns:
            In order, without overlap.
        """
        found = [mention for word in _WORD.finditer(text) for mention in self._at(text, word.start(), word.group())]
        found.sort(key=lambda mention: (mention.start - mention.stop, mention.start))
        taken: list[Mention] = []
        covered = bytearray(len(text))
        for mention in found:
            if not any(covered[mention.start : mention.stop]):
                covered[mention.start : mention.stop] = b"\1" * (mention.stop - mention.start)
                taken.append(mention)
        return sorted(taken, key=lambda mention: mention.start)

    def _at(self, text: str, at: int, word: str) -> Iterable[Mention]:
        for name in self.by_word.get(word, ()):
            start = at - name.index(word)
            if start >= 0 and text.startswith(name, start) and _stands_alone(text, start, start + len(name)):
                yield Mention(start=start, stop=start + len(name), name=name)


def _is_linkable(name: str) -> bool:
    if len(name) < 2 or _UNLINKABLE.search(name) or name != name.strip():
        return False
    return bool(_LETTER.search(name) or _DAY.fullmatch(name))


def _stands_alone(text: str, start: int, stop: int) -> bool:
    before, after = text[start - 1 : start], text[stop : stop + 1]
    return not (before and _WORD.match(before)) and not (after and _WORD.match(after))
