"""Split texts into the pieces of the packaged table: Unigram over lower-cased words, in any script.

Few texts are split here, from a mapped file that needs no loading; many by a library in Rust, which first has to build
its own tables from the same pieces. Both give the tokens that the tokenizers library gives for the table's JSON.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
import zlib
from binascii import crc_hqx
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from knapper.index.embedders.base import EmbedderError
from knapper.index.embedders.tables import map_tensors

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

BUCKET_BITS: Final = 17
"""Of a piece's CRC-32, these are the number of its bucket, and the others half of its print."""
LONGEST: Final = 16
"""Characters of the longest piece."""
SCORE_UNITS: Final = 10_000
"""A logarithm of a probability is stored times this, as a whole number."""
UNKNOWN: Final = 0
"""The token of characters without a piece; its vector is zero."""
WORD_START: Final = "▁"
_UNKNOWN_PENALTY: Final = 10.0
_GZIP: Final = 31
"""What zlib takes as the form of gzip."""
_LOW_BITS: Final = 32 - BUCKET_BITS
_LOW_MASK: Final = (1 << _LOW_BITS) - 1
_PRINT_BITS: Final = 16
_FEW_CHARACTERS: Final = 30_000
"""Of new words, up to which splitting them here is faster than building the library's tables."""
_MAX_CACHED_WORDS: Final = 100_000
_MAX_CACHED_CHARACTERS: Final = 30
"""Of a word that is cached; longer ones are passages of scripts without spaces."""
_ASCII_SEPARATORS: Final = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")
_OTHER_SEPARATORS: Final = re.compile(r"[^\w\x00-\x7f]+")
_BUILDING: Final = threading.Lock()
"""One tokenizer is built at a time: a process in which several threads built theirs ended in a segmentation fault."""
BulkTokenizer = Callable[[Sequence[str]], Sequence[Sequence[int]]]


def split_words(text: str) -> list[str]:
    """Return a text's words as the pieces spell them: lower case, and only letters, digits and marks."""
    if text.isascii():
        return _ASCII_SEPARATORS.sub(" ", text.lower()).split()
    # Each character by itself, as the library does; Python would write the last sigma of a word in another way.
    folded = unicodedata.normalize("NFKC", text).replace("Σ", "\N{GREEK SMALL LETTER SIGMA}").lower()
    return _OTHER_SEPARATORS.sub(_keep_marks, _ASCII_SEPARATORS.sub(" ", folded)).split()


def _keep_marks(match: re.Match[str]) -> str:
    """Return a space for signs, but keep the marks of letters, such as the vowels of Hindi."""
    return "".join(character if unicodedata.category(character)[0] == "M" else " " for character in match.group())


def hash_piece(piece: str) -> tuple[int, int]:
    """Return a piece's bucket and print; no two pieces of a table share both, which the packing checks."""
    content = piece.encode()
    crc = zlib.crc32(content)
    return crc >> _LOW_BITS, (crc & _LOW_MASK) << _PRINT_BITS | crc_hqx(content, 0)


