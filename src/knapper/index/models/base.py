"""The interfaces of embedders and rerankers, their settings and errors, and the floor of a model's cosines.

Cosines of different models can't be compared: unrelated texts reach 0.1 with one and 0.8 with another. So each model
embeds the same short questions and passages, each pair about something else, and the floor is set above nearly all
cosines between a question and the passages that don't belong to it. It depends on the model alone and not on the vault:
notes that are all about one subject resemble each other, and would raise a floor learnt from them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from knapper.errors import SetupError
from knapper.system.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


EmbedderKind = Literal["static", "e5", "endpoint", "onnx", "none"]


class EmbedderError(SetupError):
    """The embedder can't be used as configured."""

    code = "embedder_unusable"


class EmbedderUnavailable(EmbedderError):
    """The embedder doesn't answer now, but may later."""

    code = "embedder_away"


class EmbedderStopped(EmbedderError):
    """The embedding was stopped on request."""

    code = "stopping"


class Embedder(Protocol):
    """An embedder of texts to vectors whose dot product is their similarity in meaning.

    Vectors have length 1; an empty text has a vector of zeros.
    """

    @property
    def model_id(self) -> str:
        """Return an id of all that a vector depends on: vectors of different ids can't be compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions; may load the model or send a request."""
        ...

    @property
    def instant(self) -> bool:
        """Return whether a few hundred passages are embedded fast enough within a search."""
        ...

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows of a matrix of n by ``dimensions``.

        Args:
            texts: The texts to embed.
            stop: Ends the wait for a server by `EmbedderStopped`.
        """
        ...

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query."""
        ...

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        """Return those words of which no part has a meaning to the model; empty where it can't tell."""
        ...

    def close(self) -> None:
        """Release connections and models; the embedder can't be used afterwards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """The settings of an embedder."""

    kind: EmbedderKind = "static"
    model: str = ""
    """Its name at the endpoint, or in the ONNX library; empty for the recommended one."""
    base_url: str = ""
    """The endpoint's address: ``http://localhost:11434`` or ``https://api.example.org/v1``."""
    api_key: str = field(default="", repr=False)
    query_prefix: str | None = None
    """Prefix of a query; None takes the one that the model is known to need."""
    passage_prefix: str | None = None
    """Prefix of texts that are searched."""
    batch: int = 32
    """Texts in one request, or in one run of a model."""
    timeout_s: float = 60.0
    """Time for one request that embeds passages."""
    env_proxies: bool = False
    """Use the proxies of the environment."""
    folder: Path | None = None
    """Folder of a model's files, for ``static``, ``e5`` and ``onnx``; None takes the package's own, or those in the
    cache. ``e5`` needs one."""
    cache: Path | None = None
    """Where ``onnx`` stores downloaded models; None leaves it to the library, which uses a temporary folder."""
    threads: int | None = None
    """Threads of ``e5`` and ``onnx``; None leaves it to the library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """The prefixes of texts."""

    query: str = ""
    passage: str = ""


_BGE = Prefixes(query="Represent this sentence for searching relevant passages: ")
_BGE_ZH = Prefixes(query="为这个句子生成表示以用于检索相关文章\N{FULLWIDTH COLON}")
_KNOWN_PREFIXES = (
    ("multilingual-e5", Prefixes(query="query: ", passage="passage: ")),
    ("e5-", Prefixes(query="query: ", passage="passage: ")),
    ("nomic-embed-text", Prefixes(query="search_query: ", passage="search_document: ")),
    ("mxbai-embed-large", _BGE),
    ("embeddinggemma", Prefixes(query="task: search result | query: ", passage="title: none | text: ")),
    (
        "qwen3-embedding",
        Prefixes(
            query="Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        ),
    ),
    ("snowflake-arctic-embed2", Prefixes(query="query: ")),
    ("snowflake-arctic-embed-m-v2", Prefixes(query="query: ")),
    ("snowflake-arctic-embed-l-v2", Prefixes(query="query: ")),
    ("snowflake-arctic-embed", _BGE),
    ("bge-m3", Prefixes()),
    ("bge-multilingual-gemma2", Prefixes()),
    ("bge-small-zh", _BGE_ZH),
    ("bge-base-zh", _BGE_ZH),
    ("bge-large-zh", _BGE_ZH),
    ("bge-", _BGE),
)
"""By beginnings of model names without their owner, from the models' documentation; the first that fits counts."""


