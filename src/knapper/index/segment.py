"""Prepare notes and queries for the word index, so that both are split into the same words.

SQLite's ``unicode61`` splits at everything that is no letter, number or mark. That leaves whole sentences of Chinese,
Japanese, Thai … as one word, so runs of such scripts become overlapping pairs of characters.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""What ``segment`` writes for. Without marks (``Mn Mc``) Hindi, Bengali or Tamil would fall apart at each vowel."""

MAX_WORDS = 128
"""Words of a query that are searched for; a pasted page needn't be read to its end."""

MAX_ASKED = 32
"""Words of a query that still reads like a question."""

_RUN = re.compile(
    "["
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ecd\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f"  # Burmese
    "\u1780-\u17d3"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"  # Hangul: its particles stick to words
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"  # kana, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "]+"
)
"""Characters in a row of scripts whose words no spaces part."""
_FORMS = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc\uff01-\uffdc]+")
"""Ligatures, Arabic shapes, full and half width: other forms of the same letters."""
_UNSEEN = re.compile(
    "[\u00ad\u034f\u200c\u200d\u2060\ufe00-\ufe0f\ufeff"  # soft hyphen, joiners, variation selectors, byte-order mark
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0640\u064b-\u065f\u0670]"  # Arabic vowels, and the line that stretches words
)
_PART = re.compile(r'(?P<minus>(?<!\S)-(?!-))?(?:"(?P<phrase>[^"]*)"(?P<star>\*)?|(?P<word>[^\s"]+))')
_MARKS = str.maketrans(dict.fromkeys("“”„‟«»", '"') | dict.fromkeys(map(chr, [*range(32), 127]), " "))
_APOSTROPHE = re.compile("['’ʼ]")  # noqa: RUF001 - what people type for it
_OPERATORS = re.compile(r'"|(?<!\S)-(?=\S)|\*')
_SPOKEN = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Hold words that must stand in this order, segmented; most often it is one word."""

    text: str
    prefix: bool = False
    """The last word may go on."""

    def expression(self) -> str:
        """Quote the term for FTS5, so that nothing in it is an operator."""
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"*' if self.prefix else f'"{quoted}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Hold what a user asked for.

    ``plan* "to do" -draft`` has the word ``plan`` (a prefix), the phrase ``to do``, and ``draft`` excluded.
    """

    words: tuple[Term, ...] = ()
    """Each once, at most ``MAX_WORDS``; the more of them stand in a text, the better."""
    phrases: tuple[Term, ...] = ()
    """All of these must be there."""
    excluded: tuple[Term, ...] = ()
    """None of these may be there."""
    plain: str = ""
    """Words and phrases as typed, without operators: what an embedder reads."""


def segment(text: str) -> str:
    """Write text as the word index stores it.

    ``"Obsidianの検索"`` gives ``"Obsidian の検 検索 索 "``: each character of a run begins a word, so that one alone is
    found too. Text of other scripts stays as it is, but for width, ligatures and marks that people leave out.
    """
    return text if text.isascii() else _RUN.sub(_spaced, folded(text))


def terms(query: str) -> Query:
    """Read a query: words, ``"phrases"``, ``-without``, ``-"without this"``, ``begins*``.

    Returns:
        The query; empty where *query* holds nothing that the index knows as a word. A quote that isn't closed counts as
        a space; a dash inside a word, alone, or doubled excludes nothing. In a query of more than ``MAX_ASKED`` words
        nothing is an operator: it is a pasted passage.
    """
    text = folded(query.encode(errors="replace").decode()).translate(_MARKS)
    if len(text.split()) > MAX_ASKED:
        text = _OPERATORS.sub(" ", text)
    if text.count('"') % 2:
        text = " ".join(text.rsplit('"', 1))
    words: list[Term] = []
    phrases: list[Term] = []
    excluded: list[Term] = []
    plain: list[str] = []
    for part in _PART.finditer(text):
        shown = part["phrase"] or part["word"] or ""
        found = _phrase(shown, prefix=bool(part["star"]) or shown.endswith("*"))
        if part["minus"]:
            excluded.extend(found)
            continue
        plain.append(shown.rstrip("*"))
        if part["word"] is None:
            phrases.extend(found)
        else:
            words.extend(_words(shown))
    return Query(
        words=tuple(dict.fromkeys(words))[:MAX_WORDS],
        phrases=tuple(dict.fromkeys(phrases)),
        excluded=tuple(dict.fromkeys(excluded)),
        plain=" ".join(filter(None, plain)),
    )


def folded(text: str) -> str:
    """Make texts equal that differ only in form, width, or marks that people leave out."""
    if _FORMS.search(text):
        text = _FORMS.sub(lambda run: unicodedata.normalize("NFKC", run.group()), text)
    return _UNSEEN.sub("", unicodedata.normalize("NFC", text))


def _pairs(run: str) -> Iterator[str]:
    """Yield the overlapping pairs of a run; none for a single character."""
    return map(str.__add__, run, run[1:])


def _spaced(match: re.Match[str]) -> str:
    run = match.group()
    return f" {' '.join(_pairs(run))} {run[-1]} "


def _phrase(text: str, *, prefix: bool) -> Iterator[Term]:
    """Yield the term for words in this order; nothing where *text* has no word."""
    if not _SPOKEN.search(text):
        return
    stop = len(text)
    while unicodedata.category(text[stop - 1])[0] not in "LMN":
        stop -= 1
    text = text[:stop]
    words = segment(text).split()
    last = _RUN.findall(text[-2:])
    if last and text.endswith(last[-1]):
        # The run may go on in the note: then its last character is part of a pair there, and no word by itself.
        words, prefix = (words, True) if len(last[-1]) == 1 else (words[:-1], prefix)
    yield Term(text=" ".join(words), prefix=prefix)


def _words(word: str) -> Iterator[Term]:
    """Yield a word's terms: what an apostrophe leaves but for mere endings, and each pair of a run by itself."""
    prefix = word.endswith("*")
    parts = [part for part in _APOSTROPHE.split(word) if len(part) > 2 or _RUN.search(part)] or [word]
    for part in parts:
        at = 0
        for run in _RUN.finditer(part):
            yield from _phrase(part[at : run.start()], prefix=False)
            shown = run.group()
            yield from (Term(text=pair) for pair in _pairs(shown))
            if len(shown) == 1:
                yield Term(text=shown, prefix=True)
            at = run.end()
        yield from _phrase(part[at:], prefix=prefix and part is parts[-1])
