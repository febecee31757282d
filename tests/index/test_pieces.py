"""The pieces of the packaged table are those that the tokenizers library finds, however a text is split."""

import gzip
import json
import math
import random
import shutil
import unicodedata
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from knapper.index.models import static, tables
from knapper.index.models.base import EmbedderError
from knapper.index.models.static import PieceTokenizer

FILE = tables.FOLDER / tables.PIECES_FILE
OLDER = unicodedata.ucd_3_2_0
TEXTS = [
    "",
    " ",
    "--- *** ||| 🎉",
    "Graph view: [[Notes#Links|links]] in `code`, 3.14 and 10,000!",
    "Größe, Straße, ΟΔΥΣΣΕΥΣ, İstanbul, ﬁn, Ⅳ ①",
    "日本語のノートを検索する。リンクとタグ",
    "如何在笔记之间建立链接。",
    "Как связать заметки между собой",
    "เชื่อมโยงโน้ตในห้องเก็บ",
    "नोट्स को कैसे जोड़ें और खोजें",
    "كيف أربط الملاحظات ببعضها",
    "e\u0301tude \u0301x a\u200db x\u0000y \ufeffz",
    "ᚠᚢᚦ ꙮ 𐍈 x",
    "Donaudampfschifffahrtsgesellschaftskapitän" * 3,
    "1234567890" * 9,
]


MANY_TEXTS = [f"{text} 𐍈🎉x{text} 🎉" for text in TEXTS]
"""From 17 texts on, another pattern splits them."""
MANY_WORDS = " ".join(f"word{number}" for number in range(5_000))


def vocabulary() -> list[tuple[str, float]]:
    named = tables.map_tensors(FILE, hint="")
    names = gzip.decompress(named["text"].tobytes()).decode().split("\n")
    return [(name, score / static.SCORE_UNITS) for name, score in zip(names, named["scores"].tolist(), strict=True)]


