"""The interface of a reranker, its settings and errors, and the order that its scores give."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from knapper.errors import SetupError

RerankerKind = Literal["off", "endpoint", "onnx"]
MAX_DOCUMENT_CHARS: Final = 4_000
"""Of a passage that are judged; models of this kind read some 500 tokens."""
MAX_QUERY_CHARS: Final = 2_000
_PAUSE_S: Final = 30.0
"""How long a reranker that failed isn't asked: a server that hangs would delay every search."""


class RerankerError(SetupError):
    """The reranker can't be used, now or as configured."""

    code = "reranker_unusable"


class Reranker(Protocol):
    """Judges how well passages answer a question, each together with the question."""

    def score(self, query: str, documents: Sequence[str]) -> Mapping[int, float]:
        """Return the relevance of each document by its place; a higher one is better, on a scale of the model's own.

        Raises:
            RerankerError: It doesn't answer, or not as it should.
        """
        ...

    def close(self) -> None:
        """Release connections and models."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings:
    """The settings of a reranker."""

    kind: RerankerKind = "off"
    base_url: str = ""
    """The address of a server with ``/rerank``: ``http://localhost:8080/v1``."""
    model: str = ""
    """Its name there; empty where the server has one alone."""
    api_key: str = field(default="", repr=False)
    folder: Path | None = None
    """The folder of a cross-encoder's files, for ``onnx``."""
    timeout_s: float = 3.0
    """For one question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """Whether and how hits are put into a better order."""

    open: Callable[[], Reranker]
    """Opens the reranker at the first search that needs it."""
    passages: int
    """How many of the best are judged."""


class PausingReranker:
    """A reranker that isn't asked for a while after it failed; thread-safe."""

    def __init__(self, reranking: Reranking, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Open the reranker on first use."""
        self._reranking = reranking
        self._clock = clock
        self._lock = threading.Lock()
        self._reranker: Reranker | None = None
        self._failure = ""
        self._again_at = -math.inf

    @property
    def passages(self) -> int:
        """Return how many of the best are judged."""
        return self._reranking.passages

    def score(self, query: str, documents: Sequence[str]) -> Mapping[int, float]:
        """Return the relevance of documents; see `Reranker.score`.

        Raises:
            RerankerError: It failed now, or a moment ago.
        """
        with self._lock:
            waiting_s = self._again_at - self._clock()
            if waiting_s > 0:
                raise RerankerError(f"{self._failure}; it is asked again in {math.ceil(waiting_s)} s")
        cut = [text[:MAX_DOCUMENT_CHARS] for text in documents]
        try:
            return self._open().score(query[:MAX_QUERY_CHARS], cut)
        except SetupError as error:
            with self._lock:
                self._failure, self._again_at = error.message, self._clock() + _PAUSE_S
            raise

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            if self._reranker is not None:
                self._reranker.close()

    def _open(self) -> Reranker:
        with self._lock:
            if self._reranker is None:
                self._reranker = self._reranking.open()
            return self._reranker


def order(scores: Mapping[int, float], count: int) -> list[int]:
    """Return the places of documents, best first; those without a score keep their order behind the others."""
    return sorted(range(count), key=lambda place: (-scores.get(place, -math.inf), place))
