"""Embed with static word vectors, without network or GPU: split texts into tokens, and average their rows."""

from __future__ import annotations

import json
import re
import secrets
import threading
import unicodedata
import zlib
from array import array
from binascii import crc_hqx
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from knapper import errors, extras
from knapper.index.models import tables
from knapper.index.models.base import EmbedderError
from knapper.index.models.tables import TokenTable, map_tensors
from knapper.jsontypes import replace_surrogates
from knapper.system.arrays import normalize_rows, np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer


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
_MAX_CACHED_WORDS: Final = 20_000
"""Of few texts, such as questions; about 0.4 kB each."""
_SLOT_BITS: Final = 18
"""Of the hash of a word of many texts, these are the number of its slot, which takes 16 bytes."""
_HASHED_CHARACTERS: Final = 64
"""Of a word that is hashed with those beside it; longer ones are hashed by themselves."""
_MAX_KEPT_TOKENS: Final = 500_000
"""Of words of many texts, in 2 MB."""
_MAX_CACHED_CHARACTERS: Final = 30
"""Of a word that is cached; longer ones are passages of scripts without spaces."""
_ASCII_SEPARATORS: Final = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")
_ASCII_SPACES: Final = {number: " " for number in range(128) if not chr(number).isalnum()}
_OTHER_SEPARATORS: Final = re.compile(r"[^\w\x00-\x7f]+")
_ABOVE_BMP: Final = re.compile("[\U00010000-\U0010ffff]")
_FEW_TEXTS: Final = 16
"""Up to so many, splitting them takes less time than making the pattern for many."""
_BUILDING: Final = threading.Lock()
"""One tokenizer is built at a time: a process in which several threads built theirs ended in a segmentation fault."""
BulkTokenizer = Callable[[Sequence[str]], Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTokens:
    """The tokens of several texts."""

    ids: NDArray[np.intp]
    """All tokens, in order."""
    bounds: NDArray[np.intp]
    """Where each text's tokens begin, and at last where those of the last one end."""

    @classmethod
    def join(cls, texts: Sequence[Sequence[int]]) -> Self:
        """Join the tokens of texts."""
        bounds = np.zeros(len(texts) + 1, np.intp)
        np.cumsum(np.fromiter(map(len, texts), np.intp, len(texts)), out=bounds[1:])
        return cls(ids=np.fromiter(chain.from_iterable(texts), np.intp, bounds[-1]), bounds=bounds)

    def without(self, token: int) -> Self:
        """Return all tokens but one."""
        is_kept = self.ids != token
        kept = np.concatenate(([0], is_kept.cumsum()))
        return type(self)(ids=self.ids[is_kept], bounds=kept[self.bounds])


def split_words(text: str) -> list[str]:
    """Return a text's words as the pieces spell them: lower case, and only letters, digits and marks."""
    return _split_ascii(text) if text.isascii() else _split_folded(_fold(text))


def _split_ascii(text: str) -> list[str]:
    return text.lower().translate(_ASCII_SPACES).split()


def _fold(text: str) -> str:
    # Each character by itself, as the library does; Python would write the last sigma of a word in another way.
    return unicodedata.normalize("NFKC", text).replace("Σ", "\N{GREEK SMALL LETTER SIGMA}").lower()


def _split_folded(text: str) -> list[str]:
    return _OTHER_SEPARATORS.sub(_keep_marks, _ASCII_SEPARATORS.sub(" ", text)).split()


@cache
def _kept_characters() -> NDArray[np.bool_]:
    """Return for each character whether it is a small letter, digit or mark; the last element is for all above U+FFFF.

    Those are kept with the signs among them, and looked at word by word.
    """
    characters = "".join(map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x10000))))
    kept = np.zeros(0x10001, np.bool_)
    for text in ("0123456789abcdefghijklmnopqrstuvwxyz", _OTHER_SEPARATORS.sub(_keep_marks, characters)):
        kept[_code_points(text)] = True
    kept[ord(" ")] = False
    kept[-1] = True
    return kept


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), "<u4")


def _keep_marks(match: re.Match[str]) -> str:
    """Return a space for signs, but keep the marks of letters, such as the vowels of Hindi."""
    return "".join(character if unicodedata.category(character)[0] == "M" else " " for character in match.group())


