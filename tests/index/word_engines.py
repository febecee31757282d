"""What every engine for words has to answer, counted in plain Python, and a process that writes until it is killed.

python -m tests.index.word_engines VAULT STATE SEED     changes, saves and derives until somebody ends it
"""

import math
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from knapper.errors import KnapError
from knapper.index import database
from knapper.index.engine import Engine
from knapper.index.tokenizer import Query, Stemmer, Term, parse_query, segment
from knapper.index.words import bm25, fts5, fulltext, postings
from knapper.index.words.fts5 import CHUNKS, WordTable
from tests.index import worlds

WORDS = ("rain", "rains", "wind", "windy", "sun-dial", "ÜBER", "日本", "storm", "cloud", "x")
QUESTIONS = (
    "rain",
    "raining winds",
    "rain rain wind storm",
    "win* cloud",
    "sun-dial über",
    "sun-dial sun sun",
    '"rain wind" storm',
    '"sun dial"',
    "rain -storm",
    'wind "x rain" -cloud -"rain storm"',
    "日本 rain",
    "absent rain",
    "absent",
    '"absent rain" wind',
    'absent "rain wind"',
)


class Reference:
    """All rows of a full-text table, split into terms."""

    def __init__(self, rows: Iterable[Sequence[Any]], table: WordTable, stemmer: Stemmer) -> None:
        """Take rows of an id and the columns' texts."""
        self.table, self.stemmer = table, stemmer
        self.rows: dict[int, list[Sequence[str]]] = {
            row_id: [stemmer.stems([segment(text) if table is CHUNKS else text])[0] for text in texts]
            for row_id, *texts in rows
        }
        self.mean = sum(len(terms) for row in self.rows.values() for terms in row) / max(len(self.rows), 1)

    @classmethod
    def read(cls, connection: sqlite3.Connection, table: WordTable, stemmer: Stemmer) -> Self:
        """Read the rows as one state of the index has them."""
        sql = "SELECT id, title_row ->> 0, title_row ->> 1, title_row ->> 2 FROM files WHERE kind = 'note'"
        if table is CHUNKS:
            sql = "SELECT c.id, f.title, c.path, c.text FROM chunks c JOIN files f ON f.id = c.id >> 20"
        return cls(connection.execute(sql).fetchall(), table, stemmer)

    def best(self, query: Query, limit: int, files: Collection[int] | None = None) -> list[tuple[int, float]]:
        """Return the first rows for a query, best first."""
        scores: dict[int, float] = {}
        times = self._times(query)
        found = [self._scores(term) for term in times]
        matching = {row_id for one in found for row_id in one}
        for often, one in zip(times.values(), found, strict=True):
            for row_id, score in one.items():
                scores[row_id] = scores.get(row_id, 0.0) + often * score
        for term in query.phrases:
            one = self._scores(term)
            matching = {row_id for row_id in one if row_id in matching or not any(found)}
            found = found if any(found) else [one]
            for row_id, score in one.items():
                scores[row_id] = scores.get(row_id, 0.0) + score
        matching -= {row_id for term in query.excluded for row_id in self._scores(term)}
        ranked = [
            (row_id, scores[row_id]) for row_id in matching if files is None or row_id >> self.table.file_shift in files
        ]
        return sorted(ranked, key=lambda one: (-one[1], one[0]))[:limit]

    def _times(self, query: Query) -> dict[Term, int]:
        """Return how often a question says each word, in any form."""
        said = Counter(self.stemmer.stems([query.plain])[0])
        stems_of = {term: (*self.stemmer.stems([term.text])[0], term.prefix) for term in query.content}
        first_of = {stems: term for term, stems in reversed(stems_of.items())}
        return {
            term: min(max(1, min((said[stem] for stem in stems[:-1]), default=1)), fulltext.MAX_REPEATS)
            for term, stems in stems_of.items()
            if first_of[stems] == term
        }

    def _scores(self, term: Term) -> dict[int, float]:
        stems = self.stemmer.stems([term.text])[0]
        counts = {
            row_id: sum(
                weight * self._count(stems, term, column)
                for weight, column in zip(self.table.weights, columns, strict=True)
            )
            for row_id, columns in self.rows.items()
        }
        counts = {row_id: count for row_id, count in counts.items() if count}
        total = len(self.rows)
        idf = max(math.log((total - len(counts) + 0.5) / (len(counts) + 0.5)), 1e-6)
        return {
            row_id: idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * sum(map(len, self.rows[row_id])) / self.mean))
            for row_id, count in counts.items()
        }

    @staticmethod
    def _count(stems: Sequence[str], term: Term, column: Sequence[str]) -> int:
        def fits(at: int) -> bool:
            *first, last = column[at : at + len(stems)]
            is_last = last.startswith(stems[-1]) if term.prefix else last == stems[-1]
            return is_last and tuple(first) == tuple(stems[:-1])

        return sum(fits(at) for at in range(len(column) - len(stems) + 1)) if stems else 0


