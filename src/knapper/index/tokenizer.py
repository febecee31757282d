"""Split notes and queries into the words of the full-text index, stem them, and know those without a meaning."""

import re
import threading
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from operator import add
from typing import Final

from knapper.jsontypes import replace_surrogates

_ENGLISH_WORDS: Final = """
a about after all also am an and any are aren't as at be because been before being between both but by can can't
cannot could couldn't did didn't do does doesn't doing don't during each either else ever for from had has hasn't
have haven't having he he's her here hers him his how how's i i'd i'll i'm i've if in into is isn't it it's its just
let's me might mine more most must my neither no nor not of off on onto or other our ours out over she she's should
shouldn't so some such than that that's the their theirs them then there there's these they they're this those
through to too until up upon very was wasn't we we're were weren't what what's when where where's whether which
while who who's whom whose why will with within without won't would wouldn't you you're your yours
"""
_ENGLISH: Final = frozenset(_ENGLISH_WORDS.split())
_OTHERS: Final = tuple(
    frozenset(words.split())
    for words in (
        # German
        """
        aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da dabei damit dann das dass
        dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch du durch ein eine einem
        einen einer eines er es für gegen habe haben hat hatte hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in
        ins ist ja jede jedem jeden jeder jedes kann kein keine können man mein meine meinem meinen mich mir mit muss
        nach nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie sind so soll über um und uns
        unser unsere unter vom von vor wann warum was welche welchem welchen welcher welches wem wen wenn wer werden
        wessen wie wieso wir wird wo wurde wurden zu zum zur zwischen
        """,
        # French
        """
        à afin ai ainsi alors après as au aucun aussi autre aux avant avec avez avoir avons c'est ce ceci cela celle
        celui ces cet cette ceux chez comme comment dans de depuis des dont du elle elles en encore entre es est et
        était être eu eux fait fut il ils je l la le les leur leurs lui ma mais me même mes moi mon ne ni nos notre nous
        on ont ou où par pas plus pour pourquoi qu'est quand que quel quelle quelles quels qui quoi sa sans se ses si
        son sont sous sur ta te tes toi ton très tu un une vos votre vous y
        """,
        # Spanish
        """
        a al algo algún ante antes aquel aquella así aún aunque cada como cómo con contra cual cuál cuales cuando cuándo
        de del desde donde dónde dos durante el él ella ellas ellos en entre era es esa ese eso esta está estaba están
        estas este esto estos fue ha hace hacia han hasta hay la las le les lo los más me mi mis mucho muy nada ni no
        nos nosotros nuestra nuestro o otra otro para pero poco por porque qué que quien quién se según ser si sí sin
        sobre son su sus también tan te tengo ti tiene todo todos tu tú tus un una uno unos y ya yo
        """,
        # Italian
        """
        a ad ai al alla alle allo anche avere c'è che chi ci come con contro cosa cui da dagli dai dal dalla dalle dei
        del della delle dello di dove e è ed era essere fra gli ha hai hanno ho i il in io l la le lei li lo loro lui ma
        mi mia mie miei mio ne negli nei nel nella nelle noi non nostro o per perché più quale quali quando quanto
        quella quelle quelli quello questa queste questi questo sei si sia sono sta su sua sue sugli sui sul sulla suo
        suoi ti tra tu tua tuo un una uno vi voi
        """,
        # Portuguese
        """
        a à ao aos aquela aquele aquilo as às até com como da das de dela dele depois do dos e é ela elas ele eles em
        entre era essa esse esta está este eu foi há isso isto já lhe mais mas me mesmo meu meus minha muito na nas não
        nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque quais qual quando que
        quem são se sem ser seu seus só sua suas também te tem tu tua tudo um uma você vocês
        """,
        # Dutch
        """
        aan al alle als ben bij daar dan dat de deze die dit door een en er ge geen had hebben heeft hem het hier hij
        hoe hun ik in is ja je kan kunnen maar me met mij mijn moet na naar niet nog nu of om omdat ons onze ook op over
        te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we welke werd wie wij wil
        worden wordt zal ze zelf zich zij zijn zo zonder zou
        """,
    )
)
_MIN_OTHER: Final = 2
"""Words of another language than English that a query holds at least: *die* and *war* are English words, too."""
_EDGES: Final = re.compile(r"^[^\w]+|[^\w]+$")
_APOSTROPHES: Final = str.maketrans("’ʼ", "''")  # noqa: RUF001 - what people type for it