def hash_piece(piece: str) -> tuple[int, int]:
    """Return a piece's bucket and print; no two pieces of a table share both, which the packing checks."""
    content = piece.encode()
    crc = zlib.crc32(content)
    return crc >> _LOW_BITS, (crc & _LOW_MASK) << _PRINT_BITS | crc_hqx(content, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundWords:
    """The words of several texts, as places in one text; those with characters above U+FFFF are joined by signs."""

    text: str
    """All texts, folded."""
    starts: NDArray[np.intp]
    stops: NDArray[np.intp]
    hashes: NDArray[np.uint64]
    counts: NDArray[np.intp]
    """How many words each text has."""

    @classmethod
    def read(cls, texts: Sequence[str], factors: NDArray[np.uint64]) -> Self:
        """Find and hash all words, by arrays over all characters: most words come again and again.

        The hash is a sum of characters times random *factors* by their place in the word, so that even of a million
        words hardly two will ever share one, and no text can be made up that has such words.
        """
        folded = [text.lower() if text.isascii() else _fold(text) for text in texts]
        joined = "\n".join(folded)
        codes = _code_points(joined)
        is_kept = _kept_characters().take(codes, mode="clip")
        edges = np.flatnonzero(np.diff(is_kept, prepend=False, append=False))
        starts, stops = edges[::2], edges[1::2]
        lengths = stops - starts
        heads = lengths.cumsum() - lengths
        places = np.arange(int(lengths.sum())) - heads.repeat(lengths)
        hashes = np.add.reduceat(codes[is_kept] * factors.take(places, mode="clip"), heads)
        for word in np.flatnonzero(lengths > len(factors)).tolist():
            hashes[word] = hash(joined[starts[word] : stops[word]]) % (1 << 64)
        ends = np.cumsum(np.fromiter(map(len, folded), np.intp, len(folded)) + 1)
        counts = np.diff(starts.searchsorted(ends), prepend=0)
        return cls(text=joined, starts=starts, stops=stops, hashes=hashes, counts=counts)


class _SplitWords:
    """Words of many texts with their tokens, in slots by the words' hashes; a new word takes the place of an older."""

    def __init__(self) -> None:
        self.factors = np.frombuffer(secrets.token_bytes(8 * _HASHED_CHARACTERS), np.uint64)
        self._hashes = np.zeros(1 << _SLOT_BITS, np.uint64)
        # That of a free slot has another slot.
        self._hashes[0] = (1 << 64) - 1
        self._starts, self._counts = np.zeros((2, 1 << _SLOT_BITS), np.int32)
        self._tokens = array("i")

    def tokens_of(self, words: _FoundWords, split: Callable[[Sequence[str]], Iterator[Sequence[int]]]) -> TextTokens:
        """Return the tokens of each word; *split* does so for new words."""
        slots = words.hashes >> np.uint64(64 - _SLOT_BITS)
        starts, counts = self._starts[slots], self._counts[slots]
        new = np.flatnonzero(self._hashes[slots] != words.hashes)
        if len(new):
            hashes, first, place = np.unique(words.hashes[new], return_index=True, return_inverse=True)
            spans = zip(words.starts[new[first]].tolist(), words.stops[new[first]].tolist(), strict=True)
            tokens = list(split([words.text[start:stop] for start, stop in spans]))
            new_counts = np.fromiter(map(len, tokens), np.int32, len(tokens))
            new_starts = len(self._tokens) + new_counts.cumsum(dtype=np.int32) - new_counts
            self._tokens.extend(chain.from_iterable(tokens))
            starts[new], counts[new] = new_starts[place], new_counts[place]
            # Of several for one slot, all three arrays get the last.
            slots = hashes >> np.uint64(64 - _SLOT_BITS)
            self._hashes[slots], self._starts[slots], self._counts[slots] = hashes, new_starts, new_counts
        bounds = np.concatenate(([0], counts.cumsum(dtype=np.intp)))
        # Each word's tokens are copied from where they stand first.
        at = np.arange(int(bounds[-1])) + (starts - bounds[:-1]).repeat(counts)
        return TextTokens(ids=np.frombuffer(self._tokens, np.intc)[at].astype(np.intp), bounds=bounds)

    @property
    def is_full(self) -> bool:
        """Return whether it holds as many tokens as are kept."""
        return len(self._tokens) > _MAX_KEPT_TOKENS


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
        # With these shapes, no lookup can leave the arrays.
        kinds = [array.dtype.str for array in (buckets, prints, scores)]
        if not (
            kinds == ["<u4", "<u4", "<i4"]
            and buckets.shape == ((1 << BUCKET_BITS) + 1,)
            and prints.ndim == 1
            and prints.shape == scores.shape
            and int(buckets[-1]) == len(prints)
            and bool((buckets[1:] >= buckets[:-1]).all())
        ):
            raise self._damaged()
        # Views of Python's own: an element of an array takes twice as long to read.
        self._buckets = np.asarray(buckets, np.uint32).data
        self._prints = np.asarray(prints, np.uint32).data
        self._scores = np.asarray(scores, np.int32).data
        self._unknown_score = int(scores.min()) / SCORE_UNITS - _UNKNOWN_PENALTY
        self._words: tuple[dict[str, Sequence[int]], dict[str, Sequence[int]]] = ({}, {})
        """The words used lately, and those before them, which are forgotten when the first are too many."""
        self._lock = threading.Lock()
        self._many: _SplitWords | None = None
        """The words of many texts."""
        self._split_characters = 0
        self._bulk: BulkTokenizer | None = None

    def tokenize(self, texts: Sequence[str]) -> TextTokens:
        """Return each text's tokens."""
        if len(texts) <= _FEW_TEXTS:
            # For so few, arrays take longer than they save.
            few = [split_words(text) for text in texts]
            distinct = list(dict.fromkeys(chain.from_iterable(few)))
            pieces = dict(zip(distinct, self._split_distinct(distinct), strict=True))
            return TextTokens.join([list(chain.from_iterable(map(pieces.__getitem__, each))) for each in few])
        with self._lock:
            if self._many is None or self._many.is_full:
                self._many = _SplitWords()
            words = _FoundWords.read(texts, self._many.factors)
            tokens = self._many.tokens_of(words, self._split_runs)
        return TextTokens(ids=tokens.ids, bounds=tokens.bounds[np.concatenate(([0], words.counts.cumsum()))])

    def tokenize_one(self, text: str) -> Sequence[int]:
        """Return a text's tokens."""
        words, recent = split_words(text), self._words[0]
        tokens = [recent.get(word) for word in words]
        if None in tokens:
            distinct = list(dict.fromkeys(words))
            split = dict(zip(distinct, self._split_distinct(distinct), strict=True))
            tokens = [split[word] for word in words]
        return list(chain.from_iterable(filter(None, tokens)))

    def _split_distinct(self, words: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return the tokens of words, each of which is given once."""
        recent, older = self._words
        known = {word: tokens for word in words if (tokens := recent.get(word, older.get(word))) is not None}
        new_words = [word for word in words if word not in known]
        known |= zip(new_words, self._split_runs(new_words), strict=True)
        recent, older = self._words  # as others may have set them meanwhile
        if len(recent) + len(known) > _MAX_CACHED_WORDS // 2:
            recent, older = {}, recent
        short = ((word, tokens) for word, tokens in known.items() if len(word) <= _MAX_CACHED_CHARACTERS)
        recent.update(islice(short, _MAX_CACHED_WORDS // 2))
        self._words = recent, older
        return [known[word] for word in words]

    def has_letter(self, token: int) -> bool:
        """Return whether a token has a meaning; signs are no pieces."""
        return token != UNKNOWN

    def unknown_token(self) -> int:
        """Return the token of characters without a piece."""
        return UNKNOWN

    def _split_runs(self, runs: Sequence[str]) -> Iterator[Sequence[int]]:
        """Yield the tokens of each word, or of all words of a run with characters above U+FFFF."""
        if not _ABOVE_BMP.search(" ".join(runs)):
            yield from self._split(runs)
            return
        parts = [_split_folded(run) if _ABOVE_BMP.search(run) else (run,) for run in runs]
        tokens = iter(self._split(list(chain.from_iterable(parts))))
        for part in parts:
            yield next(tokens) if len(part) == 1 else tuple(chain.from_iterable(islice(tokens, len(part))))

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
        path: list[int] = []
        stop = len(begins) - 1
        while stop > 0:
            token = tokens[stop]
            if token != UNKNOWN or not path or path[-1] != UNKNOWN:
                path.append(token)
            stop = begins[stop]
        return tuple(reversed(path))

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


_LAST_ASCII: Final = 0x7F
_BYTE_TOKEN_LENGTH: Final = len("<0x2D>")


class SubwordTokenizer(Protocol):
    """Splits texts into tokens, by number."""

    def tokenize(self, texts: Sequence[str]) -> TextTokens:
        """Return each text's tokens; no token stands for a text's beginning or end."""
        ...

    def tokenize_one(self, text: str) -> Sequence[int]:
        """Return a text's tokens, in less time than with others."""
        ...

    def has_letter(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one."""
        ...

    def unknown_token(self) -> int | None:
        """Return the token of unknown words; None where there is none."""
        ...


class JsonTokenizer:
    """A tokenizer in the format of Hugging Face's library."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a tokenizer that neither truncates nor pads."""
        self._tokenizer = tokenizer

    def tokenize(self, texts: Sequence[str]) -> TextTokens:
        """Return each text's tokens; a single text is split without the threads that are used for many."""
        if len(texts) == 1:
            return TextTokens.join([self._tokenizer.encode(texts[0], add_special_tokens=False).ids])
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return TextTokens.join([encoding.ids for encoding in encodings])

    def tokenize_one(self, text: str) -> Sequence[int]:
        """Return a text's tokens."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def has_letter(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one; ``<0x2D>`` is the byte of a sign."""
        text = self._tokenizer.id_to_token(token) or ""
        if len(text) == _BYTE_TOKEN_LENGTH and text.startswith("<0x") and text.endswith(">"):
            return _holds_letter(bytes([int(text[3:-1], 16)]))
        return _holds_letter(text.encode())

    def unknown_token(self) -> int | None:
        """Return the token of unknown words; None where there is none."""
        name = getattr(self._tokenizer.model, "unk_token", None)
        return self._tokenizer.token_to_id(name) if isinstance(name, str) else None


def read_tokenizer(path: Path, *, hint: str) -> SubwordTokenizer:
    """Read the tokenizer of a table.

    Args:
        path: Its ``tokenizer.json``, or the pieces of the package's own table.
        hint: What to do if it can't be read.

    Raises:
        EmbedderError: It is missing or damaged, or the library for it isn't installed.
    """
    if path.name == tables.PIECES_FILE:
        return PieceTokenizer(path, hint=hint)
    if not path.is_file():
        raise EmbedderError(f"the embedder's file {path} is missing", hint=hint)
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise extras.missing(
            "embeddings", f"the tokenizer {path}", error=EmbedderError, code="embedder_extra"
        ) from error
    try:
        tokenizer = Tokenizer.from_str(path.read_bytes().decode())
    except Exception as error:
        if not errors.raised_by(error, "tokenizers"):
            raise
        raise EmbedderError(f"the embedder's file {path} is damaged", hint=hint) from error
    # "<s>" in a note is HTML and not the model's token.
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return JsonTokenizer(tokenizer)


def _holds_letter(token: bytes) -> bool:
    """Return whether a token's bytes have meaning; a single one above ASCII is part of a letter."""
    if len(token) == 1 and token[0] > _LAST_ASCII:
        return True
    return any(character.isalnum() for character in token.decode(errors="replace"))


_POOLED_TEXTS = 512
"""Texts that are pooled at a time, which limits the memory for their tokens."""
_SUMMED_TOKENS = 4_096
"""Tokens of one text that are added up at a time."""
_TOKENS_OF_A_QUERY = 64
_FEW_TOKENS = 4_096
"""So many are sorted faster than a mark for each token of a table is set."""


class _Part:
    """One table with its tokenizer; both are read on first use, and the table is memory-mapped."""

    def __init__(self, folder: Path, weight: float) -> None:
        """Set the folder, and the weight beside other tables."""
        self.folder = folder
        self.weight = weight
        self._spoken: dict[int, bool] = {}
        self._lock = threading.Lock()

    @cached_property
    def table(self) -> TokenTable:
        """Return the table.

        Raises:
            EmbedderError: It is missing or damaged.
        """
        with self._lock:
            return tables.read_table(self.folder)

    def add_to(self, rows: NDArray[np.float32], texts: Sequence[str]) -> None:
        """Add each text's vector, of the weight's length, to a row of zeros."""
        for at in range(0, len(texts), _POOLED_TEXTS):
            slab = [replace_surrogates(text) for text in texts[at : at + _POOLED_TEXTS]]
            tokens = self._tokenizer.tokenize(slab)
            if self._unknown is not None:
                tokens = tokens.without(self._unknown)
            self._pool(tokens, rows[at : at + _POOLED_TEXTS])
        if self.folder != tables.FOLDER and not np.isfinite(rows).all():
            raise EmbedderError(f"the table in {self.folder} holds numbers that are none", hint=tables.FOLDER_HINT)
        rows[:] = normalize_rows(rows) * np.float32(self.weight**0.5)

    def embed(self, text: str) -> NDArray[np.float32] | None:
        """Return the vector of a short text, as `add_to` would add it; None for a long one."""
        table = self.table
        tokens = self._tokenizer.tokenize_one(replace_surrogates(text))
        if table.counts_signs:
            unknown = self._unknown
            tokens = [token for token in tokens if token != unknown]
        if len(tokens) > _TOKENS_OF_A_QUERY:
            return None
        last = table.vocabulary - 1
        vectors = table.vectors(np.array([min(token, last) for token in tokens], np.intp))
        if not table.counts_signs:
            vectors[[not self._speaks(min(token, last)) for token in tokens]] = 0
        row: NDArray[np.float32] = np.add.reduce(vectors, axis=0)
        length = np.sqrt(np.add.reduce(row * row))
        if self.folder != tables.FOLDER and not np.isfinite(length):
            return None  # which reports what is wrong
        return row / length * np.float32(self.weight**0.5) if length > 0 else row

    def _pool(self, tokens: TextTokens, rows: NDArray[np.float32]) -> None:
        """Sum the rows of each text's tokens; only the used rows are converted to float32."""
        used, places = _distinct_ids(tokens.ids, self.table.vocabulary)
        vectors = np.asarray(self.table.vectors(used))
        if not self.table.counts_signs:
            vectors[[not self._speaks(int(token)) for token in used]] = 0
        bounds = tokens.bounds.tolist()
        for row, (start, stop) in zip(rows, pairwise(bounds), strict=True):
            for slab in range(start, stop, _SUMMED_TOKENS):
                row += np.add.reduce(vectors.take(places[slab : min(slab + _SUMMED_TOKENS, stop)], axis=0), axis=0)

    def _speaks(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one."""
        is_spoken = self._spoken.get(token)
        if is_spoken is None:
            is_spoken = self._spoken[token] = self._tokenizer.has_letter(token)
        return is_spoken

    @cached_property
    def _tokenizer(self) -> SubwordTokenizer:
        table = self.table
        with self._lock:
            return read_tokenizer(table.tokenizer, hint=tables.table_hint(self.folder))

    @cached_property
    def _unknown(self) -> int | None:
        """The token of unknown words, which is left out where signs count; None where there is none."""
        return self._tokenizer.unknown_token() if self.table.counts_signs else None


class StaticEmbedder:
    """An embedder that averages the rows of one or several tables of token vectors.

    Files are read on first use; the tables are memory-mapped.
    """

    instant = True

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder of the files.

        Args:
            folder: Contains ``tokenizer.json`` beside a table, or ``tables.json``; None takes the package's own table.
        """
        self.folder = folder or tables.FOLDER

    @property
    def model_id(self) -> str:
        """Return an id of the tables and their weights; those of another folder are hashes of the content.

        Raises:
            EmbedderError: The other folder has no table.
        """
        return self._name

    @property
    def dimensions(self) -> int:
        """Return a vector's dimensions."""
        return sum(part.table.dimensions for part in self._parts)

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Embed texts that will be searched, as rows; *stop* has no effect, as no server is waited for.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        del stop
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        start = 0
        for part in self._parts:
            stop_column = start + part.table.dimensions
            part.add_to(rows[:, start:stop_column], texts)
            start = stop_column
        # A text may have no token of one of the tables.
        return rows if len(self._parts) == 1 else normalize_rows(rows)

    def query(self, text: str) -> NDArray[np.float32]:
        """Embed a query.

        Raises:
            EmbedderError: A file of the model is missing or damaged.
        """
        vector = self._parts[0].embed(text) if len(self._parts) == 1 else None
        return self.passages([text])[0] if vector is None else vector

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        """Return those words that have a vector of zeros, as in a script that no table has."""
        if not words:
            return ()
        return [word for word, row in zip(words, self.passages(words), strict=True) if not row.any()]

    def close(self) -> None:
        """Do nothing: there is no connection."""

    @cached_property
    def _parts(self) -> Sequence[_Part]:
        folders = tables.read_folders(self.folder)
        return [_Part(one.path, one.weight if len(folders) > 1 else 1.0) for one in folders]

    @cached_property
    def _name(self) -> str:
        names = [part.table.name for part in self._parts]
        if len(names) == 1:
            return names[0]
        return "+".join(f"{name}*{part.weight:g}" for name, part in zip(names, self._parts, strict=True))


def _distinct_ids(ids: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct ids, or the few that they are, and each id's index among them.

    Ids that are missing in the table become its last row.
    """
    np.minimum(ids, count - 1, out=ids)
    if len(ids) <= _TOKENS_OF_A_QUERY:  # a row that is read twice takes less than looking for it
        return ids, np.arange(len(ids))
    if len(ids) <= _FEW_TOKENS:
        used, places = np.unique(ids, return_inverse=True)
        return used, places.reshape(-1)
    is_used = np.zeros(count, np.bool_)
    is_used[ids] = True
    places = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), places[ids]
