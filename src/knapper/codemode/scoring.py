"""Score what was retrieved for a task, whatever the script says of itself.

``score = w1 * overlap + w2 * coverage + w3 * diversity - w4 * boilerplate``, each part from 0 to 1, and the score too.

* *Overlap* is the share of the task's distinct words that the retrieved text and the cited notes' names hold, each
  weighted by how rare it is in this vault. Only text that the vault has said counts (see `knapper.codemode.grounding`),
  so a context can't score by repeating its task. Whether *one* place holds them is what the next part asks.
* *Coverage* is the share of the task's aspects, of which the whole task is one, that have a cited hit, together with
  the share of the least characters and citations that is there. A cited hit is a note that the vault's own search
  brings for the aspect, cited at a place that says it and that the context shows. It counts in full where it comes
  first and a stretch of the shown text holds much of the aspect's weight; less where it says less, or comes later: by
  the logarithm of its place, as in discounted cumulative gain. What any stretch holds by chance counts for nothing.
* *Diversity* is how many distinct notes are cited that deal with an aspect (one is half, two are three quarters, and so
  on; one that deals with it by half is half a note), times how far their texts are apart. Copies of one note are one
  note. Notes that say nothing of the task are the most diverse of all, and don't count.
* *Boilerplate* is the share of properties, navigation and repeated lines.

The weights were chosen on one half of judged queries and are reported on the other: ``python -m bench retrieval``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from knapper.codemode import aspects, boilerplate, grounding
from knapper.codemode.vocabulary import Term, Vocabulary
from knapper.jsontypes import JSONValue

Place: TypeAlias = tuple[str, str]
"""A note, by its vault and path."""
Rank: TypeAlias = Callable[[str], Mapping[Place, int]]
"""Gives the places of notes in the search for a text; the best is 0."""
DEALT_WITH: Final = 0.45
"""Share of an aspect's weight that one stretch has to hold; less lets too many tasks pass of which the vault knows
nothing."""
BY_CHANCE: Final = 0.2
"""Share that any note may hold, since a task's common words stand everywhere: about as much as the best stretch of a
few notes taken at random."""
MISSING: Final = 0.5
"""An aspect that is dealt with less far is named as missing."""
LAST: Final = 1_000
"""The place of a note that the search doesn't bring."""
_STRETCH: Final = 1_200
"""Characters; about a chunk of the index. Each begins in the middle of the one before."""
_MOST_COMPARED: Final = 50
"""Notes whose texts are compared."""
_MOST_READ: Final = 400_000
"""Characters of cited text that are looked at, each note's share being the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Say how much each part counts; the first three add up to 1."""

    overlap: float = 0.1
    coverage: float = 0.6
    diversity: float = 0.3
    boilerplate: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """Say how much a retrieval should bring."""

    context_chars: int = 2_000
    citations: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """Hold one of the things that a task asks about."""

    text: str
    terms: tuple[Term, ...]
    ranks: Mapping[Place, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Hold what a task asks for."""

    text: str
    terms: tuple[Term, ...]
    aspects: tuple[Aspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Hold what was retrieved."""

    context: str
    heard: Sequence[str]
    """Texts that the vault has given."""
    cited: Mapping[Place, str]
    """By note, the text of all its cited spans."""
    citations: int
    """That hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Hold a score and its parts, each from 0 to 1."""

    total: float = 0.0
    overlap: float = 0.0
    coverage: float = 0.0
    diversity: float = 0.0
    boilerplate: float = 0.0
    missing: tuple[str, ...] = ()
    """Aspects that no cited note deals with by half."""

    def parts(self) -> dict[str, JSONValue]:
        """Shape the parts as every surface shows them."""
        return {
            "overlap": self.overlap,
            "coverage": self.coverage,
            "diversity": self.diversity,
            "boilerplate": self.boilerplate,
        }


def needs(task: str, vocabulary: Vocabulary, rank: Rank, named: Sequence[str] = ()) -> Needs:
    """Work out what a task asks for.

    Args:
        task: Its text.
        vocabulary: The vault's words.
        rank: Searches the vault.
        named: Its aspects, where a plan has named them; otherwise the text is split at its marks.
    """
    texts = dict.fromkeys((task, *(named or aspects.split(task))))
    known = [(text, vocabulary.terms(text)) for text in texts]
    found = (Aspect(text=text, terms=terms, ranks=rank(text)) for text, terms in known if terms)
    return Needs(text=task, terms=vocabulary.terms(task), aspects=tuple(found))


def score(
    material: Material, wanted: Needs, vocabulary: Vocabulary, *, least: Least = Least(), weights: Weights = Weights()
) -> Score:
    """Score a retrieval.

    Args:
        material: What was retrieved.
        wanted: What was asked for, from `needs`.
        vocabulary: The vault's words.
        least: How much there should be.
        weights: How much each part counts.
    """
    spoken = grounding.grounded(material.context, material.heard, wanted.text)
    names = " ".join(_name(place) for place in material.cited)
    said = vocabulary.stems([f"{spoken}\n{names}"])[0]
    most = max(_MOST_READ // max(len(material.cited), 1), _STRETCH)
    seen = grounding.shown((text[:most] for text in material.cited.values()), material.context)
    notes = {place: _stretches(place, text, vocabulary) for place, text in zip(material.cited, seen, strict=True)}
    told = [[dealt_with(one, *note) for one in wanted.aspects] for note in notes.items()]
    degrees = [max((note[place] for note in told), default=0.0) for place in range(len(wanted.aspects))]
    brought = (min(len(spoken) / least.context_chars, 1.0), min(material.citations / least.citations, 1.0))
    parts = (
        share(wanted.terms, said),
        coverage(degrees, *brought),
        diversity(
            [frozenset[str]().union(*stretches) for stretches in notes.values()],
            [max(note, default=0.0) for note in told],
        ),
        boilerplate.share(material.context),
    )
    return Score(
        total=round(joined(*parts, weights), 4),
        overlap=round(parts[0], 4),
        coverage=round(parts[1], 4),
        diversity=round(parts[2], 4),
        boilerplate=round(parts[3], 4),
        missing=tuple(one.text for one, degree in zip(wanted.aspects, degrees, strict=True) if degree < MISSING),
    )


def joined(overlap: float, covered: float, diverse: float, wasted: float, weights: Weights) -> float:
    """Join the parts; what falls below 0 is 0."""
    good = weights.overlap * overlap + weights.coverage * covered + weights.diversity * diverse
    return min(max(good - weights.boilerplate * wasted, 0.0), 1.0)


def share(terms: Sequence[Term], said: frozenset[str]) -> float:
    """Give the share of the terms' weight that a text holds; 0 where there is no term."""
    total = sum(term.weight for term in terms)
    return sum(term.weight for term in terms if said.issuperset(term.stems)) / total if total else 0.0


def dealt_with(aspect: Aspect, place: Place, stretches: Sequence[frozenset[str]]) -> float:
    """Tell how far a note's cited text deals with an aspect, from 0 to 1."""
    best = max((share(aspect.terms, stretch) for stretch in stretches), default=0.0)
    said = min(max(best - BY_CHANCE, 0.0) / (DEALT_WITH - BY_CHANCE), 1.0)
    return said / math.log2(aspect.ranks.get(place, LAST) + 2)


def coverage(degrees: Sequence[float], chars: float, citations: float) -> float:
    """Join how far each aspect is dealt with, and the shares of the least characters and citations."""
    dealt = sum(degrees) / len(degrees) if degrees else 0.0
    return dealt * (2 + chars + citations) / 4


def diversity(texts: Sequence[frozenset[str]], degrees: Sequence[float]) -> float:
    """Measure how many notes deal with the task, and how little they say the same.

    Args:
        texts: The words of each note.
        degrees: How far each deals with that aspect with which it deals best, from 0 to 1.
    """
    known: dict[frozenset[str], float] = {}
    for text, degree in zip(texts, degrees, strict=True):
        if text and degree:
            known[text] = max(known.get(text, 0.0), degree)
    distinct = sorted(known, key=lambda text: -known[text])[:_MOST_COMPARED]
    count = sum(known[text] for text in distinct)
    if not count:
        return 0.0
    apart = sum(known[one] * _distance(one, distinct) for one in distinct) / count
    return (1 - 0.5**count) * apart


def _stretches(place: Place, text: str, vocabulary: Vocabulary) -> list[frozenset[str]]:
    """Give the words of each stretch of what is shown of a note, its name with each; none where nothing is."""
    if not text:
        return []
    starts = range(0, max(len(text) - _STRETCH // 2, 1), _STRETCH // 2)
    return vocabulary.stems([f"{_name(place)}\n{text[start : start + _STRETCH]}" for start in starts])


def _name(place: Place) -> str:
    return place[1].rpartition("/")[2].removesuffix(".md")


def _distance(text: frozenset[str], others: Sequence[frozenset[str]]) -> float:
    """Tell how far a text is from the nearest other one, from 0 to 1."""
    return 1 - max((_alike(text, other) for other in others if other is not text), default=0.0)


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Give the share of words that two texts have in common.

    Source: Jaccard, 1912, the coefficient of community.
    """
    return len(one & other) / len(one | other)
