"""Make questions that people could ask of a vault: titles, parts of sentences, keywords; the same each time."""

import random
import re
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]{2,}")
_LONG = 6


def of(vault: Path, count: int, *, seed: int = 7) -> list[str]:
    """Make this many questions of 1 to 12 words from a vault's notes, a third of each sort."""
    pick = random.Random(seed)
    files = pick.choices(sorted(vault.rglob("*.md")), k=count * 4)
    found: list[str] = []
    for file in files:
        words = _WORD.findall(file.read_text(encoding="utf-8", errors="replace"))[20:]
        if len(words) > 12:
            found.append((_title, _sentence, _keywords)[len(found) % 3](pick, file.stem, words))
        if len(found) == count:
            break
    return found


def _title(pick: random.Random, title: str, words: list[str]) -> str:
    del words
    said = title.split()
    return " ".join(said[: pick.randrange(1, len(said) + 1)])


def _sentence(pick: random.Random, title: str, words: list[str]) -> str:
    """Take words as they follow one another, frequent ones among them."""
    del title
    length = pick.randrange(4, 13)
    at = pick.randrange(max(len(words) - length, 1))
    return " ".join(words[at : at + length])


def _keywords(pick: random.Random, title: str, words: list[str]) -> str:
    del title
    long = [word for word in words if len(word) >= _LONG] or words
    return " ".join(pick.choices(long, k=pick.randrange(1, 5)))
