"""Embed with a transformer on this machine, or rerank with a cross-encoder, which has its files in a folder."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from knapper import errors, extras
from knapper.index.models import base
from knapper.index.models.base import (
    EmbedderError,
    EmbedderSettings,
    RerankerError,
    RerankerSettings,
)
from knapper.jsontypes import replace_surrogates
from knapper.system.arrays import normalize_rows, np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer


RECOMMENDED = "intfloat/multilingual-e5-small"

_LIBRARIES = ("huggingface_hub", "onnxruntime")
"""Packages that the extra depends on; their errors have no common base class."""
_DIMENSIONS = 384
"""Of the recommended model, which the library doesn't list itself."""
_RETRY_S = 300.0
"""How long a failed load is remembered: a download that fails may take the library the better part of a minute."""
_NOT_HERE_HINT = (
    "`knap index` downloads it where the vault's files are; searches don't, since they would wait for it. Or set"
    " embeddings.folder to its folder"
)
_HINT = "check embeddings.model and the connection that it is fetched over, or set embeddings.kind = static"


class OnnxModel(Protocol):
    """A loaded model, as the library has it."""

    def embed(self, documents: Iterable[str], batch_size: int = ...) -> Iterable[NDArray[np.float32]]:
        """Embed documents, in order."""
        ...


class OnnxModels(Protocol):
    """The library's class of text models."""

    def __call__(self, *, model_name: str, **options: object) -> OnnxModel:
        """Load a model."""
        ...

    def list_supported_models(self) -> Iterable[Mapping[str, Any]]:
        """List the models that the library knows, each with ``model``."""
        ...

    def add_custom_model(self, *, model: str, **description: object) -> None:
        """Register another model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailedLoad:
    """A load that failed, and when."""

    error: EmbedderError
    at: float


class OnnxEmbedder:
    """A sentence model, loaded on first use.

    It is downloaded where passages are embedded. A query only takes a model that is on this machine, since a search
    would wait for the network otherwise.
    """

    instant = False

    def __init__(self, settings: EmbedderSettings, *, models: OnnxModels | None = None) -> None:
        """Set the model; it is loaded on first use.

        Args:
            settings: The model's name; ``folder`` holds its files, and without one the library's cache does.
            models: Replaces the library's class, for tests.
        """
        self._settings = replace(settings, model=settings.model or RECOMMENDED)
        self._prefixes = base.choose_prefixes(self._settings)
        self._models = models
        # A query doesn't wait for a download.
        self._locks = {False: threading.Lock(), True: threading.Lock()}
        self._model: OnnxModel | None = None
        self._failed: dict[bool, _FailedLoad] = {}
        self.model_id = base.build_model_id("onnx", self._settings)

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions; loads the model, and downloads it where needed."""
        return self._dimensions(may_download=True)

    def _dimensions(self, *, may_download: bool) -> int:
        return int(self._embed(["dimensions"], may_download=may_download).shape[1])

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; *stop* has no effect, as no server is waited for.

        Raises:
            EmbedderError: The extra isn't installed, or the model can't be loaded or run.
        """
        del stop
        non_empty = [place for place, text in enumerate(texts) if text.strip()]
        if not non_empty:
            return np.zeros((len(texts), self.dimensions), np.float32)
        embedded_rows = self._embed([self._prefixes.passage + texts[place] for place in non_empty], may_download=True)
        rows = np.zeros((len(texts), embedded_rows.shape[1]), np.float32)
        rows[non_empty] = embedded_rows
        return normalize_rows(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query.

        Raises:
            EmbedderError: The extra isn't installed, or the model can't be loaded or run.
        """
        if not text.strip():
            return np.zeros(self._dimensions(may_download=False), np.float32)
        return normalize_rows(self._embed([self._prefixes.query + text], may_download=False))[0]

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        """Return nothing: the library doesn't tell."""
        del words
        return ()

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _embed(self, texts: Sequence[str], *, may_download: bool) -> NDArray[np.float32]:
        model = self._load(may_download=may_download)
        documents = [replace_surrogates(text) for text in texts]
        try:
            rows = np.array(list(model.embed(documents, batch_size=self._settings.batch)), np.float32)
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise EmbedderError(f"the model '{self._settings.model}' can't be run", hint=_HINT) from error
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise EmbedderError(f"the model '{self._settings.model}' gives no vectors that can be used", hint=_HINT)
        return rows

    def _load(self, *, may_download: bool) -> OnnxModel:
        with self._locks[may_download]:
            if self._model is not None:
                return self._model
            failed = self._failed.get(may_download)
            if failed is not None and time.monotonic() - failed.at < _RETRY_S:
                raise EmbedderError(failed.error.message, hint=failed.error.hint, code=failed.error.code)
            try:
                models = self._models or _import_library()
                self._model = _load_model(models, self._settings, may_download=may_download)
            except EmbedderError as error:
                self._failed[may_download] = _FailedLoad(error=error, at=time.monotonic())
                raise
            return self._model


def _import_library() -> OnnxModels:
    try:
        return importlib.import_module("fastembed").TextEmbedding
    except ImportError as error:
        raise extras.missing(
            "embeddings", "embeddings.kind = onnx", error=EmbedderError, code="embedder_extra"
        ) from error


