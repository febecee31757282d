"""A table in a folder of the owner's is split by its own tokenizer."""

import json
import sys
from pathlib import Path

import pytest

from knapper.index.models import static, tables
from knapper.index.models.base import EmbedderError
from knapper.index.models.static import JsonTokenizer, PieceTokenizer


def write_tokenizer(folder: Path, words: list[str]) -> Path:
    """Write a tokenizer of whole words, and of bytes."""
    file = folder / "tokenizer.json"
    vocabulary = {word: number for number, word in enumerate(words)}
    definition: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    file.write_text(json.dumps(definition), encoding="utf-8")
    return file


def test_a_folder_is_read_by_its_json_and_the_packages_table_by_its_pieces(tmp_path: Path) -> None:
    own = static.read_tokenizer(write_tokenizer(tmp_path, ["[UNK]", "red"]), hint="")
    packaged = static.read_tokenizer(tables.FOLDER / tables.PIECES_FILE, hint="")

    assert isinstance(own, JsonTokenizer)
    assert isinstance(packaged, PieceTokenizer)
    tokens = own.tokenize(["red", "red blue"])
    assert (tokens.ids.tolist(), tokens.bounds.tolist()) == ([1, 1, 0], [0, 1, 3])
    assert own.unknown_token() == 0


def test_signs_and_the_bytes_of_signs_have_no_letter(tmp_path: Path) -> None:
    words = ["[UNK]", "<0x2D>", "<0x41>", "<0xC3>", "--", "-a-", "é", "…"]
    tokenizer = static.read_tokenizer(write_tokenizer(tmp_path, words), hint="")

    assert [word for number, word in enumerate(words) if tokenizer.has_letter(number)] == [
        "[UNK]",
        "<0x41>",
        "<0xC3>",
        "-a-",
        "é",
    ]


def test_without_its_library_a_folder_says_which_extra_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_tokenizer(tmp_path, ["[UNK]"])
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(EmbedderError, match="needs Knapper's extra 'embeddings'"):
        static.read_tokenizer(file, hint="")
