"""Score what was retrieved for a task, independently of what the script reports.

``score = w1 * overlap + w2 * coverage + w3 * diversity - w4 * boilerplate``, each part from 0 to 1, and the score too.

* *Overlap* is the share of the task's distinct words that the retrieved text and the cited notes' names hold, each
  weighted by how rare it is in this vault. Only text that the vault returned counts (see `grounded_text`),
  so a context can't score by repeating its task. Whether *one* place holds them is what the next part asks.
* *Coverage* is the share of the task's aspects, of which the whole task is one, that have a cited hit, together with
  the share of the least characters and citations that is there. A cited hit is a note that the vault's own search
  brings for the aspect, cited at a place that says it and that the context shows. It counts in full where it comes
  first and a window of the shown text holds much of the aspect's weight; less where it says less, or comes later: by
  the logarithm of its place, as in discounted cumulative gain. What any window holds by chance counts for nothing.
* *Diversity* is how many distinct notes are cited that deal with an aspect (one is half, two are three quarters, and so
  on; one that deals with it by half is half a note), times how far their texts are apart. Copies of one note are one
  note. Notes that say nothing about the task are the most diverse of all, and don't count.
* *Boilerplate* is the share of properties, navigation and repeated lines.

The weights were chosen on one half of judged queries and are reported on the other: ``python -m bench retrieval``.
"""

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from knapper.index import tokenizer
from knapper.index.store import IndexStore
from knapper.index.tokenizer import Stemmer
from knapper.index.words import fts5
from knapper.index.words.fulltext import RowCounts
from knapper.jsontypes import JSONValue

_QUERY_OPERATORS: Final = re.compile(r'["“”„«»*]|(?<!\S)-+')


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedTerm:
    """A word of a task, reduced to its stems as the index reduces it, and what it weighs."""

    stems: tuple[str, ...]
    weight: float
    """Above 0; a word that half of the vault uses weighs a tenth of one that a single place uses."""


class Vocabulary:
    """The word statistics of one vault; any thread may use them."""

    def __init__(self, store: IndexStore) -> None:
        """Count words in an index's store."""
        self._store = store
        self._stemmer = Stemmer()
        self._counts = RowCounts(fts5.CHUNKS)
        self._lock = threading.Lock()

    def terms(self, text: str) -> tuple[WeightedTerm, ...]:
        """Return a text's distinct words with their weights, in order; nothing in it is an operator.

        A word that nothing in the vault holds weighs as much as the others do on average: it may be what the task is
        about, or mere phrasing, and no count shows which.
        """
        terms = tokenizer.parse_query(_QUERY_OPERATORS.sub(" ", text)).words
        stems = [tuple(word_stems) for word_stems in self._stemmer.stems([term.text for term in terms])]
        expressions = {key: term.expression() for key, term in zip(stems, terms, strict=True) if key}
        if not expressions:
            return ()
        # The counts are cached between calls, and the cache isn't safe for several threads.
        with self._lock, self._store.database.snapshot() as connection:
            counts, total = self._counts.of(connection, list(expressions.values()))
        weights = {
            key: inverse_document_frequency(counts[expression], total)
            for key, expression in expressions.items()
            if counts[expression]
        }
        mean_weight = sum(weights.values()) / len(weights) if weights else 1.0
        return tuple(WeightedTerm(stems=key, weight=weights.get(key, mean_weight)) for key in expressions)

    def stems(self, texts: list[str]) -> list[frozenset[str]]:
        """Return the set of each text's stems."""
        return [
            frozenset(text_stems) for text_stems in self._stemmer.stems([tokenizer.segment(text) for text in texts])
        ]

    def close(self) -> None:
        """Close the stemmer."""
        self._stemmer.close()


def inverse_document_frequency(count: int, total: int) -> float:
    """Return the inverse document frequency, smoothed so that it stays above 0 in a vault of any size.

    Args:
        count: Chunks that hold the word.
        total: Chunks.
    """
    return math.log((max(total, count) + 1) / (count + 0.5))


