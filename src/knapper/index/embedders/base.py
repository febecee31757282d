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


EmbedderKind = Literal["static", "endpoint", "onnx", "none"]


class EmbedderError(SetupError):
    """Say that the embedder can't be used as it is configured."""

    code = "embedder_unusable"


class EmbedderUnavailable(EmbedderError):
    """Say that the embedder doesn't answer now, and may answer later."""

    code = "embedder_away"


class EmbedderStopped(EmbedderError):
    """Say that the embedding was ended, as was asked for."""

    code = "stopping"


class Embedder(Protocol):
    """Turn texts into vectors whose product says how near they are in meaning.

    Vectors are of length 1; a text with nothing in it has a vector of zeros.
    """

    @property
    def model_id(self) -> str:
        """Name all that a vector depends on: vectors of two ids can't be compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Count a vector's numbers; may load the model or ask the server."""
        ...

    @property
    def instant(self) -> bool:
        """Return whether some hundred passages take no longer than a search may."""
        ...

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows of a matrix of n by ``dimensions``.

        Args:
            texts: What is embedded.
            stop: Ends waits for a server, by `EmbedderStopped`.
        """
        ...

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        ...

    def close(self) -> None:
        """Give up what is held open; nothing is embedded afterwards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderSettings:
    """Choose an embedder."""

    kind: EmbedderKind = "static"
    model: str = ""
    """Its name at the endpoint, or in the ONNX library; empty for the recommended one."""
    base_url: str = ""
    """The endpoint's address: ``http://localhost:11434`` or ``https://api.example.org/v1``."""
    api_key: str = field(default="", repr=False)
    query_prefix: str | None = None
    """Put in front of a question; None takes what the model is known to want."""
    passage_prefix: str | None = None
    """The same for texts that are searched."""
    batch: int = 32
    """Texts in one request, or in one run of a model."""
    timeout_s: float = 60.0
    """For one request that embeds passages."""
    env_proxies: bool = False
    """Use the proxies that the environment names."""
    folder: Path | None = None
    """Holds a model's files, for ``static`` and ``onnx``; None takes the package's own, or those in the cache."""
    cache: Path | None = None
    """Where ``onnx`` keeps models that it fetched; None leaves it to the library, which uses a temporary folder."""
    threads: int | None = None
    """For ``onnx``; None leaves it to the library."""


def replace_surrogates(text: str) -> str:
    """Replace halves of characters, which no model reads."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def normalize_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide each row by its length, in place; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """What is put in front of texts."""

    query: str = ""
    passage: str = ""


_KNOWN_PREFIXES = (
    ("multilingual-e5", Prefixes(query="query: ", passage="passage: ")),
    ("e5-", Prefixes(query="query: ", passage="passage: ")),
    ("nomic-embed-text", Prefixes(query="search_query: ", passage="search_document: ")),
    ("mxbai-embed-large", Prefixes(query="Represent this sentence for searching relevant passages: ")),
)
"""Beginnings of model names without their owner, from the models' own descriptions."""


def choose_prefixes(settings: EmbedderSettings) -> Prefixes:
    """Take the configured prefixes; where they are None, those that the model is known to want."""
    name = settings.model.rsplit("/", 1)[-1].casefold()
    known = next((prefixes for start, prefixes in _KNOWN_PREFIXES if name.startswith(start)), Prefixes())
    return Prefixes(
        query=known.query if settings.query_prefix is None else settings.query_prefix,
        passage=known.passage if settings.passage_prefix is None else settings.passage_prefix,
    )


def build_model_id(kind: str, settings: EmbedderSettings) -> str:
    """Name the model with all that changes a passage's vector."""
    passage = choose_prefixes(settings).passage
    return f"{kind}:{settings.model}" + (f"|{passage}" if passage else "")
