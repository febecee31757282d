import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from knapper.errors import SetupError
from knapper.index.models import tables
from knapper.index.models.static import StaticEmbedder

WORDS = ["[UNK]", "red", "green", "blue", "never"]
ROWS = np.array([[0, 0, 0, 1], [2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [9, 9, 9, 9]], np.float32)


def write_model(folder: Path, rows: NDArray[np.floating] = ROWS, kind: str = "F16") -> Path:
    """Write a model of whole words."""
    folder.mkdir(exist_ok=True)
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {
                "id": 4,
                "content": "never",
                "special": True,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
            }
        ],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {w: n for n, w in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    data = rows.astype("<f2" if kind == "F16" else "<f4").tobytes()
    header = {"__metadata__": {"a": "b"}, "w": {"dtype": kind, "shape": rows.shape, "data_offsets": [0, len(data)]}}
    head = json.dumps(header).encode()
    (folder / "weights.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    return folder


def write_model2vec(folder: Path, arrays: dict[str, NDArray[np.generic]], name: str = "model.safetensors") -> Path:
    """Write a model of whole words as model2vec does."""
    write_model(folder)
    (folder / "weights.safetensors").unlink()
    kinds = {"<f2": "F16", "<f4": "F32", "<f8": "F64", "|i1": "I8", "<i8": "I64"}
    header, data = dict[str, object](), b""
    for key, array in arrays.items():
        content = array.tobytes()
        offsets = [len(data), len(data) + len(content)]
        header[key] = {"dtype": kinds[array.dtype.str], "shape": array.shape, "data_offsets": offsets}
        data += content
    head = json.dumps(header).encode()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(len(head).to_bytes(8, "little") + head + data)
    return folder


@pytest.fixture(scope="module")
def packaged() -> StaticEmbedder:
    if not (tables.FOLDER / tables.TABLE_FILE).exists():
        pytest.skip("the package was installed without the model's files")
    return StaticEmbedder()


@pytest.mark.parametrize("kind", ["F16", "F32"])
def test_a_text_is_the_mean_of_its_tokens(tmp_path: Path, kind: str) -> None:
    rows = StaticEmbedder(write_model(tmp_path, kind=kind)).passages(["red", "red red green", "blue green"])

    expected = np.array([[1, 0, 0, 0], [2, 1, 0, 0], [0, 1, 1, 0]], np.float32)
    assert np.allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True))
    assert rows.dtype == np.float32


def test_a_question_and_a_passage_of_one_text_are_one_vector(packaged: StaticEmbedder) -> None:
    text = "How do I link notes? 検索 🎉"

    assert np.allclose(packaged.query(text), packaged.passages(["other", text])[1], atol=1e-6)


def test_nothing_is_a_vector_of_zeros(packaged: StaticEmbedder) -> None:
    assert packaged.passages([]).shape == (0, 160)
    assert not packaged.query("").any()
    assert not packaged.passages(["a", ""])[1].any()


def test_texts_of_like_meaning_are_near(packaged: StaticEmbedder) -> None:
    near, far = packaged.passages(["The dog ran across the meadow.", "Quarterly tax returns are due."])
    question = packaged.query("a puppy running in a field")

    assert question @ near > question @ far + 0.2


def test_many_texts_are_embedded_as_each_alone(packaged: StaticEmbedder) -> None:
    texts = [f"note {n} about " + "things " * (n % 7) for n in range(600)]

    rows = packaged.passages(texts)

    assert np.allclose(rows, np.concatenate([packaged.passages([text]) for text in texts]), atol=1e-6)


def test_a_very_long_text_is_embedded_as_a_whole(packaged: StaticEmbedder) -> None:
    row = packaged.passages(["one two " * 10_000])[0]

    assert np.allclose(row @ packaged.query("one two " * 20), 1, atol=1e-3)


def test_the_model_id_tells_what_vectors_depend_on(tmp_path: Path) -> None:
    first, second = write_model(tmp_path / "a"), write_model(tmp_path / "b", ROWS + 1)

    ids = {StaticEmbedder().model_id, StaticEmbedder(first).model_id, StaticEmbedder(second).model_id}

    assert len(ids) == 3
    assert StaticEmbedder(first).model_id == StaticEmbedder(write_model(tmp_path / "c")).model_id


def test_special_tokens_in_a_text_are_text(tmp_path: Path) -> None:
    assert StaticEmbedder(write_model(tmp_path)).query("redneverred").tolist() == [0, 0, 0, 1]


def test_a_token_that_the_table_lacks_does_not_break(tmp_path: Path) -> None:
    assert StaticEmbedder(write_model(tmp_path, ROWS[:3])).query("blue").tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("name", "missing"), [("tokenizer.json", "tokenizer.json"), ("weights.safetensors", "model.safetensors")]
)
def test_a_missing_file_is_named_with_the_next_step(tmp_path: Path, name: str, missing: str) -> None:
    (write_model(tmp_path) / name).unlink()

    with pytest.raises(SetupError, match=f"{missing} is missing") as raised:
        StaticEmbedder(tmp_path).query("red")
    assert "embeddings.folder" in raised.value.hint


