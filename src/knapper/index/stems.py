"""Reduce words to stems, exactly as the word index does."""

import sqlite3
import threading
from collections.abc import Sequence

from knapper.index.segment import TOKENIZER

_KEPT = 20_000
"""Texts whose stems are remembered: names of notes and words of questions, which come again and again."""
_SHORT = 200
"""Characters of a text that is remembered."""


class Stemmer:
    """Ask SQLite's own tokenizer, by way of a table in memory; a short text takes about 0.05 ms."""

    def __init__(self) -> None:
        """Make the table."""
        self._lock = threading.Lock()
        self._known: dict[str, Sequence[str]] = {}
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute(f'CREATE VIRTUAL TABLE texts USING fts5(text, tokenize="{TOKENIZER}")')
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(texts, instance)")

    def stems(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Give each text's stems in order: ``["Running notes"]`` gives ``[("run", "note")]``."""
        with self._lock:
            anew = list(dict.fromkeys(text for text in texts if text not in self._known))
            found = dict(zip(anew, self._tokenized(anew), strict=True)) if anew else {}
            told = [found[text] if text in found else self._known[text] for text in texts]
            if len(self._known) + len(found) > _KEPT:
                self._known.clear()
            self._known.update((text, stems) for text, stems in found.items() if len(text) <= _SHORT)
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
