"""Generate vaults of any size from the text of real ones, the same each time.

A note takes sections from a few notes of one language, with every seventh word replaced by another of that language, as
often as it is said there; so words, lengths of sections and shares of code, lists and tables are as in life. Links go
mostly to a few notes, tags and properties likewise.
"""

import argparse
import json
import random
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from bench import frame, places
from bench.places import Places

VERSION = 2
"""Vaults of another version are made anew."""
_SHARES = {"hub": 4, "en": 4, "de": 1, "es": 1, "fr": 1, "ja": 1, "zh": 1, "ru": 1}
_WORD = re.compile(r"([^\W\d_]{4,24})")
_REPLACED = 0.15
_LETTERS = re.compile(r"[^\w \-]")
_STATES = ("draft", "open", "waiting", "done", "archived")


@dataclass(frozen=True, slots=True)
class Source:
    """Hold one real note, cut at its headings; a text is a list of gaps and words in turn."""

    title: str
    sections: list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class Language:
    """Hold the notes of one language, and its words as often as they are said."""

    notes: list[Source]
    words: list[str]


def vault(where: Places, notes: int) -> Path | None:
    """Give the generated vault of this many notes, and make it where it is missing; None without sources."""
    folder, mark = where.cache / f"generated-{notes}", where.cache / f"generated-{notes}.json"
    state = {"version": VERSION, "notes": notes}
    if mark.exists() and json.loads(mark.read_text(encoding="utf-8")) == state:
        return folder
    languages = harvest(where)
    if not languages:
        return None
    frame.say(f"generating a vault of {notes:,} notes")
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in write(languages, notes):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    mark.write_text(json.dumps(state), encoding="utf-8")
    return folder


def harvest(where: Places) -> dict[str, Language]:
    """Read the real vaults; empty where they are missing."""
    found: dict[str, list[Source]] = {}
    for name in ("obsidian-help", "obsidian-hub"):
        root = where.vault(name)
        if root is None:
            continue
        for file in sorted(root.rglob("*.md")):
            top = file.relative_to(root).parts[0]
            language = "hub" if name == "obsidian-hub" else top
            if language in _SHARES:
                found.setdefault(language, []).append(_read(file))
    return {name: Language(notes, _words(notes)) for name, notes in found.items()}


def write(languages: dict[str, Language], notes: int, *, seed: int = 1):
    """Yield path and text of each note."""
    pick = random.Random(seed)
    names = sorted(languages)
    chosen = pick.choices(names, [_SHARES[name] for name in names], k=notes)
    titles = _titles(pick, [languages[name] for name in chosen])
    tags = [word.lower() for word in pick.sample(sorted(set(languages["en"].words)), 400)]
    popular = list(accumulate(1 / (rank + 10) for rank in range(notes)))
    for number, (name, title) in enumerate(zip(chosen, titles, strict=True)):
        links = [titles[i] for i in pick.choices(range(notes), cum_weights=popular, k=pick.randrange(8))]
        folder = (
            f"{name}/area {number % 37:02}/project {number % 331:03}" if number % 3 else f"{name}/area {number % 37:02}"
        )
        yield f"{folder}/{title}.md", _note(pick, languages[name], title, tags, links)


def _read(file: Path) -> Source:
    text = file.read_text(encoding="utf-8", errors="replace")
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    parts = re.split(r"(?m)^(#{1,6} .*)$", text)
    heads = ["", *parts[1::2]]
    sections = [(head, _WORD.split(body.strip())) for head, body in zip(heads, parts[::2], strict=True) if body.strip()]
    return Source(file.stem, sections or [("", [file.stem])])


def _words(notes: Sequence[Source]) -> list[str]:
    return [word for note in notes for _, tokens in note.sections for word in tokens[1::2]][:400_000]


def _titles(pick: random.Random, languages: Sequence[Language]) -> list[str]:
    """Make a title for each note from the title of a real one and words; each once, whatever the case."""
    titles: list[str] = []
    seen: set[str] = set()
    for language in languages:
        words = _LETTERS.sub(" ", pick.choice(language.notes).title).split()[: pick.randrange(1, 5)]
        title = " ".join([*words, *pick.choices(language.words, k=pick.randrange(1, 3))])[:60].strip() or "Note"
        while title.casefold() in seen:
            title = f"{title[:60]} {pick.choice(language.words)}"
        seen.add(title.casefold())
        titles.append(title)
    return titles


def _note(pick: random.Random, language: Language, title: str, tags: Sequence[str], links: Sequence[str]) -> str:
    themes = pick.choices(language.notes, k=pick.randrange(1, 4))
    pool = [section for theme in themes for section in theme.sections]
    count = min(len(pool), 1 + int(pick.expovariate(1 / 6)))
    parts = [_properties(pick, title, tags)]
    for position, (head, tokens) in enumerate(pick.sample(pool, count)):
        link = f"\n\nSee [[{links[position]}]]." if position < len(links) else ""
        parts.append(f"{head}\n\n{_vary(pick, tokens, language.words)}{link}".strip())
    return "\n\n".join(parts) + "\n"


def _vary(pick: random.Random, tokens: list[str], words: Sequence[str]) -> str:
    said = len(tokens) // 2
    changed = list(tokens)
    for at in pick.sample(range(said), round(said * _REPLACED)):
        changed[2 * at + 1] = pick.choice(words)
    return "".join(changed)


def _properties(pick: random.Random, title: str, tags: Sequence[str]) -> str:
    kept = sorted({tags[min(int(pick.paretovariate(0.8)) - 1, len(tags) - 1)] for _ in range(pick.randrange(5))})
    lines = [f"created: 20{pick.randrange(15, 27)}-{pick.randrange(1, 13):02}-{pick.randrange(1, 29):02}"]
    lines.append(f"status: {pick.choice(_STATES)}")
    lines.append(f"rating: {pick.randrange(1, 6)}")
    if kept:
        lines.append(f"tags: [{', '.join(kept)}]")
    if pick.random() < 0.2:
        lines.append(f"aliases:\n  - {' '.join(reversed(title.split()))}")
    return "---\n" + "\n".join(lines) + "\n---"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Generate a vault of N notes.")
    places.add_options(parser)
    parser.add_argument("notes", type=int)
    options = parser.parse_args()
    print(vault(places.of(options), options.notes) or sys.exit("the real vaults are missing"))
