"""Measure a table on public collections that took no part in its training."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from knapper.index.models.base import Embedder

_XQUAD: Final = ("en", "de", "es", "ru", "zh", "ar", "tr", "vi")
_TATOEBA: Final = ("deu", "fra", "spa", "jpn", "cmn", "rus", "kor", "nld", "pol", "tur")
_SENTENCES: Final = 1_000
_DEEPEST: Final = 10
_EACH: Final = 3
"""Every third question is asked."""


def measure_public(embedder: Embedder, xquad: Path, tatoeba: Path) -> Iterator[str]:
    """Yield a line for each collection: the mean, and each language.

    XQuAD: a question to one of 240 paragraphs, MRR@10, in its own language and in English. Tatoeba: the translation
    among 1,000 sentences, accuracy.

    Args:
        embedder: What is measured.
        xquad: The folder of ``xquad.XX.json``.
        tatoeba: The folder of ``tatoeba.XXX-eng.XXX``.
    """
    collections = {language: _read_questions(embedder, xquad / f"xquad.{language}.json") for language in _XQUAD}
    english = collections["en"][0]
    yield _line("XQuAD, same language", {name: _rank(q, p, right) for name, (p, q, right) in collections.items()})
    others = {name: one for name, one in collections.items() if name != "en"}
    yield _line("XQuAD, to English", {name: _rank(q, english, right) for name, (_, q, right) in others.items()})
    yield _line("Tatoeba", {language: _translate(embedder, tatoeba, language) for language in _TATOEBA})


def _read_questions(
    embedder: Embedder, path: Path
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.intp]]:
    """Return the vectors of paragraphs and questions, and each question's paragraph."""
    paragraphs: list[str] = []
    questions: list[tuple[str, int]] = []
    data: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["data"]
    for paragraph in (paragraph for article in data for paragraph in article["paragraphs"]):
        questions += [(one["question"], len(paragraphs)) for one in paragraph["qas"]]
        paragraphs.append(paragraph["context"])
    asked = questions[::_EACH]
    right = np.array([place for _, place in asked], np.intp)
    return embedder.passages(paragraphs), embedder.passages([text for text, _ in asked]), right


def _rank(questions: NDArray[np.float32], paragraphs: NDArray[np.float32], right: NDArray[np.intp]) -> float:
    scores = questions @ paragraphs.T
    ranks = (scores > scores[np.arange(len(right)), right][:, None]).sum(axis=1) + 1
    return float(np.mean(np.where(ranks <= _DEEPEST, 1 / ranks, 0)))


def _translate(embedder: Embedder, folder: Path, language: str) -> float:
    texts = [
        [line for line in path.read_text(encoding="utf-8").split("\n")[:_SENTENCES] if line]
        for path in (folder / f"tatoeba.{language}-eng.{end}" for end in (language, "eng"))
    ]
    count = min(map(len, texts))
    own, english = (embedder.passages(one[:count]) for one in texts)
    return float(np.mean((own @ english.T).argmax(axis=1) == np.arange(count)))


def _line(name: str, values: dict[str, float]) -> str:
    each = ", ".join(f"{language} {value:.3f}" for language, value in values.items())
    return f"{name}: {np.mean(list(values.values())):.3f} ({each})"