@pytest.fixture(scope="module")
def library() -> Tokenizer:
    """Give the tokenizer as the training defines it, with the library's own splitting into words."""
    tokenizer = Tokenizer(models.Unigram(vocabulary(), unk_id=static.UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    signs = pre_tokenizers.Split(Regex(r"[^\p{L}\p{N}\p{M}]+"), behavior="removed")
    starts = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([signs, starts])
    return tokenizer


@pytest.fixture(scope="module")
def few() -> PieceTokenizer:
    return PieceTokenizer(FILE, hint="")


@pytest.fixture(scope="module")
def many() -> PieceTokenizer:
    """Give one that has used the library in Rust before, and does so for several texts."""
    tokenizer = PieceTokenizer(FILE, hint="")
    _ = tokenizer.tokenize([MANY_WORDS])
    return tokenizer


def tokens_of(tokenizer: PieceTokenizer, texts: list[str]) -> list[list[int]]:
    tokens = tokenizer.tokenize(texts)
    return [tokens.ids[start:stop].tolist() for start, stop in pairwise(tokens.bounds)]


# Letters that are older than the tables of Unicode which Python and the libraries have.
known_letters = st.characters(exclude_categories=["Cs", "Cn", "Co"]).filter(lambda c: OLDER.category(c) != "Cn")


@given(st.lists(st.text(known_letters), min_size=2, max_size=5))
@example(TEXTS)
@example([*TEXTS, *MANY_TEXTS])
def test_every_way_of_splitting_gives_the_librarys_pieces(
    library: Tokenizer, few: PieceTokenizer, many: PieceTokenizer, texts: list[str]
) -> None:
    expected = [encoding.ids for encoding in library.encode_batch(texts, add_special_tokens=False)]

    # Of equally probable sequences, kitoken may take another.
    assert tokens_of(few, texts) == expected
    assert [score_of(tokens) for tokens in tokens_of(many, texts)] == pytest.approx([score_of(one) for one in expected])


def test_words_that_take_each_others_place_keep_their_tokens(
    few: PieceTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "_SLOT_BITS", 2)
    monkeypatch.setattr(static, "_MAX_KEPT_TOKENS", 400)
    cramped = PieceTokenizer(FILE, hint="")
    texts = [" ".join(TEXTS[at:] + TEXTS[:at]) for at in range(len(TEXTS))]
    batches = [texts + MANY_TEXTS, MANY_TEXTS[::-1] + texts[::-1], texts + texts[::-1]]

    got = [tokens_of(cramped, batch) for batch in batches]

    assert got == [[tokens_of(few, [text])[0] for text in batch] for batch in batches]


def test_words_of_every_script_are_split_as_the_library_does(library: Tokenizer, few: PieceTokenizer) -> None:
    chooser = random.Random(1)
    names = [name.replace(static.WORD_START, " ") for name, _ in vocabulary()]
    texts = ["".join(chooser.choices(names, k=12)) for _ in range(500)]

    differing = [
        text
        for text, tokens in zip(texts, tokens_of(few, texts), strict=True)
        if tokens != library.encode(text, add_special_tokens=False).ids
    ]

    assert differing == []


SCORES = dict(enumerate(score for _, score in vocabulary()))


def score_of(tokens: object) -> float:
    """Return how probable a sequence is: of equally probable ones, a library may take another."""
    return math.fsum(SCORES[token] for token in tokens)  # type: ignore[attr-defined]


def test_the_packaged_files_are_those_that_the_name_stands_for() -> None:
    digests = [
        blake2b((tables.FOLDER / name).read_bytes(), digest_size=8).hexdigest()
        for name in (tables.TABLE_FILE, tables.PIECES_FILE)
    ]

    # Vectors of another table can't be compared: change tables.MODEL along with these.
    assert (tables.MODEL, *digests) == ("multilingual-e5-small-static-160", *DIGESTS)


DIGESTS = ("94d4572b921411ef", "fc5370eed2c117c5")


def test_the_notice_is_beside_the_table() -> None:
    notice = (tables.FOLDER / "NOTICE.md").read_text(encoding="utf-8")

    assert all(name in notice for name in ("multilingual-e5-small", "MIT License", "CC BY 4.0", "Unicode License v3"))


@pytest.mark.parametrize("size", [0, 4, 200, 100_000, -1])
def test_a_cut_file_is_named(tmp_path: Path, size: int) -> None:
    copy = tmp_path / tables.PIECES_FILE
    copy.write_bytes(FILE.read_bytes()[:size])

    with pytest.raises(EmbedderError, match=r"pieces\.safetensors is damaged"):
        _ = static.read_tokenizer(copy, hint="")


def test_places_beyond_the_file_are_named(tmp_path: Path) -> None:
    copy = tmp_path / tables.PIECES_FILE
    shutil.copyfile(FILE, copy)
    with copy.open("r+b") as file:
        head = int.from_bytes(file.read(8), "little")
        offset = 8 + head + json.loads(file.read(head))["buckets"]["data_offsets"][0]
        _ = file.seek(offset + 400)
        _ = file.write(np.uint32(4_000_000_000).tobytes())

    with pytest.raises(EmbedderError, match=r"pieces\.safetensors is damaged"):
        _ = static.read_tokenizer(copy, hint="")


def test_damaged_names_are_told_where_they_are_needed(tmp_path: Path) -> None:
    copy = tmp_path / tables.PIECES_FILE
    content = bytearray(FILE.read_bytes())
    content[-2_000:] = bytes(2_000)
    copy.write_bytes(bytes(content))
    tokenizer = PieceTokenizer(copy, hint="")

    assert tokens_of(tokenizer, ["graph view"]) == tokens_of(PieceTokenizer(FILE, hint=""), ["graph view"])
    with pytest.raises(EmbedderError, match=r"pieces\.safetensors is damaged"):
        _ = tokenizer.tokenize([MANY_WORDS])


def no_library(vocabulary: object) -> None:
    """Find none."""
    del vocabulary


def test_without_kitoken_the_tokenizers_library_splits_many(
    monkeypatch: pytest.MonkeyPatch, few: PieceTokenizer
) -> None:
    monkeypatch.setattr(static, "_load_kitoken", no_library)
    tokenizer = PieceTokenizer(FILE, hint="")

    assert tokens_of(tokenizer, [MANY_WORDS, *TEXTS])[1:] == tokens_of(few, TEXTS)


def test_without_any_library_python_splits_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "_load_kitoken", no_library)
    monkeypatch.setattr(static, "_load_tokenizers", no_library)
    tokenizer = PieceTokenizer(FILE, hint="")

    assert len(tokens_of(tokenizer, [MANY_WORDS, "a"])[0]) > 5_000


class _CountingTokenizer(PieceTokenizer):
    """Counts how often each word is split."""

    def __init__(self, path: Path, *, hint: str) -> None:
        super().__init__(path, hint=hint)
        self.splits: Counter[str] = Counter()

    def _split(self, words: Sequence[str]) -> Sequence[Sequence[int]]:
        self.splits.update(words)
        return super()._split(words)

    @property
    def cached(self) -> int:
        return sum(map(len, self._words))


def test_words_that_recur_stay_known_while_others_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "_MAX_CACHED_WORDS", 100)
    tokenizer = _CountingTokenizer(FILE, hint="")
    for start in range(0, 300, 10):
        tokenizer.tokenize(["rain tomatoes", *(f"word{number}" for number in range(start, start + 10))])

    assert [tokenizer.splits[word] for word in ("rain", "tomatoes")] == [1, 1]
    tokenizer.tokenize(["word1 word299"])
    assert [tokenizer.splits[word] for word in ("word1", "word299")] == [2, 1]
    assert tokenizer.cached <= 100
