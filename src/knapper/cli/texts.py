"""Take text from where the person says: an argument, a file, the standard input."""

import sys
from pathlib import Path

from knapper.cli import output
from knapper.cli.options import Options
from knapper.errors import BadInput, NotFound
from knapper.vault import files

STDIN = "-"
_MARK = "\ufeff"
"""What some shells put before all that they pipe."""


def given(options: Options, text: str, *, needed: bool = False) -> str:
    """Give an argument as it is; ``-`` stands for what comes on the standard input, less a byte-order mark.

    Args:
        options: The shared ones.
        text: The argument.
        needed: It takes the place of text that is there: where a program wrote nothing because it failed, that is kept.

    Raises:
        BadInput: The standard input isn't UTF-8, or it is empty and something is needed.
    """
    if text != STDIN:
        return text
    found = unmarked(_standard_input(options))
    if needed and not found:
        hint = "see whether what should have written there failed; '' in the place of - stands for no text"
        raise BadInput("the standard input holds nothing", hint=hint, code="no_input")
    return found


def of_file(options: Options, name: str) -> str:
    """Give what a file holds, its line endings and byte-order mark as they are; ``-`` stands for the standard input.

    Raises:
        NotFound: There is no such file.
        BadInput: It isn't UTF-8.
    """
    if name == STDIN:
        return _standard_input(options)
    try:
        return _decoded(Path(name).read_bytes(), name)
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"there is no file '{name}'", hint="name a file, or - for the standard input") from None


def unmarked(text: str) -> str:
    """Leave a byte-order mark out."""
    return text.removeprefix(_MARK)


def _standard_input(options: Options) -> str:
    if sys.stdin.isatty():
        output.note(options, "type the text; Ctrl-D on a line of its own ends it")
    raw = getattr(sys.stdin, "buffer", None)
    if raw is None:
        return sys.stdin.read()
    given = raw.read(
        files.DEFAULT_MAX_BYTES + 1
    )  # a stream without an end would take all memory, and Ctrl-C wouldn't be heard
    if len(given) > files.DEFAULT_MAX_BYTES:
        message = f"the standard input holds more than {files.DEFAULT_MAX_BYTES:,} bytes"
        raise BadInput(message, hint="give less at once", code="too_large")
    return _decoded(given, "the standard input")


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        message = f"{where} isn't UTF-8: byte {error.start} is 0x{raw[error.start]:02x}"
        raise BadInput(message, hint="convert it to UTF-8 first", code="not_utf8") from None
