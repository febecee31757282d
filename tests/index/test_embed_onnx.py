import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.index.models import onnx
from knapper.index.models.base import EmbedderError, EmbedderSettings
from knapper.index.models.onnx import RECOMMENDED, OnnxEmbedder, OnnxModel

SETTINGS = EmbedderSettings(kind="onnx", model="org/some-model", batch=8)


@dataclass
class FakeModel:
    batches: list[tuple[list[str], int]] = field(default_factory=list[tuple[list[str], int]])
    rows: NDArray[np.float32] | None = None
    failure: Exception | None = None

    def embed(self, documents: Iterable[str], batch_size: int = 256) -> Iterator[NDArray[np.float32]]:
        texts = list(documents)
        self.batches.append((texts, batch_size))
        if self.failure:
            raise self.failure
        yield from self.rows if self.rows is not None else (np.array([len(t), 1, 0], np.float32) for t in texts)


@dataclass
class FakeModels:
    """Stands for the library's class: calling it loads a model."""

    model: FakeModel = field(default_factory=FakeModel)
    known: tuple[str, ...] = ("org/some-model", RECOMMENDED)
    is_offline: bool = False
    """Whether nothing is on this machine, and nothing can be downloaded."""
    tries: int = 0
    loads: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    def __call__(self, *, model_name: str, **options: object) -> OnnxModel:
        self.tries += 1
        if self.is_offline:
            raise ValueError(f"Could not load model {model_name} from any source.")
        if model_name not in self.known:
            raise ValueError(model_name)
        self.loads.append({"model_name": model_name, **options})
        return self.model

    def list_supported_models(self) -> list[dict[str, Any]]:
        return [{"model": name} for name in self.known]

    def add_custom_model(self, *, model: str, **description: object) -> None:
        raise AssertionError(model, description)


def test_passages_are_embedded_by_the_library() -> None:
    models = FakeModels()

    rows = OnnxEmbedder(SETTINGS, models=models).passages(["aaa", "", "a"])

    assert np.allclose(rows[:, 0] * np.sqrt([10, 1, 2]), [3, 0, 1])
    assert rows.shape == (3, 3)
    assert models.model.batches == [(["aaa", "a"], 8)]


def test_the_model_is_loaded_once_and_on_first_use() -> None:
    models = FakeModels()
    embedder = OnnxEmbedder(SETTINGS, models=models)

    assert models.loads == []
    assert embedder.dimensions == 3
    embedder.query("a")
    assert models.loads == [{"model_name": "org/some-model", "threads": None}]


def test_a_query_takes_a_model_of_this_machine_and_passages_may_download_it() -> None:
    one, other = FakeModels(), FakeModels()

    OnnxEmbedder(SETTINGS, models=one).query("q")
    OnnxEmbedder(SETTINGS, models=other).passages(["p"])

    assert one.loads == [{"model_name": "org/some-model", "threads": None, "local_files_only": True}]
    assert other.loads == [{"model_name": "org/some-model", "threads": None}]


def test_a_failed_load_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    models, now = FakeModels(is_offline=True), [1000.0]
    monkeypatch.setattr(onnx.time, "monotonic", lambda: now[0])
    embedder = OnnxEmbedder(SETTINGS, models=models)

    with pytest.raises(EmbedderError, match="isn't on this machine") as raised:
        embedder.query("q")
    with pytest.raises(EmbedderError, match="isn't on this machine"):
        embedder.query("q again")
    assert "knap index" in raised.value.hint
    assert models.tries == 1
    with pytest.raises(EmbedderError, match="can't be loaded"):
        embedder.passages(["p"])
    assert models.tries == 2
    models.is_offline = False
    now[0] += 301
    embedder.query("q")
    assert models.tries == 3


def test_a_model_that_was_downloaded_since_serves_queries() -> None:
    models = FakeModels(is_offline=True)
    embedder = OnnxEmbedder(SETTINGS, models=models)
    with pytest.raises(EmbedderError):
        embedder.query("q")

    models.is_offline = False
    embedder.passages(["p"])

    assert embedder.query("q").shape == (3,)
    assert models.tries == 2


def test_the_recommended_model_gets_its_prefixes() -> None:
    models = FakeModels()
    embedder = OnnxEmbedder(EmbedderSettings(kind="onnx"), models=models)

    embedder.query("q")
    embedder.passages(["p"])

    assert [texts for texts, _ in models.model.batches] == [["query: q"], ["passage: p"]]
    assert embedder.model_id == f"onnx:{RECOMMENDED}|passage: "


def test_a_folder_is_used_without_asking_the_network(tmp_path: Path) -> None:
    models = FakeModels()

    OnnxEmbedder(EmbedderSettings(kind="onnx", model=RECOMMENDED, folder=tmp_path, threads=2), models=models).query("q")

    assert models.loads == [
        {"model_name": RECOMMENDED, "threads": 2, "specific_model_path": str(tmp_path), "local_files_only": True}
    ]


def test_nothing_is_a_vector_of_zeros() -> None:
    embedder = OnnxEmbedder(SETTINGS, models=FakeModels())

    assert embedder.query("").tolist() == [0, 0, 0]
    assert embedder.passages([" "]).tolist() == [[0, 0, 0]]


def test_a_model_that_the_library_does_not_know_is_named() -> None:
    embedder = OnnxEmbedder(EmbedderSettings(kind="onnx", model="org/other"), models=FakeModels())

    with pytest.raises(EmbedderError, match="'org/other' can't be loaded"):
        embedder.query("q")


@pytest.mark.parametrize("rows", [[[1, 2]], [[np.nan, 1], [0, 1]], [1, 2]])
def test_vectors_that_cannot_be_used_are_told(rows: list[Any]) -> None:
    models = FakeModels(FakeModel(rows=np.array(rows, np.float32)))

    with pytest.raises(EmbedderError, match="no vectors"):
        OnnxEmbedder(SETTINGS, models=models).passages(["a", "b"])


def test_a_model_that_fails_is_named() -> None:
    models = FakeModels(FakeModel(failure=ArithmeticError("a runtime's own error")))

    with pytest.raises(EmbedderError, match="'org/some-model' can't be run"):
        OnnxEmbedder(SETTINGS, models=models).query("q")


def test_a_wrong_call_of_the_library_is_not_taken_for_a_failing_model() -> None:
    models = FakeModels(FakeModel(failure=TypeError("embed() got an unexpected keyword")))

    with pytest.raises(TypeError, match="unexpected keyword"):
        OnnxEmbedder(SETTINGS, models=models).query("q")


def test_fetched_models_are_kept_where_the_settings_say(tmp_path: Path) -> None:
    models = FakeModels()

    OnnxEmbedder(EmbedderSettings(kind="onnx", model=RECOMMENDED, cache=tmp_path), models=models).query("q")

    assert models.loads == [
        {"model_name": RECOMMENDED, "threads": None, "cache_dir": str(tmp_path), "local_files_only": True}
    ]


@pytest.mark.skipif(importlib.util.find_spec("fastembed") is not None, reason="the extra is installed")
def test_the_missing_extra_is_named() -> None:
    with pytest.raises(EmbedderError) as raised:
        OnnxEmbedder(SETTINGS).query("q")

    assert "embeddings" in raised.value.hint