@pytest.mark.parametrize("size", [0, 4, 8, 40, -1])
def test_a_damaged_table_is_named(tmp_path: Path, size: int) -> None:
    path = write_model(tmp_path) / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(SetupError, match=r"weights\.safetensors is damaged"):
        StaticEmbedder(tmp_path).query("red")


@pytest.mark.parametrize(
    "header",
    [
        [],
        {},
        {"a": 1},
        {"a": {"dtype": "F16", "shape": [5], "data_offsets": [0, 40]}},
        {"a": {"dtype": "BF16", "shape": [5, 4], "data_offsets": [0, 40]}},
        {"a": {"dtype": "F16", "shape": [5, 5], "data_offsets": [0, 40]}},
    ],
)
def test_a_table_of_another_form_is_refused(tmp_path: Path, header: object) -> None:
    head = json.dumps(header).encode()
    (write_model(tmp_path) / "weights.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(40))

    with pytest.raises(SetupError, match=r"weights\.safetensors is damaged"):
        StaticEmbedder(tmp_path).query("red")


def test_a_damaged_tokenizer_is_named(tmp_path: Path) -> None:
    (write_model(tmp_path) / "tokenizer.json").write_text("{}", encoding="utf-8")

    with pytest.raises(SetupError, match=r"tokenizer\.json is damaged"):
        StaticEmbedder(tmp_path).query("red")


def test_threads_may_share_it(packaged: StaticEmbedder) -> None:
    fresh = StaticEmbedder()
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(fresh.query, ["one text"] * 20))

    assert all(np.array_equal(row, packaged.query("one text")) for row in rows)


@given(st.lists(st.text(), max_size=5))
def test_any_text_has_a_vector_of_length_one_or_zero(packaged: StaticEmbedder, texts: list[str]) -> None:
    lengths = np.linalg.norm(packaged.passages(texts), axis=1)

    assert all(
        np.isclose(length, 1, atol=1e-5) or (length == 0 and not any(c.isalpha() for c in text if c < "\u0180"))
        for length, text in zip(lengths, texts, strict=True)
    )


def test_half_a_character_is_read_as_a_question_mark(packaged: StaticEmbedder) -> None:
    assert np.array_equal(packaged.query("a\ud800"), packaged.query("a?"))


def test_signs_say_nothing(packaged: StaticEmbedder) -> None:
    assert not packaged.query("--- *** |||").any()
    assert packaged.query("日本").any()


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", "|i1"])
def test_a_table_of_model2vec_is_averaged_without_unknown_words(tmp_path: Path, kind: str) -> None:
    embedder = StaticEmbedder(write_model2vec(tmp_path, {"embeddings": ROWS.astype(kind)}))

    rows = embedder.passages(["red", "red red green", "red nobody-knows", "nobody-knows"])

    expected = np.array([[1, 0, 0, 0], [2, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(rows, expected / np.where(lengths == 0, 1, lengths))
    assert embedder.model_id.startswith("model2vec:")


def test_a_table_of_model2vec_may_weigh_tokens_and_share_rows(tmp_path: Path) -> None:
    arrays: dict[str, NDArray[np.generic]] = {
        "embeddings": ROWS[1:3],
        "weights": np.array([1, 3, 1, 1, 1], np.float32),
        "mapping": np.array([0, 0, 1, 1, 0], np.int64),
    }
    embedder = StaticEmbedder(write_model2vec(tmp_path, arrays))

    assert np.allclose(embedder.query("red green"), np.array([3, 1, 0, 0]) / np.sqrt(10))
    assert np.allclose(embedder.query("blue"), [0, 1, 0, 0])


def test_a_table_that_sentence_transformers_wrote_is_read(tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path, {"embedding.weight": ROWS}, "0_StaticEmbedding/model.safetensors")

    assert np.allclose(StaticEmbedder(folder).query("green"), [0, 1, 0, 0])


@pytest.mark.parametrize(
    "arrays",
    [
        {"other": ROWS},
        {"embeddings": ROWS[0]},
        {"embeddings": ROWS, "weights": np.ones(2, np.float32)},
        {"embeddings": ROWS, "mapping": np.array([0, 1, 2, 3, 99])},
        {"embeddings": ROWS, "mapping": np.array([0, 1, 2, 3, -1])},
        {"embeddings": ROWS * np.float32(np.nan)},
    ],
    ids=["no table", "a row alone", "too few weights", "a row beyond", "a row before", "no numbers"],
)
def test_a_table_of_model2vec_that_cant_be_one_is_told(tmp_path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    with pytest.raises(SetupError) as raised:
        StaticEmbedder(write_model2vec(tmp_path, arrays)).query("red")

    assert "model2vec" in raised.value.hint


def test_tables_of_other_weights_have_other_ids(tmp_path: Path) -> None:
    weights = np.ones(5, np.float32)
    one = StaticEmbedder(write_model2vec(tmp_path / "1", {"embeddings": ROWS, "weights": weights}))
    other = StaticEmbedder(write_model2vec(tmp_path / "2", {"embeddings": ROWS, "weights": weights * 2}))

    assert one.model_id != other.model_id
