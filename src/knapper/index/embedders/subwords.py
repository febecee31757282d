"""Split texts into the tokens of a table of static vectors.

The package's own table has its pieces in a file that is mapped, see `pieces`. A table in a folder of the owner's may
have any tokenizer, and takes the tokenizers library.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from knapper import errors, extras
from knapper.index.embedders import tables
from knapper.index.embedders.base import EmbedderError
from knapper.index.embedders.pieces import PieceTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
    return JsonTokenizer(_read_json(path, hint=hint))


def _read_json(path: Path, *, hint: str) -> "Tokenizer":
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
    return tokenizer


def _holds_letter(token: bytes) -> bool:
    """Return whether a token's bytes have meaning; a single one above ASCII is part of a letter."""
    if len(token) == 1 and token[0] > _LAST_ASCII:
        return True
    return any(character.isalnum() for character in token.decode(errors="replace"))