def note(pick: random.Random) -> str:
    """Make a note of a few headings and words."""
    parts = [f"# {' '.join(pick.choices(WORDS, k=pick.randrange(1, 4)))}\n"]
    for _ in range(pick.randrange(1, 5)):
        parts.append(f"## {' '.join(pick.choices(WORDS, k=pick.randrange(1, 3)))}\n")
        parts.append(f"{' '.join(pick.choices(WORDS, k=pick.randrange(1, 60)))}\n")
    return "\n".join(parts)


def vault(pick: random.Random, count: int) -> dict[str, str]:
    """Make notes by name, each name made of the same words."""
    return {f"{pick.choice(WORDS)} {pick.choice(WORDS)} {number}.md": note(pick) for number in range(count)}


def change(root: Path, pick: random.Random) -> None:
    """Save, add, rename and delete some notes."""
    files = sorted(root.glob("*.md"))
    for file in pick.sample(files, min(6, len(files))):
        match pick.randrange(4):
            case 0 if len(files) > 8:
                file.unlink()
            case 1:
                file.rename(file.with_name(f"{pick.choice(WORDS)} {pick.randrange(10**9)}.md"))
            case 2:
                file.write_text(f"{file.read_text('utf-8')}\n{pick.choice(WORDS)}\n", "utf-8")
            case _:
                file.write_text(note(pick), "utf-8")
    worlds.fill(root, vault(pick, 2))


def answers(ranker: fulltext.KeywordRanker, connection: sqlite3.Connection) -> dict[str, Mapping[int, float]]:
    """Ask all questions, of chunks and of names."""
    found: dict[str, Mapping[int, float]] = {}
    for question in QUESTIONS:
        query = parse_query(question)
        found[question] = ranker.chunks(connection, query, limit=20, allowed=None)
        found[f"names: {question}"] = ranker.names(connection, query, allowed=None).by_file
    return found


def differences(folder: Path, index: database.Database, *, states: int = 1) -> list[str]:
    """Compare the two engines in several states of an index; return the questions with other answers."""
    derived, plain = fulltext.KeywordRanker(folder), fulltext.KeywordRanker(None)
    wrong: list[str] = []
    for _ in range(states):
        with index.snapshot() as connection:
            first, second = answers(derived, connection), answers(plain, connection)
            wrong += [question for question in first if not is_same(first[question], second[question])]
    derived.close()
    plain.close()
    return wrong


def is_same(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Return whether the scores are the same to twelve digits.

    Sums in another order differ in the last digit, so that of the rows with the lowest score others may be the last.
    """
    pairs = zip(sorted(one.values()), sorted(other.values()), strict=False)
    is_close = len(one) == len(other) and all(math.isclose(a, b, rel_tol=1e-12) for a, b in pairs)
    lowest = min(one.values(), default=0.0)
    missing = [one[row_id] for row_id in one.keys() - other.keys()]
    is_kept = all(math.isclose(one[row_id], other[row_id], rel_tol=1e-12) for row_id in one.keys() & other.keys())
    return is_close and is_kept and all(math.isclose(score, lowest, rel_tol=1e-12) for score in missing)


def is_derived(engine: Engine) -> bool:
    """Return whether the engine's index has a whole file of postings."""
    with engine.store.database.snapshot() as connection:
        return bm25.PostingsEngine(engine.folder).is_ready(connection)


def write_forever(root: Path, state: Path, seed: int) -> None:
    """Change notes, take them in and derive the file, again and again."""
    pick = random.Random(seed)
    with worlds.engine(root, state) as engine:
        engine.refresh()
        postings.build(engine.store.database)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            change(root, pick)
            with suppress(KnapError):
                engine.refresh(check=False)
                if pick.random() < 0.4:
                    postings.build(engine.store.database)
                if pick.random() < 0.1:
                    with engine.store.database.transaction() as connection:
                        fts5.stop_recording(connection)


if __name__ == "__main__":
    write_forever(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
