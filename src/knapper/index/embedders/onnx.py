"""Embed with a transformer on this machine, through the library of the extra ``onnx``."""

import importlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from knapper import errors
from knapper.index.embedders import base
from knapper.index.embedders.base import EmbedderError, EmbedderSettings, normalize_rows, replace_surrogates

RECOMMENDED = "intfloat/multilingual-e5-small"

_LIBRARIES = ("huggingface_hub", "onnxruntime")
"""Packages that the extra depends on; their errors have no common base class."""
_DIMENSIONS = 384
"""Of the recommended model, which the library doesn't list itself."""
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


class OnnxEmbedder:
    """A sentence model, loaded and where needed downloaded on first use."""

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
        self._lock = threading.Lock()
        self.model_id = base.build_model_id("onnx", self._settings)

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions; loads the model."""
        return int(self._embed(["dimensions"]).shape[1])

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; *stop* has no effect, as no server is waited for.

        Raises:
            EmbedderError: The extra isn't installed, or the model can't be loaded or run.
        """
        del stop
        non_empty = [place for place, text in enumerate(texts) if text.strip()]
        if not non_empty:
            return np.zeros((len(texts), self.dimensions), np.float32)
        embedded_rows = self._embed([self._prefixes.passage + texts[place] for place in non_empty])
        rows = np.zeros((len(texts), embedded_rows.shape[1]), np.float32)
        rows[non_empty] = embedded_rows
        return normalize_rows(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query.

        Raises:
            EmbedderError: The extra isn't installed, or the model can't be loaded or run.
        """
        if not text.strip():
            return np.zeros(self.dimensions, np.float32)
        return normalize_rows(self._embed([self._prefixes.query + text]))[0]

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = self._model
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

    @cached_property
    def _model(self) -> OnnxModel:
        with self._lock:
            return _load_model(self._models or _import_library(), self._settings)


def _import_library() -> OnnxModels:
    try:
        return cast("OnnxModels", importlib.import_module("fastembed").TextEmbedding)
    except ImportError as error:
        raise EmbedderError(
            "embeddings.kind is onnx, and the library for it isn't installed",
            hint="run: pip install 'knapper[onnx]'",
            code="embedder_extra",
        ) from error


def _load_model(models: OnnxModels, settings: EmbedderSettings) -> OnnxModel:
    options: dict[str, object] = {"threads": settings.threads}
    if settings.cache is not None:
        options["cache_dir"] = str(settings.cache)
    if settings.folder is not None:
        options |= {"specific_model_path": str(settings.folder), "local_files_only": True}
    try:
        known = {str(entry["model"]).casefold() for entry in models.list_supported_models()}
        if settings.model.casefold() == RECOMMENDED and RECOMMENDED not in known:
            _register_recommended(models)
        return models(model_name=settings.model, **options)
    except Exception as error:
        if not errors.raised_by(error, *_LIBRARIES):
            raise
        raise EmbedderError(f"the model '{settings.model}' can't be loaded", hint=_HINT) from error


def _register_recommended(models: OnnxModels) -> None:
    description = importlib.import_module("fastembed.common.model_description")
    models.add_custom_model(
        model=RECOMMENDED,
        pooling=description.PoolingType.MEAN,
        normalization=True,
        sources=description.ModelSource(hf=RECOMMENDED),
        dim=_DIMENSIONS,
        model_file="onnx/model.onnx",
    )
