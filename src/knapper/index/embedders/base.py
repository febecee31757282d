"""The interface of an embedder, its settings and errors, and what all embedders share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from knapper.errors import SetupError
from knapper.index.arrays import np

if TYPE_CHECKING:
    import threading

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


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no model reads."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def normalize_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide each row by its length, in place; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


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
