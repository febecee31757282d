"""Rerank with a cross-encoder on this machine: ``model.onnx`` and ``tokenizer.json`` in a folder."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from knapper import errors, extras
from knapper.index.embedders.base import replace_surrogates
from knapper.index.rerankers.base import RerankerError, RerankerSettings

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx")
TOKENIZER_FILE: Final = "tokenizer.json"
MAX_TOKENS: Final = 512
_BATCH: Final = 16
_KNOWN_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_HINT: Final = (
    "search.rerank.folder has to hold tokenizer.json and model.onnx of a cross-encoder, which gives one number a pair"
)
_LIBRARIES: Final = ("onnxruntime", "tokenizers")


class OnnxReranker:
    """A cross-encoder, loaded on first use."""

    def __init__(self, settings: RerankerSettings, *, threads: int | None = None) -> None:
        """Set the folder; the model is loaded on first use.

        Raises:
            RerankerError: No folder is set.
        """
        if settings.folder is None:
            raise RerankerError("search.rerank.kind is onnx, and search.rerank.folder isn't set", hint=_HINT)
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
            scores: NDArray[np.float32] = np.concatenate(
                [self._run(tokenizer, session, pairs[at : at + _BATCH]) for at in range(0, len(pairs), _BATCH)]
            )
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise RerankerError(f"the model in {self._folder} can't be run", hint=_HINT) from error
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise RerankerError(f"the model in {self._folder} doesn't give a number for each passage", hint=_HINT)
        return {place: float(score) for place, score in enumerate(scores)}

    def close(self) -> None:
        """Release the model."""
        with self._lock:
            self._loaded = None

    def _run(self, tokenizer: Tokenizer, session: Any, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:  # noqa: ANN401 - as below
        encoded = tokenizer.encode_batch(list(pairs))
        columns = {
            "input_ids": [one.ids for one in encoded],
            "attention_mask": [one.attention_mask for one in encoded],
            "token_type_ids": [one.type_ids for one in encoded],
        }
        wanted = {one.name for one in session.get_inputs()} & _KNOWN_INPUTS
        output = np.asarray(session.run(None, {name: np.asarray(columns[name], np.int64) for name in wanted})[0])
        output = output.astype(np.float32)
        return output.reshape(len(pairs)) if output.size == len(pairs) else output

    def _load(self) -> tuple[Tokenizer, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read_tokenizer(), self._read_model()
            return self._loaded

    def _read_tokenizer(self) -> Tokenizer:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - an optional dependency
        except ImportError as error:
            raise _missing() from error
        try:
            tokenizer = Tokenizer.from_str((self._folder / TOKENIZER_FILE).read_bytes().decode())
        except Exception as error:
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise RerankerError(f"{self._folder / TOKENIZER_FILE} can't be read", hint=_HINT) from error
        tokenizer.encode_special_tokens = True
        untyped: Any = tokenizer
        untyped.enable_truncation(MAX_TOKENS, strategy="only_second")
        untyped.enable_padding(**{**(untyped.padding or {}), "length": None})
        return tokenizer

    def _read_model(self) -> Any:  # noqa: ANN401 - a library without types
        path = next((self._folder / name for name in MODEL_FILES if (self._folder / name).is_file()), None)
        if path is None:
            raise RerankerError(f"{self._folder} has no model.onnx", hint=_HINT)
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
            if not errors.raised_by(error, *_LIBRARIES):
                raise
            raise RerankerError(f"{path} can't be loaded", hint=_HINT) from error


def _missing() -> RerankerError:
    return extras.missing("embeddings", "search.rerank.kind = onnx", error=RerankerError, code="reranker_extra")
