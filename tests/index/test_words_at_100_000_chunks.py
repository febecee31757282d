"""At 100,000 chunks each word of a question counts, with the scores of BM25 counted in plain Python."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from itertools import accumulate

import numpy as np
import pytest

from knapper.index.engine import Engine
from knapper.index.tokenizer import Stemmer, parse_query, segment
from knapper.index.words import fulltext
from knapper.index.words.fts5 import CHUNKS
from tests.index import word_engines, worlds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
CHUNK_COUNT, NOTE_COUNT, QUESTION_COUNT, LIMIT = 100_000, 1_000, 300, 10
VOCABULARY = [
    f"{first}{second}{third}" for first in "bdgkmprt" for second in ("alo", "eri", "unka") for third in range(400)
]
ODDS = list(accumulate(1 / rank for rank in range(1, len(VOCABULARY) + 1)))
"""As in a language: the second word is half as frequent as the first, and so on."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Generator[Engine]:
    pick, folder = random.Random(11), tmp_path_factory.mktemp("large")
    notes = {f"note {number}.md": _note(pick) for number in range(NOTE_COUNT)}
    with worlds.engine(worlds.fill(folder / "v", notes), folder / "s") as engine:
        engine.refresh()
        yield engine


def test_300_questions_are_ranked_exactly(engine: Engine) -> None:
    pick, stemmer = random.Random(12), Stemmer()
    ranker = fulltext.KeywordRanker(engine.folder)
    questions = [" ".join(dict.fromkeys(_words(pick, pick.randrange(1, 13)))) for _ in range(QUESTION_COUNT)]
    assert word_engines.is_derived(engine)
    with engine.store.database.snapshot() as connection:
        sql = "SELECT c.id, f.title, c.path, c.text FROM chunks c JOIN files f ON f.id = c.id >> 20"
        counted = _Bm25(connection.execute(sql).fetchall(), stemmer)
        wrong = [
            question
            for question in questions
            if not word_engines.is_same(
                ranker.chunks(connection, parse_query(question), limit=LIMIT, allowed=None),
                counted.best(stemmer.stems([question])[0]),
            )
        ]
    ranker.close()
    stemmer.close()

    assert len(counted.lengths) >= CHUNK_COUNT
    assert wrong == []


class _Bm25:
    """Every chunk's words, counted without the index."""

    def __init__(self, rows: Sequence[tuple[int, str, str, str]], stemmer: Stemmer) -> None:
        postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        lengths: list[int] = []
        for place, (_, *texts) in enumerate(rows):
            weights: defaultdict[str, float] = defaultdict(float)
            columns = stemmer.stems([segment(text) for text in texts])
            for weight, terms in zip(CHUNKS.weights, columns, strict=True):
                for term in terms:
                    weights[term] += weight
            lengths.append(sum(map(len, columns)))
            for term, weight in weights.items():
                postings[term].append((place, weight))
        self.ids = np.array([chunk for chunk, *_ in rows])
        self.lengths = np.array(lengths)
        self.postings = {term: np.array(found) for term, found in postings.items()}

    def best(self, terms: Sequence[str]) -> Mapping[int, float]:
        total = len(self.ids)
        scores = np.zeros(total)
        saturation = 1.2 * (0.25 + 0.75 * self.lengths / self.lengths.mean())
        for term, times in Counter(terms).items():
            if term in self.postings:
                places, weights = self.postings[term][:, 0].astype(int), self.postings[term][:, 1]
                idf = max(math.log((total - len(places) + 0.5) / (len(places) + 0.5)), 1e-6)
                scores[places] += times * idf * weights * 2.2 / (weights + saturation[places])
        best = np.lexsort((self.ids, -scores))[:LIMIT]
        return {int(self.ids[place]): float(scores[place]) for place in best if scores[place] > 0}


def _note(pick: random.Random) -> str:
    """Make a note of a hundred sections."""
    sections = CHUNK_COUNT // NOTE_COUNT + 1
    return "\n".join(f"## {' '.join(_words(pick, 2))}\n\n{' '.join(_words(pick, 24))}\n" for _ in range(sections))


def _words(pick: random.Random, count: int) -> list[str]:
    return pick.choices(VOCABULARY, cum_weights=ODDS, k=count)