def _load_model(models: OnnxModels, settings: EmbedderSettings, *, may_download: bool) -> OnnxModel:
    options: dict[str, object] = {"threads": settings.threads}
    if settings.cache is not None:
        options["cache_dir"] = str(settings.cache)
    if settings.folder is not None:
        options |= {"specific_model_path": str(settings.folder), "local_files_only": True}
    elif not may_download:
        options["local_files_only"] = True
    has_to_be_here = not may_download and settings.folder is None
    try:
        known = {str(entry["model"]).casefold() for entry in models.list_supported_models()}
        has_to_be_here = has_to_be_here and settings.model.casefold() in known | {RECOMMENDED}
        if settings.model.casefold() == RECOMMENDED and RECOMMENDED not in known:
            description = importlib.import_module("fastembed.common.model_description")
            models.add_custom_model(
                model=RECOMMENDED,
                pooling=description.PoolingType.MEAN,
                normalization=True,
                sources=description.ModelSource(hf=RECOMMENDED),
                dim=_DIMENSIONS,
                model_file="onnx/model.onnx",
            )
        return models(model_name=settings.model, **options)
    except Exception as error:
        if not errors.raised_by(error, *_LIBRARIES):
            raise
        if has_to_be_here:
            msg = f"the model '{settings.model}' isn't on this machine, or can't be loaded"
            raise EmbedderError(msg, hint=_NOT_HERE_HINT) from error
        raise EmbedderError(f"the model '{settings.model}' can't be loaded", hint=_HINT) from error


MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx")
TOKENIZER_FILE: Final = "tokenizer.json"
MAX_TOKENS: Final = 512
_BATCH: Final = 16
_KNOWN_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_RERANKER_HINT: Final = (
    "rerank.folder has to hold tokenizer.json and model.onnx of a cross-encoder, which gives one number a pair"
)
_RERANKER_LIBRARIES: Final = ("onnxruntime", "tokenizers")


class OnnxReranker:
    """A cross-encoder, loaded on first use."""

    def __init__(self, settings: RerankerSettings, *, threads: int | None = None) -> None:
        """Set the folder; the model is loaded on first use.

        Raises:
            RerankerError: No folder is set.
        """
        if settings.folder is None:
            raise RerankerError("rerank.kind is onnx, and rerank.folder isn't set", hint=_RERANKER_HINT)
        self._folder: Path = settings.folder
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Any] | None = None

    def score(self, query: str, documents: Sequence[str]) -> Mapping[int, float]:
        """Run the model over each pair, and return the relevance by place.

        Raises:
            RerankerError: The extra isn't installed, or the model can't be loaded or run.
        """
        tokenizer, session = self._load()
        pairs = [(replace_surrogates(query), replace_surrogates(text)) for text in documents]
        try:
            batches: list[NDArray[np.float32]] = []
            for at in range(0, len(pairs), _BATCH):
                batch = pairs[at : at + _BATCH]
                encoded = tokenizer.encode_batch(list(batch))
                columns = {
                    "input_ids": [one.ids for one in encoded],
                    "attention_mask": [one.attention_mask for one in encoded],
                    "token_type_ids": [one.type_ids for one in encoded],
                }
                wanted = {one.name for one in session.get_inputs()} & _KNOWN_INPUTS
                output = np.asarray(
                    session.run(None, {name: np.asarray(columns[name], np.int64) for name in wanted})[0]
                )
                output = output.astype(np.float32)
                batches.append(output.reshape(len(batch)) if output.size == len(batch) else output)
            scores: NDArray[np.float32] = np.concatenate(batches)
        except Exception as error:
            if not errors.raised_by(error, *_RERANKER_LIBRARIES):
                raise
            raise RerankerError(f"the model in {self._folder} can't be run", hint=_RERANKER_HINT) from error
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise RerankerError(
                f"the model in {self._folder} doesn't give a number for each passage", hint=_RERANKER_HINT
            )
        return {place: float(score) for place, score in enumerate(scores)}

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._loaded = None

    def _load(self) -> tuple[Tokenizer, Any]:
        with self._lock:
            if self._loaded is None:
                try:
                    from tokenizers import Tokenizer  # noqa: PLC0415 - an optional dependency
                except ImportError as error:
                    raise _missing() from error
                try:
                    tokenizer = Tokenizer.from_str((self._folder / TOKENIZER_FILE).read_bytes().decode())
                except Exception as error:
                    if not errors.raised_by(error, *_RERANKER_LIBRARIES):
                        raise
                    raise RerankerError(
                        f"{self._folder / TOKENIZER_FILE} can't be read", hint=_RERANKER_HINT
                    ) from error
                tokenizer.encode_special_tokens = True
                untyped: Any = tokenizer
                untyped.enable_truncation(MAX_TOKENS, strategy="only_second")
                untyped.enable_padding(**{**(untyped.padding or {}), "length": None})
                self._loaded = tokenizer, self._read_model()
            return self._loaded

    def _read_model(self) -> Any:  # noqa: ANN401 - a library without types
        path = next((self._folder / name for name in MODEL_FILES if (self._folder / name).is_file()), None)
        if path is None:
            raise RerankerError(f"{self._folder} has no model.onnx", hint=_RERANKER_HINT)
        try:
            runtime: Any = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise _missing() from error
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        if self._threads:
            options.intra_op_num_threads = self._threads
        try:
            return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if not errors.raised_by(error, *_RERANKER_LIBRARIES):
                raise
            raise RerankerError(f"{path} can't be loaded", hint=_RERANKER_HINT) from error


def _missing() -> RerankerError:
    return extras.missing("embeddings", "rerank.kind = onnx", error=RerankerError, code="reranker_extra")