def find_stop_words(words: Sequence[str]) -> frozenset[str]:
    """Return those words of a query, as given, that carry no meaning beside its others.

    Empty where none of the others is left: *to be or not to be* asks for all of them. A word in capitals, such as *IT*,
    is a name where the others aren't in capitals.
    """
    folded_by_word = {word: fold_word(word) for word in words}
    # Of the language from which most of the words are; English where no other has more.
    folded_words = frozenset(folded_by_word.values())
    counts = [(len(stops.intersection(folded_words)), stops) for stops in _OTHERS]
    most, stops = max(counts, key=lambda one: one[0])
    if most < _MIN_OTHER or most <= len(_ENGLISH.intersection(folded_words)):
        stops = _ENGLISH
    shouted = all(word == word.upper() for word in words)
    found = frozenset(
        word
        for word, folded in folded_by_word.items()
        if folded in stops and (shouted or len(folded) < 2 or word != word.upper())
    )
    is_content_left = any(word not in found and folded for word, folded in folded_by_word.items())
    return found if is_content_left else frozenset()


def fold_word(word: str) -> str:
    """Fold a word's case and apostrophes, and cut punctuation around it."""
    if word.isascii() and word.isalnum():
        return word.lower()
    return _EDGES.sub("", word.translate(_APOSTROPHES)).casefold()


TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""Without marks (``Mn Mc``) words of Hindi, Bengali or Tamil would be split at each vowel."""

MAX_QUERY_WORDS = 128
"""Limit of words of a query; the rest of a pasted page is ignored."""

MAX_QUESTION_WORDS = 32
"""Words of a typed query; a longer one is treated as a pasted passage."""

_MIN_BEGINNING_CHARS: Final = 3
"""Of a word that no note holds, and by which longer ones are looked for; a shorter one begins too many others."""

UNSPACED_RUN = re.compile(
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
"""A run of characters of scripts that don't separate words by spaces."""
_VARIANT_FORMS = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc\uff01-\uffdc]+")
"""Compatibility forms of letters: ligatures, Arabic shapes, full and half width."""
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u200c\u200d\u2060\ufe00-\ufe0f\ufeff"  # soft hyphen, joiners, variation selectors, byte-order mark
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0640\u064b-\u065f\u0670"  # Arabic vowels, and the line that stretches words
    # All that FTS5 leaves out of words, by itself as well: alone, one would be a word without a letter, which FTS5's
    # tables of words can't name.
    "\u0300-\u0304\u0306-\u030c\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331]"
)
_PLAIN_LETTERS: Final = {
    **dict.fromkeys("ßẞ", "ss"),
    **dict.fromkeys("æÆǽǼ", "ae"),
    **dict.fromkeys("œŒ", "oe"),
    **dict.fromkeys("øØǿǾ", "o"),
    **dict.fromkeys("łŁ", "l"),
    **dict.fromkeys("đĐðÐ", "d"),
    **dict.fromkeys("þÞ", "th"),
    **dict.fromkeys("ħĦ", "h"),
    "\u0131": "i",  # without a dot
    **dict.fromkeys("ёЁ", "\u0435"),  # Russian: without its dots
    **dict.fromkeys("\u0622\u0623\u0625\u0671", "\u0627"),  # Arabic: alef without hamza or madda
    "\u0629": "\u0647",  # teh marbuta: heh
    **dict.fromkeys("\u0649\u06cc", "\u064a"),  # alef maksura and Farsi yeh: yeh
    "\u06a9": "\u0643",  # keheh: kaf
}
"""Letters that people type in a plainer form, and that FTS5 keeps apart.

Source: ``ASCIIFoldingFilter``, ``ArabicNormalizer`` and ``PersianNormalizer`` of Lucene.
"""
_GREEK_WITH_ACCENTS: Final = "\u0386\u0388-\u0390\u03aa-\u03b0\u03ca-\u03ce\u1f00-\u1fff"
"""Which capitals don't have."""
_FOLDED_LETTER = re.compile(f"[{''.join(_PLAIN_LETTERS)}{_GREEK_WITH_ACCENTS}]")
_SPECIAL = re.compile("|".join(part.pattern.removesuffix("+") for part in (UNSPACED_RUN, _VARIANT_FORMS, _IGNORABLE)))
"""Anything that `segment` changes, but for the form and the spelling of letters."""
_QUERY_PART = re.compile(r'(?P<minus>(?<!\S)-(?!-))?(?:"(?P<phrase>[^"]*)"(?P<star>\*)?|(?P<word>[^\s"]+))')
_QUOTES_AND_CONTROLS = str.maketrans(dict.fromkeys("“”„‟«»", '"') | dict.fromkeys(map(chr, [*range(32), 127]), " "))
_APOSTROPHE = re.compile("['’ʼ]")  # noqa: RUF001 - what people type for it
_OPERATORS = re.compile(r'"|(?<!\S)-(?=\S)|\*')
_WORD_CHARACTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One or more segmented words in a fixed order."""

    text: str
    prefix: bool = False
    """Whether the last word is a prefix."""

    def expression(self) -> str:
        """Return the term quoted for FTS5, so that nothing in it acts as an operator."""
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"*' if self.prefix else f'"{quoted}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query.

    ``plan* "to do" -draft`` has the word ``plan`` (a prefix), the phrase ``to do``, and ``draft`` excluded.
    """

    words: tuple[Term, ...] = ()
    """Each once, at most ``MAX_QUERY_WORDS``; a text with more of them scores higher."""
    content: tuple[Term, ...] = ()
    """Those of the words that carry meaning, by which chunks are ranked; all of them where none does."""
    phrases: tuple[Term, ...] = ()
    """Phrases that a text must contain."""
    excluded: tuple[Term, ...] = ()
    """Terms that a text must not contain."""
    plain: str = ""
    """Words and phrases as typed, without operators, for the embedder."""
    is_cut: bool = False
    """Whether there were more words than ``MAX_QUERY_WORDS``."""

    def as_beginning(self, unknown: Collection[str]) -> "Query | None":
        """Return a query of one *unknown* word with that word as the beginning of others; None for any other query.

        A question of several words would find whatever begins like one of them.
        """
        if len(self.words) != 1 or self.phrases:
            return None
        (word,) = self.words
        if word.text not in unknown or len(word.text) < _MIN_BEGINNING_CHARS or UNSPACED_RUN.search(word.text):
            return None
        terms = (replace(word, prefix=True),)
        return replace(self, words=terms, content=terms)