class PieceTokenizer:
    """The tokenizer of the packaged table; the file is mapped on first use."""

    def __init__(self, path: Path, *, hint: str) -> None:
        """Map the file.

        Args:
            path: Its ``pieces.safetensors``.
            hint: What to do if it can't be read.

        Raises:
            EmbedderError: It is missing or damaged.
        """
        self._path, self._hint = path, hint
        named = map_tensors(path, hint=hint)
        try:
            buckets, prints, scores = (named[name] for name in ("buckets", "prints", "scores"))
            self._text: NDArray[Any] = named["text"]
        except KeyError as error:
            raise self._damaged() from error
        if not _is_consistent(buckets, prints, scores):
            raise self._damaged()
        # Views of Python's own: an element of an array takes twice as long to read.
        self._buckets = np.asarray(buckets, np.uint32).data
        self._prints = np.asarray(prints, np.uint32).data
        self._scores = np.asarray(scores, np.int32).data
        self._unknown_score = int(scores.min()) / SCORE_UNITS - _UNKNOWN_PENALTY
        self._words: dict[str, Sequence[int]] = {}
        self._split_characters = 0
        self._bulk: BulkTokenizer | None = None

    def tokenize(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return each text's tokens."""
        words = [split_words(text) for text in texts]
        cached = self._words
        distinct = set(chain.from_iterable(words))
        known = {word: tokens for word in distinct if (tokens := cached.get(word)) is not None}
        new_words = list(distinct.difference(known))
        split = dict(zip(new_words, self._split(new_words), strict=True))
        known |= split
        if len(cached) + len(split) > _MAX_CACHED_WORDS:
            cached = self._words = {}
        cached.update((word, tokens) for word, tokens in split.items() if len(word) <= _MAX_CACHED_CHARACTERS)
        return [[token for word in text_words for token in known[word]] for text_words in words]

    def has_letter(self, token: int) -> bool:
        """Return whether a token has a meaning; signs are no pieces."""
        return token != UNKNOWN

    def unknown_token(self) -> int:
        """Return the token of characters without a piece."""
        return UNKNOWN

    def _split(self, words: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return the tokens of each word."""
        self._split_characters += sum(map(len, words))
        if self._bulk is None and self._split_characters > _FEW_CHARACTERS:
            with _BUILDING:
                self._bulk = self._bulk or self._load_bulk()
        starting = [WORD_START + word for word in words]
        return [self._segment(word) for word in starting] if self._bulk is None else self._bulk(starting)

    def _segment(self, word: str) -> tuple[int, ...]:
        """Return the most probable sequence of pieces.

        Source: Kudo, "Subword Regularization", ACL 2018; sentencepiece, ``unigram_model.cc``, on unknown characters.
        """
        characters = [character.encode() for character in word]
        count = len(characters)
        best, begins, tokens = [0.0] * (count + 1), [-1] * (count + 1), [UNKNOWN] * (count + 1)
        for start in range(count):
            score_here, is_known = best[start], False
            for stop, token in self._prefixes(characters, start):
                score = score_here + self._scores[token] / SCORE_UNITS
                if begins[stop] < 0 or score > best[stop]:
                    best[stop], begins[stop], tokens[stop] = score, start, token
                is_known = is_known or stop == start + 1
            if not is_known:
                stop, score = start + 1, score_here + self._unknown_score
                if begins[stop] < 0 or score > best[stop]:
                    best[stop], begins[stop], tokens[stop] = score, start, UNKNOWN
        return _trace_back(begins, tokens)

    def _prefixes(self, characters: Sequence[bytes], start: int) -> Iterator[tuple[int, int]]:
        """Yield where the pieces end that begin at a character, each with its token."""
        buckets, prints = self._buckets, self._prints
        crc = check = 0
        for stop in range(start, min(start + LONGEST, len(characters))):
            character = characters[stop]
            crc, check = zlib.crc32(character, crc), crc_hqx(character, check)
            bucket = crc >> _LOW_BITS
            wanted = (crc & _LOW_MASK) << _PRINT_BITS | check
            for token in range(buckets[bucket], buckets[bucket + 1]):
                if prints[token] == wanted:
                    yield stop + 1, token

    def _load_bulk(self) -> BulkTokenizer | None:
        """Have a library in Rust build its tables; None where none is installed."""
        try:
            vocabulary = [
                (piece, score / SCORE_UNITS)
                for piece, score in zip(
                    zlib.decompress(self._text.tobytes(), _GZIP).decode().split("\n"), self._scores, strict=True
                )
            ]
        except (zlib.error, ValueError) as error:
            raise self._damaged() from error
        return _load_kitoken(vocabulary) or _load_tokenizers(vocabulary)

    def _damaged(self) -> EmbedderError:
        return EmbedderError(f"the embedder's file {self._path} is damaged", hint=self._hint)


def _is_consistent(buckets: NDArray[Any], prints: NDArray[Any], scores: NDArray[Any]) -> bool:
    """Return whether no lookup can leave the arrays."""
    kinds = [array.dtype.str for array in (buckets, prints, scores)]
    return (
        kinds == ["<u4", "<u4", "<i4"]
        and buckets.shape == ((1 << BUCKET_BITS) + 1,)
        and prints.ndim == 1
        and prints.shape == scores.shape
        and int(buckets[-1]) == len(prints)
        and bool((buckets[1:] >= buckets[:-1]).all())
    )


def _trace_back(begins: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens of the best path; unknown ones in a row are one."""
    path: list[int] = []
    stop = len(begins) - 1
    while stop > 0:
        token = tokens[stop]
        if token != UNKNOWN or not path or path[-1] != UNKNOWN:
            path.append(token)
        stop = begins[stop]
    return tuple(reversed(path))


def _load_kitoken(vocabulary: Sequence[tuple[str, float]]) -> BulkTokenizer | None:
    try:
        from kitoken import Kitoken  # noqa: PLC0415 - has no wheel for Windows on ARM
    except ImportError:
        return None
    special = {"id": UNKNOWN, "content": vocabulary[UNKNOWN][0], "special": True}
    special |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    definition = {
        "version": "1.0",
        "added_tokens": [special],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": UNKNOWN, "vocab": vocabulary, "byte_fallback": False},
    }
    try:
        kitoken = Kitoken.from_tokenizers(json.dumps(definition, ensure_ascii=False).encode())
    except ValueError:  # a later kitoken may read another form
        return None
    return lambda texts: kitoken.encode_all(list(texts))


def _load_tokenizers(vocabulary: Sequence[tuple[str, float]]) -> BulkTokenizer | None:
    try:
        from tokenizers import Tokenizer, models  # noqa: PLC0415 - where there is no wheel of kitoken
    except ImportError:
        return None
    tokenizer = Tokenizer(models.Unigram(list(vocabulary), unk_id=UNKNOWN, byte_fallback=False))
    return lambda texts: [
        encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    ]
