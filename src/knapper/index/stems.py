"""Reduce words to stems, exactly as the word index does."""

import sqlite3
import threading
from collections.abc import Sequence

from knapper.index.segment import TOKENIZER

_KEPT = 20_000
"""Words whose stems are remembered: those of notes' names and of questions, which come again and again."""
_SHORT = 100
"""Characters of a word that is remembered."""
CUT = "\ufffd"
"""Stands where SQLite has cut a word of over 32 kB inside of a character; no other stem holds it."""


class Stemmer:
    """Ask SQLite's own tokenizer, by way of a table in memory; a word takes about 0.01 ms."""

    def __init__(self) -> None:
        """Make the table."""
        self._lock = threading.Lock()
        self._known: dict[str, Sequence[str]] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.text_factory = _decoded
        self._connection.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize="{TOKENIZER}")')
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(texts, instance)")

    def stems(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Give each text's stems in order: ``["Running notes"]`` gives ``[("run", "note")]``.

        Words between spaces are stemmed each by itself, so that of a new text mostly all are known.
        """
        words = [text.split() for text in texts]
        with self._lock:
            anew = list({word for held in words for word in held if word not in self._known})
            if anew:
                self._known.update(zip(anew, self._tokenized(anew), strict=True))
            told: list[Sequence[str]] = [tuple(stem for word in held for stem in self._known[word]) for held in words]
            if len(self._known) > _KEPT:
                self._known.clear()
            for word in anew:
                if len(word) > _SHORT:
                    self._known.pop(word, None)
        return told

    def close(self) -> None:
        """Close the table."""
        self._connection.close()

    def _tokenized(self, texts: Sequence[str]) -> list[Sequence[str]]:
        found: list[list[str]] = [[] for _ in texts]
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts, start=1))
        for number, stem in self._connection.execute("SELECT doc, term FROM stems ORDER BY doc, offset"):
            found[int(number) - 1].append(str(stem))
        self._connection.execute("ROLLBACK")
        return [tuple(stems) for stems in found]


def _decoded(stem: bytes) -> str:
    return stem.decode(errors="replace")