def segment(text: str) -> str:
    """Prepare text for the full-text index.

    ``"Obsidianの検索"`` gives ``"Obsidian の検 検索 索 "``: each character of a run begins a word, so that single
    ones are found, too. Text of other scripts only loses differences in width, ligatures and optional marks, and is
    spelled with plain letters: *Straße* becomes *Strasse*.
    """
    if text.isascii():
        return text
    # One look for three kinds of characters, as most texts have none of them.
    if not _SPECIAL.search(text):
        return _FOLDED_LETTER.sub(_plain_letter, unicodedata.normalize("NFC", text))
    return UNSPACED_RUN.sub(_space_out_run, fold_letters(fold_forms(text)))


def parse_query(query: str) -> Query:
    """Parse a query: words, ``"phrases"``, ``-without``, ``-"without this"``, ``begins*``.

    Returns:
        The query; empty where *query* contains no indexable word. A quote that isn't closed counts as
        a space; a dash inside a word, alone, or doubled excludes nothing. In a query of more than
        ``MAX_QUESTION_WORDS`` words nothing is an operator: it is a pasted passage.
    """
    text = fold_forms(replace_surrogates(query)).translate(_QUOTES_AND_CONTROLS)
    if len(text.split()) > MAX_QUESTION_WORDS:
        text = _OPERATORS.sub(" ", text)
    if text.count('"') % 2:
        text = " ".join(text.rsplit('"', 1))
    word_parts: list[str] = []
    phrases: list[Term] = []
    excluded: list[Term] = []
    plain: list[str] = []
    for part in _QUERY_PART.finditer(text):
        part_text = part["phrase"] or part["word"] or ""
        part_terms = _phrase_terms(part_text, prefix=bool(part["star"]) or part_text.endswith("*"))
        if part["minus"]:
            excluded.extend(part_terms)
            continue
        plain.append(part_text.rstrip("*"))
        if part["word"] is None:
            phrases.extend(part_terms)
        else:
            word_parts.append(part_text)
    stop_words = find_stop_words(word_parts)
    terms = {part: tuple(_word_terms(part)) for part in word_parts}
    words = content = tuple(dict.fromkeys(chain.from_iterable(terms.values())))
    if stop_words:
        content = tuple(dict.fromkeys(chain.from_iterable(terms[part] for part in terms if part not in stop_words)))
    return Query(
        words=words[:MAX_QUERY_WORDS],
        content=content[:MAX_QUERY_WORDS],
        phrases=tuple(dict.fromkeys(phrases)),
        excluded=tuple(dict.fromkeys(excluded)),
        plain=" ".join(filter(None, plain)),
        is_cut=len(words) > MAX_QUERY_WORDS,
    )