MAX_ASPECTS: Final = 12
_ASPECT_END: Final = re.compile(
    r"(?<![.!?;:,])[.!?;:,]+(?=\s|$)|[\n()\[\]\u2026\u3001\u3002\uff0c\uff1a\uff1b\uff01\uff1f\u061f\u060c\u061b\u0964]+"
)
_WORD_RUN: Final = re.compile(r"\w+")
_MIN_ASPECT_CHARS: Final = 12
"""Fewest characters of a part of its own; a shorter one joins the part before it."""


def split_aspects(task: str) -> tuple[str, ...]:
    """Return a task's parts, at most `MAX_ASPECTS`; the last one takes the rest.

    ``"Plan the garden: which fence, and when to plant?"`` has three parts. Punctuation separates them, not words, so
    that it is the same in every language; a part without a word is dropped.
    """
    parts: list[str] = []
    for part in _ASPECT_END.split(task):
        text = part.strip()
        if not _WORD_RUN.search(text):
            continue
        if parts and (len(text) < _MIN_ASPECT_CHARS or len(parts) == MAX_ASPECTS):
            parts[-1] = f"{parts[-1]} {text}"
        else:
            parts.append(text)
    return tuple(parts)


_PROPERTIES_FENCE: Final = "---"
_PROPERTY_LINE: Final = re.compile(r"[\w .-]{1,60}:(?:\s|$)")
_PROPERTY_CONTINUATION: Final = re.compile(r"(?:\s+|- |#|$)")
_LINK_OR_TAG: Final = re.compile(r"!?\[\[[^\[\]\n]*\]\]|!?\[[^\[\]\n]*\]\([^()\n]*\)|<?https?://\S+|(?<!\S)#[\w/-]+")
_WORD_CHARACTER: Final = re.compile(r"\w")
_MIN_REPEATED_CHARS: Final = 8
"""Characters of a line whose repetition counts; shorter ones are list marks and table rules."""
_MAX_NAVIGATION_CHARS: Final = 3
"""Word characters that may stand beside links in a line of navigation: an arrow's label, a number."""


def boilerplate_share(text: str) -> float:
    """Return the share of a text's characters that is boilerplate; 0 for an empty one."""
    total = wasted = 0
    seen_lines: set[str] = set()
    for line, is_property in _content_lines(text):
        total += len(line)
        normalized = " ".join(line.casefold().split())
        repeated = len(normalized) >= _MIN_REPEATED_CHARS and normalized in seen_lines
        seen_lines.add(normalized)
        if is_property or repeated or is_navigation(line):
            wasted += len(line)
    return wasted / total if total else 0.0


def is_navigation(line: str) -> bool:
    """Return whether a line holds links or tags and next to nothing else: a menu, a trail, a list of links."""
    rest, links = _LINK_OR_TAG.subn(" ", line)
    return bool(links) and len(_WORD_CHARACTER.findall(rest)) <= _MAX_NAVIGATION_CHARS


