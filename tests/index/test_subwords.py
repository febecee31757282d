"""The compact tokenizer gives the tokens of the JSON that it was made from."""

import hashlib
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hatch_build
from knapper.index.embedders import static, subwords
from knapper.index.embedders.base import EmbedderError
from knapper.index.embedders.subwords import CompactTokenizer, JsonTokenizer, SubwordTokenizer

FILE = static.FOLDER / "tokenizer.json"
ODD = [
    "",
    " ",
    "  a",
    "▁",
    "<s>",
    "</s> x",
    "a<unk>b",
    "<0x41>",
    "\0",
    "e\u0301",
    "\u2028",
    "👩‍👩‍👧",
    "中文",
    "-" * 99,
    "\r\n",
]


@pytest.fixture(scope="module")
def pair() -> tuple[SubwordTokenizer, SubwordTokenizer]:
    """Give the tokenizer that is packaged, and the library's."""
    compact = subwords.read_tokenizer(FILE, hint="", is_packaged=True)
    whole = subwords.read_tokenizer(FILE, hint="", is_packaged=False)
    assert isinstance(compact, CompactTokenizer)
    assert isinstance(whole, JsonTokenizer)
    return compact, whole


@given(st.lists(st.text() | st.lists(st.sampled_from([*ODD, "ab", "é"])).map("".join), min_size=1, max_size=4))
def test_both_split_any_text_alike(pair: tuple[SubwordTokenizer, SubwordTokenizer], texts: list[str]) -> None:
    compact, whole = pair

    assert [list(tokens) for tokens in compact.tokenize(texts)] == [list(tokens) for tokens in whole.tokenize(texts)]


def test_both_know_which_tokens_have_a_letter(pair: tuple[SubwordTokenizer, SubwordTokenizer]) -> None:
    compact, whole = pair
    count = len(json.loads(FILE.read_text(encoding="utf-8"))["model"]["vocab"])
    start = 3 + 128  # no text becomes the special tokens, nor the bytes of characters that have tokens of their own

    assert [n for n in range(start, count) if compact.has_letter(n) != whole.has_letter(n)] == []


def test_the_packaged_file_is_what_the_json_gives() -> None:
    packaged = (static.FOLDER / subwords.COMPACT_FILE).read_bytes()

    assert hatch_build.compact_tokenizer(FILE.read_bytes()) == packaged, "run scripts/setup"
    assert hashlib.sha256(packaged).hexdigest() == subwords.COMPACT_SHA256


@pytest.mark.parametrize("content", [b"", b"kitoken", b"kitoken\x00\x09later"])
def test_a_compact_form_that_cant_be_read_is_left_for_the_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / subwords.PACKED_FILE).write_bytes((static.FOLDER / subwords.PACKED_FILE).read_bytes())
    (tmp_path / subwords.COMPACT_FILE).write_bytes(content)

    tokenizer = subwords.read_tokenizer(tmp_path / "tokenizer.json", hint="", is_packaged=True)

    assert isinstance(tokenizer, JsonTokenizer)


def test_a_folder_of_the_owner_is_read_by_its_json_alone(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(FILE.read_bytes())
    (tmp_path / subwords.COMPACT_FILE).write_bytes((static.FOLDER / subwords.COMPACT_FILE).read_bytes())

    assert isinstance(subwords.read_tokenizer(tmp_path / "tokenizer.json", hint="", is_packaged=False), JsonTokenizer)


def test_without_its_library_a_folder_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(EmbedderError, match="needs Knapper's extra 'embeddings'"):
        subwords.read_tokenizer(FILE, hint="", is_packaged=False)