def fold_forms(text: str) -> str:
    """Fold differences in Unicode form, width and optional marks."""
    if text.isascii():
        return text
    if _VARIANT_FORMS.search(text):
        text = _VARIANT_FORMS.sub(lambda run: unicodedata.normalize("NFKC", run.group()), text)
    return _IGNORABLE.sub("", unicodedata.normalize("NFC", text))


def fold_letters(text: str) -> str:
    """Spell letters such as *ß*, *ø* and *ł* as people do whose keyboard lacks them."""
    return text if text.isascii() else _FOLDED_LETTER.sub(_plain_letter, text)


def _plain_letter(match: re.Match[str]) -> str:
    letter = match.group()
    return _PLAIN_LETTERS.get(letter) or unicodedata.normalize("NFD", letter)[0]


def _bigrams(run: str) -> Iterator[str]:
    """Yield the overlapping character pairs of a run; none for a single character."""
    return map(add, run, run[1:])


def _space_out_run(match: re.Match[str]) -> str:
    run = match.group()
    return f" {' '.join(_bigrams(run))} {run[-1]} "


def _phrase_terms(text: str, *, prefix: bool) -> Iterator[Term]:
    """Yield the term for a phrase; nothing where *text* has no word."""
    if not _WORD_CHARACTER.search(text):
        return
    stop = len(text)
    while unicodedata.category(text[stop - 1])[0] not in "LMN":
        stop -= 1
    text = text[:stop]
    words = segment(text).split()
    last = UNSPACED_RUN.findall(text[-2:])
    if last and text.endswith(last[-1]):
        # The run may continue in the note: there its last character is part of a pair, and not a word by itself.
        words, prefix = (words, True) if len(last[-1]) == 1 else (words[:-1], prefix)
    yield Term(text=" ".join(words), prefix=prefix)


def _word_terms(word: str) -> Iterator[Term]:
    """Yield a word's terms: its parts between apostrophes except endings, and each pair of a run by itself."""
    if word.isascii() and word.isalnum():
        yield Term(text=word)
        return
    prefix = word.endswith("*")
    parts = [part for part in _APOSTROPHE.split(word) if len(part) > 2 or UNSPACED_RUN.search(part)] or [word]
    for part in parts:
        at = 0
        for run in UNSPACED_RUN.finditer(part):
            yield from _phrase_terms(part[at : run.start()], prefix=False)
            run_text = run.group()
            yield from (Term(text=pair) for pair in _bigrams(run_text))
            if len(run_text) == 1:
                yield Term(text=run_text, prefix=True)
            at = run.end()
        yield from _phrase_terms(part[at:], prefix=prefix and part is parts[-1])


_MARKS: Final = (
    "\u00ad\u0300-\u036f\u0483-\u0487\u200c\u200d"  # accents, soft hyphen, joiners
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic vowels
    "\u0900-\u0963\u0971-\u0dff\u0f71-\u0fbc"  # India's scripts, Sinhala and Tibetan, but for the full stop
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"  # Thai to Khmer
)
"""Marks of letters, which ``\\w`` doesn't have."""
TEXT_WORD: Final = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*")
"""A word of a text, with its marks."""
MAX_MATCHES = 200
"""Most places of a text that are marked."""


def find_matches(query: Query, text: str, stemmer: "Stemmer") -> list[tuple[int, int]]:
    """Find the words of a text by which a query finds it: not those that carry no meaning, such as *the*.

    ``watering the garden`` finds ``Water`` and ``gardens`` in "Water the gardens." as ``[(0, 5), (10, 17)]``.

    Returns:
        Spans in characters, in order and without overlaps, at most ``MAX_MATCHES``.
    """
    terms = [term for term in (*query.content, *query.phrases) if term.text]
    spans = [*_unspaced_matches(terms, text), *_word_matches(terms, text, stemmer)]
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        elif start < stop:
            merged.append((start, stop))
    return merged[:MAX_MATCHES]


