"""Split texts into the words of a vault's index, and weigh them by how rare they are there."""

import math
import re
import threading
from dataclasses import dataclass
from typing import Final

from knapper.index import tokenizer
from knapper.index.fulltext import RowCounts
from knapper.index.store import IndexStore
from knapper.index.tokenizer import Stemmer

_OPERATORS: Final = re.compile(r'["“”„«»*]|(?<!\S)-+')
_TABLE: Final = "chunk_words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Hold a word of a task, reduced to its stems as the index reduces it, and what it weighs."""

    stems: tuple[str, ...]
    weight: float
    """Above 0; a word that half of the vault uses weighs a tenth of one that a single place uses."""


class Vocabulary:
    """Know the words of one vault; any thread may ask."""

    def __init__(self, store: IndexStore) -> None:
        """Count in an index's store."""
        self._store = store
        self._stemmer = Stemmer()
        self._counts = RowCounts(_TABLE)
        self._lock = threading.Lock()

    def terms(self, text: str) -> tuple[Term, ...]:
        """Give a text's distinct words with their weights, in order; nothing in it is an operator.

        A word that nothing in the vault holds weighs as much as the others do on average: it may be what the task is
        about, or a mere turn of phrase, and no count tells which.
        """
        words = tokenizer.parse_query(_OPERATORS.sub(" ", text)).words
        stems = [tuple(found) for found in self._stemmer.stems([word.text for word in words])]
        expressions = {key: word.expression() for key, word in zip(stems, words, strict=True) if key}
        if not expressions:
            return ()
        with self._lock, self._store.database.snapshot() as connection:
            counts, total = self._counts.of(connection, list(expressions.values()))
        known = {key: rarity(counts[one], total) for key, one in expressions.items() if counts[one]}
        usual = sum(known.values()) / len(known) if known else 1.0
        return tuple(Term(stems=key, weight=known.get(key, usual)) for key in expressions)

    def stems(self, texts: list[str]) -> list[frozenset[str]]:
        """Give the set of each text's stems."""
        return [frozenset(found) for found in self._stemmer.stems([tokenizer.segment(text) for text in texts])]

    def close(self) -> None:
        """Close what splits words."""
        self._stemmer.close()


def rarity(count: int, total: int) -> float:
    """Give the inverse document frequency, smoothed so that it stays above 0 in a vault of any size.

    Args:
        count: Chunks that hold the word.
        total: Chunks.
    """
    return math.log((max(total, count) + 1) / (count + 0.5))