def choose_prefixes(settings: EmbedderSettings) -> Prefixes:
    """Return the configured prefixes; where they are None, those that the model is known to need."""
    name = settings.model.rsplit("/", 1)[-1].casefold()
    known = next((prefixes for start, prefixes in _KNOWN_PREFIXES if name.startswith(start)), Prefixes())
    return Prefixes(
        query=known.query if settings.query_prefix is None else settings.query_prefix,
        passage=known.passage if settings.passage_prefix is None else settings.passage_prefix,
    )


def build_model_id(kind: str, settings: EmbedderSettings) -> str:
    """Return an id of the model and all that changes a passage's vector."""
    passage = choose_prefixes(settings).passage
    return f"{kind}:{settings.model}" + (f"|{passage}" if passage else "")


DEVIATIONS: Final = 3.5
"""Standard deviations between the mean cosine of unrelated texts and the floor.

Of 3, 3.5, 4 and 4.5 this one was chosen on the half of the judged queries that chooses: at 3, a fifth of the questions
about something else find a passage; at 4, the built-in table misses half of the right passages in another language.
"""
_MAX_FLOOR: Final = 0.98
"""For a model that gives all texts nearly the same vector."""

TOPICS: Final[Sequence[tuple[str, str]]] = (
    (
        "sourdough starter",
        "Feed it flour and water twice a day until it doubles in four hours. Then knead the dough, let it "
        "rise overnight in the fridge, and bake the loaf in a hot iron pot.",
    ),
    (
        "when does the lease end and how much is the deposit",
        "The flat is rented until the end of June. The landlord holds three months' rent, which he pays back "
        "with interest once the keys are returned and the rooms were inspected.",
    ),
    (
        "black holes",
        "Nothing that falls past the horizon of a collapsed star comes back, not even light. Astronomers "
        "weigh it by the orbits of the stars around it and by the glow of the gas it swallows.",
    ),
    (
        "how to tune a guitar by ear",
        "Press the lowest string at the fifth fret and turn the peg of the next one until both sound the "
        "same. Chords ring clearly only when every string is in pitch.",
    ),
    (
        "quarterly sales report",
        "Revenue in Europe grew by eight percent, margins fell because of freight costs. The board expects "
        "twelve new customers in autumn and has approved a larger budget for marketing.",
    ),
    (
        "what helps against a migraine attack",
        "Patients should lie down in a dark, quiet room and take the tablets early. Doctors advise a diary of "
        "symptoms, regular sleep, and less caffeine and alcohol.",
    ),
    (
        "football training",
        "After the warm-up the team practised passing and corner kicks. The goalkeeper is injured, so the "
        "substitute plays on Saturday; the coach wants the defenders to stay closer to their strikers.",
    ),
    (
        "why did the roman empire fall",
        "Emperors followed each other within months, legions fought civil wars, and taxes no longer paid for "
        "the borders along the Rhine. In 476 the last ruler in the west was deposed by his own general.",
    ),
    (
        "database index",
        "The query planner chose a full table scan. Adding a key over both columns brought the statement from "
        "nine seconds to four milliseconds, at the price of slower inserts.",
    ),
    (
        "where shall we go hiking in the mountains this summer",
        "The path climbs from the lake through larch woods to a hut at 2,300 metres. Above it there is snow "
        "until July; the last bus down the valley leaves at six.",
    ),
    (
        "watercolour",
        "Wet the paper first and let the pigment run. Paint the sky with a broad brush, lift out the clouds "
        "with a sponge, and leave the white of the sheet for the brightest places.",
    ),
    (
        "how do I apply for a visa for japan",
        "The embassy wants the passport, two photographs, a flight booking and a bank statement. Tourists "
        "from some countries may stay for ninety days without asking beforehand.",
    ),
    (
        "tomato seedlings",
        "Sow in March on a warm windowsill, plant out after the last frost, and tie the stems to stakes. "
        "Water the soil and never the leaves, or blight will spread through the whole bed.",
    ),
    (
        "what did the judge decide about the contract",
        "The court held that the clause was void because the buyer had never been told of it. The defendant "
        "must return the payment and bear the costs of both lawyers.",
    ),
    (
        "bicycle chain",
        "Shift to the smallest sprocket, open the quick link with pliers and measure the wear. A stretched "
        "one ruins the cassette; afterwards clean the derailleur and put on a few drops of oil.",
    ),
    (
        "how do children learn to speak two languages",
        "Toddlers mix words of both parents at first and sort them out by the age of four. Teachers find that "
        "pupils who grow up so read a little later and switch between grammars with ease.",
    ),
    (
        "tax return",
        "Expenses for the home office, insurance and donations can be deducted if the receipts are kept. The "
        "form has to be filed by the end of July, and a refund arrives about two months later.",
    ),
    (
        "how deep can whales dive",
        "Sperm whales hunt squid a kilometre below the surface and hold their breath for an hour. Their "
        "muscles store oxygen, and their lungs collapse under the pressure of the sea.",
    ),
    (
        "wedding guests",
        "Aunt Clara sits beside the groom's parents, the musicians near the dance floor. Forty invitations "
        "are still unanswered; flowers and the cake arrive on the morning of the ceremony.",
    ),
    (
        "how does a heat pump save energy",
        "A compressor lifts warmth from the outside air to the radiators. In a well insulated house it "
        "delivers four kilowatt hours for each one of electricity, less on frosty days.",
    ),
    (
        "meditation",
        "Sit upright, close your eyes and follow the breath. When a thought appears, notice it without "
        "judging and come back; ten minutes each morning calm the mind more than an hour once a week.",
    ),
    (
        "who wrote the novel about the lighthouse keeper",
        "The author spent eleven years on her second book. Critics praised the storm scenes and the lonely "
        "narrator, and a publisher in Paris bought the rights for a translation.",
    ),
    (
        "chess opening",
        "White gives up a pawn for quick development and an attack on the king's side. Black should castle "
        "early, trade the bishops, and keep the knight on its strong square in the centre.",
    ),
    (
        "which vaccines does the dog need",
        "The vet gave the puppy an injection against rabies and distemper and a tablet for worms. In four "
        "weeks the second dose is due; until then it shouldn't meet other animals in the park.",
    ),
)
"""A question in few or many words, and a passage that answers it."""