def _unspaced_matches(terms: Sequence[Term], text: str) -> Iterator[tuple[int, int]]:
    """Yield where the runs of a query stand in scripts that don't separate words."""
    for part in {part for term in terms for part in term.text.split() if UNSPACED_RUN.fullmatch(part)}:
        at = text.find(part)
        while at >= 0:
            yield at, at + len(part)
            at = text.find(part, at + 1)


def _word_matches(terms: Sequence[Term], text: str, stemmer: "Stemmer") -> Iterator[tuple[int, int]]:
    """Yield the words whose stem is one of the query's, or begins with a prefix of it."""
    spaced = [(term, part) for term in terms for part in term.text.split() if not UNSPACED_RUN.search(part)]
    words = [part for _, part in spaced]
    stems = {stem for found in stemmer.stems(words) for stem in found}
    prefixes = tuple(
        stem
        for (term, part), found in zip(spaced, stemmer.stems(words), strict=True)
        if term.prefix and term.text.endswith(part)
        for stem in (*found, plain_form(part))
    )
    # Only words with the first letter of one that is looked for are stemmed, which is slow for a whole text.
    letters = {stem[0] for stem in (*stems, *prefixes) if stem}
    candidates = [
        (match.span(), plain)
        for match in TEXT_WORD.finditer(text)
        if (plain := plain_form(match.group())) and plain[0] in letters
    ]
    for (span, plain), found in zip(candidates, stemmer.stems([plain for _, plain in candidates]), strict=True):
        if stems.intersection(found) or (prefixes and plain.startswith(prefixes)):
            yield span


def plain_form(word: str) -> str:
    """Return a word as the full-text index spells it: small letters, those of Latin and Greek without accents."""
    if word.isascii():
        return word.lower()
    return "".join(map(_plain_character, fold_letters(fold_forms(word)).lower()))


def _plain_character(character: str) -> str:
    base = unicodedata.normalize("NFD", character)[0]
    if base.isascii():
        return base
    return "" if "\u0300" <= character <= "\u036f" else character


def without_run_ends(stems: Sequence[str]) -> list[str]:
    """Leave the single characters out that end a run of a script without spaces: within a longer run there is none."""
    return [
        stem
        for before, stem in pairwise(["", *stems])
        if len(stem) != 1 or stem.isascii() or len(before) == 1 or before[-1:] != stem
    ]


_MAX_CACHED_WORDS = 20_000
"""Number of cached stems, for the words of notes' names and of queries, which recur."""
_MAX_CACHED_WORD_CHARS = 100
"""Maximum characters of a cached word."""
CUT_MARK = "\ufffd"
"""Stands for bytes where SQLite cut a word of over 32 kB within a character; no other stem contains it."""


class Stemmer:
    """A stemmer by SQLite's own tokenizer, through a table in memory; a word takes about 0.01 ms."""

    def __init__(self) -> None:
        """Create the table."""
        self._lock = threading.Lock()
        self._known: dict[str, Sequence[str]] = {}
        import sqlite3  # noqa: PLC0415 - what prints results needs the words without a meaning alone

        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.text_factory = partial(str, errors="replace")
        self._connection.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize="{TOKENIZER}")')
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(texts, instance)")

    def stems(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Return each text's stems in order: ``["Running notes"]`` gives ``[("run", "note")]``.

        Words between spaces are stemmed separately, so that most words of a new text are in the cache.
        """
        words = [text.split() for text in texts]
        with self._lock:
            new_words = list({word for text_words in words for word in text_words if word not in self._known})
            if new_words:
                new_stems: list[list[str]] = [[] for _ in new_words]
                self._connection.execute("BEGIN")
                self._connection.executemany(
                    "INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(new_words, start=1)
                )
                for number, term in self._connection.execute("SELECT doc, term FROM stems ORDER BY doc, offset"):
                    new_stems[int(number) - 1].append(str(term))
                self._connection.execute("ROLLBACK")
                self._known.update(zip(new_words, map(tuple, new_stems), strict=True))
            stems_by_text: list[Sequence[str]] = [
                tuple(stem for word in text_words for stem in self._known[word]) for text_words in words
            ]
            if len(self._known) > _MAX_CACHED_WORDS:
                self._known.clear()
            for word in new_words:
                if len(word) > _MAX_CACHED_WORD_CHARS:
                    self._known.pop(word, None)
        return stems_by_text

    def close(self) -> None:
        """Close the table."""
        self._connection.close()