def _content_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines that hold a word, and whether each is in properties."""
    lines = [line.strip("\r") for line in text.split("\n")]
    line_number = 0
    while line_number < len(lines):
        stop = _properties_end(lines, line_number)
        for line in lines[line_number : max(stop, line_number + 1)]:
            if _WORD_CHARACTER.search(line):
                yield line.strip(), stop > line_number
        line_number = max(stop, line_number + 1)


def _properties_end(lines: list[str], at: int) -> int:
    """Return where properties that begin in a line end; 0 where none do, as ``---`` also parts what scripts join."""
    if (
        not lines[at].rstrip().endswith(_PROPERTIES_FENCE)
        or at + 1 >= len(lines)
        or not _PROPERTY_LINE.match(lines[at + 1])
    ):
        return 0
    for place in range(at + 1, len(lines)):
        if lines[place].rstrip() == _PROPERTIES_FENCE:
            return place + 1
        if not (_PROPERTY_LINE.match(lines[place]) or _PROPERTY_CONTINUATION.match(lines[place])):
            return 0
    return 0


MAX_GROUNDING_TEXT: Final = 4_000_000
"""Most characters of source texts that are compared."""
_WORD: Final = re.compile(r"\w+")
_NGRAM_LENGTH: Final = 4
"""Words in a row that two texts hardly share by accident."""

Ngram: TypeAlias = tuple[str, ...]


def grounded_text(context: str, source_texts: Iterable[str], task: str) -> str:
    """Return the words of a context that come from the vault.

    A word does within four in a row that the vault has too, or in a line of which the vault has every word and the
    task doesn't have all: a short note, or a table that a script has made.

    Args:
        context: The script's context.
        source_texts: The texts that it was given.
        task: The task's text.

    Returns:
        Those words in order, line by line.
    """
    lines = [
        [(match.group(), match.group().casefold()) for match in _WORD.finditer(line)] for line in context.split("\n")
    ]
    words = [(number, original, folded) for number, line in enumerate(lines) for original, folded in line]
    known_words, runs = _match_ngrams([folded for *_, folded in words], source_texts)
    task_words = frozenset(_WORD.findall(task.casefold()))
    kept_words: list[list[str]] = [[] for _ in lines]
    grounded_lines: list[bool] = []
    for line in lines:
        folded_line = [folded for _, folded in line]
        is_known = bool(folded_line) and known_words.issuperset(folded_line)
        grounded_lines.append(is_known and not task_words.issuperset(folded_line))
    for place, (number, original, _) in enumerate(words):
        if runs[place] or grounded_lines[number]:
            kept_words[number].append(original)
    return "\n".join(" ".join(line) for line in kept_words if line)


def shown_texts(texts: Iterable[str], context: str) -> list[str]:
    """Return the part of each text that a context shows: words within four in a row that it holds, and short lines.

    A note that a script cites without showing its text adds nothing.
    """
    context_words = _folded_words(context)
    known_words = frozenset(context_words)
    ngrams = frozenset(zip(*(context_words[at:] for at in range(_NGRAM_LENGTH)), strict=False))
    shown: list[str] = []
    for text in texts:
        lines = [_WORD.findall(line) for line in text.split("\n")]
        words = [(number, word) for number, line in enumerate(lines) for word in line]
        folded = [word.casefold() for _, word in words]
        is_shown = [False] * len(words)
        for at in range(len(words) - _NGRAM_LENGTH + 1):
            if tuple(folded[at : at + _NGRAM_LENGTH]) in ngrams:
                is_shown[at : at + _NGRAM_LENGTH] = [True] * _NGRAM_LENGTH
        is_short_known = [
            len(line) < _NGRAM_LENGTH and known_words.issuperset(word.casefold() for word in line) for line in lines
        ]
        kept_words: list[list[str]] = [[] for _ in lines]
        for place, (number, word) in enumerate(words):
            if is_shown[place] or is_short_known[number]:
                kept_words[number].append(word)
        shown.append("\n".join(" ".join(line) for line in kept_words if line))
    return shown


def _match_ngrams(words: list[str], source_texts: Iterable[str]) -> tuple[set[str], list[bool]]:
    """Return the words that the sources hold, and for each place whether it is in a row of words that they hold."""
    places: dict[Ngram, list[int]] = {}
    for place in range(len(words) - _NGRAM_LENGTH + 1):
        places.setdefault(tuple(words[place : place + _NGRAM_LENGTH]), []).append(place)
    known_words: set[str] = set()
    is_matched = [False] * len(words)
    chars_left = MAX_GROUNDING_TEXT
    distinct_words = set(words)
    for text in source_texts:
        if chars_left <= 0:
            break
        text_words = _folded_words(text[:chars_left])
        chars_left -= len(text)
        known_words |= distinct_words.intersection(text_words)
        for at in range(len(text_words) - _NGRAM_LENGTH + 1):
            for place in places.pop(tuple(text_words[at : at + _NGRAM_LENGTH]), ()):
                is_matched[place : place + _NGRAM_LENGTH] = [True] * _NGRAM_LENGTH
    return known_words, is_matched


def _folded_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


NoteKey: TypeAlias = tuple[str, str]
"""A note, by its vault and path."""
RankNotes: TypeAlias = Callable[[str], Mapping[NoteKey, int]]
"""Returns the ranks of notes in the search for a text; the best is 0."""
FULL_COVERAGE: Final = 0.45
"""Share of an aspect's weight that one window must hold to count in full; with less, too many tasks pass of which the
vault knows nothing."""
CHANCE_COVERAGE: Final = 0.2
"""Share that any note may hold, since a task's common words are everywhere: about that of the best window of a few
notes taken at random."""
MISSING_BELOW: Final = 0.5
"""An aspect that is covered less is reported as missing."""
UNRANKED: Final = 1_000
"""The rank of a note that the search doesn't return."""
_WINDOW_CHARS: Final = 1_200
"""Characters; about a chunk of the index. Each begins in the middle of the one before."""
_MAX_COMPARED: Final = 50
"""Most notes whose texts are compared."""
_MAX_SCORED_CHARS: Final = 400_000
"""Most characters of cited text that are scored, shared equally between the notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """The weight of each part; the first three add up to 1."""

    overlap: float = 0.1
    coverage: float = 0.6
    diversity: float = 0.3
    boilerplate: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTargets:
    """How much a retrieval should bring."""

    context_chars: int = 2_000
    citations: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One of the things that a task asks about."""

    text: str
    terms: tuple[WeightedTerm, ...]
    ranks: Mapping[NoteKey, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationNeed:
    """What a task asks for."""

    text: str
    terms: tuple[WeightedTerm, ...]
    aspects: tuple[Aspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedMaterial:
    """The retrieved context with its sources and citations."""

    context: str
    source_texts: Sequence[str]
    """Texts that the vault returned."""
    cited_texts: Mapping[NoteKey, str]
    """By note, the text of all its cited spans."""
    citations: int
    """Number of citations that passed the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score and its parts, each from 0 to 1."""

    total: float = 0.0
    overlap: float = 0.0
    coverage: float = 0.0
    diversity: float = 0.0
    boilerplate: float = 0.0
    missing: tuple[str, ...] = ()
    """Aspects that no cited note covers by half."""

    def parts(self) -> dict[str, JSONValue]:
        """Return the parts as every surface shows them."""
        return {
            "overlap": self.overlap,
            "coverage": self.coverage,
            "diversity": self.diversity,
            "boilerplate": self.boilerplate,
        }


def analyze_task(task: str, vocabulary: Vocabulary, rank: RankNotes, named: Sequence[str] = ()) -> InformationNeed:
    """Work out what a task asks for.

    Args:
        task: Its text.
        vocabulary: The vault's words.
        rank: Searches the vault.
        named: Its aspects, where a plan has named them; otherwise the text is split at its punctuation.
    """
    texts = dict.fromkeys((task, *(named or split_aspects(task))))
    terms_by_text = [(text, vocabulary.terms(text)) for text in texts]
    aspect_list = (Aspect(text=text, terms=terms, ranks=rank(text)) for text, terms in terms_by_text if terms)
    return InformationNeed(text=task, terms=vocabulary.terms(task), aspects=tuple(aspect_list))


def score_retrieval(
    material: RetrievedMaterial,
    need: InformationNeed,
    vocabulary: Vocabulary,
    *,
    targets: ScoreTargets = ScoreTargets(),
    weights: ScoreWeights = ScoreWeights(),
) -> Score:
    """Score a retrieval.

    Args:
        material: What was retrieved.
        need: What the task asks for, from `analyze_task`.
        vocabulary: The vault's words.
        targets: How much there should be.
        weights: How much each part counts.
    """
    grounded = grounded_text(material.context, material.source_texts, need.text)
    names = " ".join(_note_name(place) for place in material.cited_texts)
    context_stems = vocabulary.stems([f"{grounded}\n{names}"])[0]
    chars_per_note = max(_MAX_SCORED_CHARS // max(len(material.cited_texts), 1), _WINDOW_CHARS)
    visible_texts = shown_texts((text[:chars_per_note] for text in material.cited_texts.values()), material.context)
    # The stems of each window of a note's shown text, with its name; none where nothing is shown.
    windows_by_note: dict[NoteKey, list[frozenset[str]]] = {}
    for place, text in zip(material.cited_texts, visible_texts, strict=True):
        starts = range(0, max(len(text) - _WINDOW_CHARS // 2, 1), _WINDOW_CHARS // 2)
        windows = [f"{_note_name(place)}\n{text[start : start + _WINDOW_CHARS]}" for start in starts]
        windows_by_note[place] = vocabulary.stems(windows) if text else []
    coverage_by_note = [[aspect_coverage(one, *note) for one in need.aspects] for note in windows_by_note.items()]
    degrees = [max((note[place] for note in coverage_by_note), default=0.0) for place in range(len(need.aspects))]
    target_shares = (min(len(grounded) / targets.context_chars, 1.0), min(material.citations / targets.citations, 1.0))
    parts = (
        weight_share(need.terms, context_stems),
        coverage_score(degrees, *target_shares),
        diversity_score(
            [frozenset[str]().union(*windows) for windows in windows_by_note.values()],
            [max(note, default=0.0) for note in coverage_by_note],
        ),
        boilerplate_share(material.context),
    )
    return Score(
        total=round(combine_parts(*parts, weights), 4),
        overlap=round(parts[0], 4),
        coverage=round(parts[1], 4),
        diversity=round(parts[2], 4),
        boilerplate=round(parts[3], 4),
        missing=tuple(one.text for one, degree in zip(need.aspects, degrees, strict=True) if degree < MISSING_BELOW),
    )


def combine_parts(overlap: float, covered: float, diverse: float, wasted: float, weights: ScoreWeights) -> float:
    """Return the weighted sum of the parts, clipped to 0 to 1."""
    gain = weights.overlap * overlap + weights.coverage * covered + weights.diversity * diverse
    return min(max(gain - weights.boilerplate * wasted, 0.0), 1.0)


def weight_share(terms: Sequence[WeightedTerm], stems: frozenset[str]) -> float:
    """Return the share of the terms' weight that a text holds; 0 where there is no term."""
    total = sum(term.weight for term in terms)
    return sum(term.weight for term in terms if stems.issuperset(term.stems)) / total if total else 0.0


def aspect_coverage(aspect: Aspect, place: NoteKey, windows: Sequence[frozenset[str]]) -> float:
    """Return how far a note's cited text covers an aspect, from 0 to 1."""
    best = max((weight_share(aspect.terms, window) for window in windows), default=0.0)
    degree = min(max(best - CHANCE_COVERAGE, 0.0) / (FULL_COVERAGE - CHANCE_COVERAGE), 1.0)
    return degree / math.log2(aspect.ranks.get(place, UNRANKED) + 2)


def coverage_score(degrees: Sequence[float], chars: float, citations: float) -> float:
    """Combine the coverage of each aspect with the shares of the targets for characters and citations."""
    mean_degree = sum(degrees) / len(degrees) if degrees else 0.0
    return mean_degree * (2 + chars + citations) / 4


def diversity_score(texts: Sequence[frozenset[str]], degrees: Sequence[float]) -> float:
    """Measure how many notes cover the task, and how different their texts are.

    Args:
        texts: The words of each note.
        degrees: How far each covers the aspect that it covers best, from 0 to 1.
    """
    degree_by_text: dict[frozenset[str], float] = {}
    for text, degree in zip(texts, degrees, strict=True):
        if text and degree:
            degree_by_text[text] = max(degree_by_text.get(text, 0.0), degree)
    # Comparing every pair is quadratic, so that only the notes with the best coverage are compared.
    distinct = sorted(degree_by_text, key=lambda text: -degree_by_text[text])[:_MAX_COMPARED]
    count = sum(degree_by_text[text] for text in distinct)
    if not count:
        return 0.0
    distances: list[float] = []
    for one in distinct:
        # The share of words that two texts have in common: Jaccard, 1912, the coefficient of community.
        nearest = max((len(one & other) / len(one | other) for other in distinct if other is not one), default=0.0)
        distances.append(degree_by_text[one] * (1 - nearest))
    return (1 - 0.5**count) * (sum(distances) / count)


def _note_name(place: NoteKey) -> str:
    return place[1].rpartition("/")[2].removesuffix(".md")