def learn_floor(embedder: Embedder, *, stop: threading.Event | None = None) -> float:
    """Return the cosine below which a passage isn't found by its meaning.

    Raises:
        EmbedderError: The embedder failed.
        EmbedderStopped: *stop* was set meanwhile.
    """
    passages = embedder.passages([passage for _, passage in TOPICS], stop=stop)
    queries: list[NDArray[np.float32]] = []
    for query, _ in TOPICS:
        if stop and stop.is_set():
            raise EmbedderStopped("the embedding was stopped")
        queries.append(embedder.query(query))
    cosines = np.stack(queries) @ passages.T
    unrelated = cosines[~np.eye(len(cosines), dtype=np.bool_)]
    return min(float(unrelated.mean() + DEVIATIONS * unrelated.std()), _MAX_FLOOR)


RerankerKind = Literal["off", "endpoint", "onnx"]
MAX_DOCUMENT_CHARS: Final = 4_000
"""Of a passage that are judged; models of this kind read some 500 tokens."""
MAX_QUERY_CHARS: Final = 2_000
_RERANKER_PAUSE_S: Final = 30.0
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
            with self._lock:
                if self._reranker is None:
                    self._reranker = self._reranking.open()
                reranker = self._reranker
            return reranker.score(query[:MAX_QUERY_CHARS], cut)
        except SetupError as error:
            with self._lock:
                self._failure, self._again_at = error.message, self._clock() + _RERANKER_PAUSE_S
            raise

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            if self._reranker is not None:
                self._reranker.close()


def order(scores: Mapping[int, float], count: int) -> list[int]:
    """Return the places of documents, best first; those without a score keep their order behind the others."""
    return sorted(range(count), key=lambda place: (-scores.get(place, -math.inf), place))
