"""Split texts into the tokens of a table of static vectors.

The package's own table comes with a compact definition of its tokenizer, which kitoken reads in a tenth of the time
that the tokenizers library needs for the JSON. Both give the same tokens. A table in a folder of the owner's may have
any tokenizer, and takes that library.
"""

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from knapper import errors, extras
from knapper.index.embedders.base import EmbedderError

if TYPE_CHECKING:
    from kitoken import Kitoken
    from tokenizers import Tokenizer

COMPACT_FILE: Final = "tokenizer.kit"
"""The packaged definition, made from JSON when the package is built."""
COMPACT_SHA256: Final = "4e353ada701b7c79303b489a22bb9b7bce6b0ebfe65c02d2a9bc062b66e8eb5e"
"""Of that file: kitoken ends the whole process over one that is damaged, so no other is shown to it."""
PACKED_FILE: Final = "tokenizer.json.gz"
"""The JSON, for systems that have no kitoken."""
_LAST_ASCII: Final = 0x7F
_BYTE_TOKEN_LENGTH: Final = len("<0x2D>")


class SubwordTokenizer(Protocol):
    """Splits texts into tokens, by number."""

    def tokenize(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return each text's tokens; no token stands for a text's beginning or end."""
        ...

    def has_letter(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one."""
        ...

    def unknown_token(self) -> int | None:
        """Return the token of unknown words; None where there is none."""
        ...


class CompactTokenizer:
    """The tokenizer of the package's table."""

    def __init__(self, tokenizer: "Kitoken") -> None:
        """Take a tokenizer without special tokens, at which it would split texts."""
        self._tokenizer = tokenizer

    def tokenize(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return each text's tokens."""
        return self._tokenizer.encode_all(list(texts))

    def has_letter(self, token: int) -> bool:
        """Return whether a token contains a letter or digit, or part of one."""
        try:
            return _holds_letter(self._tokenizer.decode([token]))
        except ValueError:  # bytes that have a token of their own never get this one
            return False

    def unknown_token(self) -> None:
        """Return None: unknown characters become the tokens of their bytes."""


class JsonTokenizer:
    """A tokenizer in the format of Hugging Face's library."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        """Take a tokenizer that neither truncates nor pads."""
        self._tokenizer = tokenizer

    def tokenize(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return each text's tokens; a single text is split without the threads that are used for many."""
        if len(texts) == 1:
            return [self._tokenizer.encode(texts[0], add_special_tokens=False).ids]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

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


def read_tokenizer(path: Path, *, hint: str, is_packaged: bool) -> SubwordTokenizer:
    """Read the tokenizer of a table.

    Args:
        path: Its ``tokenizer.json``.
        hint: What to do if it can't be read.
        is_packaged: It is the package's own: the compact definition or the compressed JSON beside it are read instead.

    Raises:
        EmbedderError: It is missing or damaged, or the library for it isn't installed.
    """
    compact = _read_compact(path.with_name(COMPACT_FILE)) if is_packaged else None
    if compact is not None:
        return compact
    path = path.with_name(PACKED_FILE) if is_packaged else path
    if not path.is_file():
        raise EmbedderError(f"the embedder's file {path} is missing", hint=hint)
    return JsonTokenizer(_read_json(path, hint=hint))


def _read_compact(path: Path) -> CompactTokenizer | None:
    """Return the tokenizer of a compact definition; None where there is none that can be read here."""
    try:
        from kitoken import Kitoken  # noqa: PLC0415 - has no wheel for Windows on ARM

        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != COMPACT_SHA256:
            return None
        return CompactTokenizer(Kitoken(content))
    except (ImportError, OSError, ValueError):  # a later kitoken may have another format
        return None


def _read_json(path: Path, *, hint: str) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise extras.missing(
            "embeddings", f"the tokenizer {path}", error=EmbedderError, code="embedder_extra"
        ) from error
    try:
        content = path.read_bytes()
        packed = path.name == PACKED_FILE
        tokenizer = Tokenizer.from_str((gzip.decompress(content) if packed else content).decode())
    except Exception as error:
        if not errors.raised_by(error, "tokenizers"):
            raise
        raise EmbedderError(f"the embedder's file {path} is damaged", hint=hint) from error
    # "<s>" in a note is HTML and not the model's token.
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _holds_letter(token: bytes) -> bool:
    """Return whether a token's bytes have meaning; a single one above ASCII is part of a letter."""
    if len(token) == 1 and token[0] > _LAST_ASCII:
        return True
    return any(character.isalnum() for character in token.decode(errors="replace"))
