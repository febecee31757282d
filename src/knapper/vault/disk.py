"""Read one file's bytes from one open descriptor: regular files only, none too large."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from knapper.errors import BadInput, KnapError, NotFound, StorageError
from knapper.vault.paths import shown

DEFAULT_MAX_BYTES: Final = 100 * 1024 * 1024
_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe named like a note would wait for a writer
    | getattr(os, "O_NOFOLLOW", 0)  # links were followed, and checked, before
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def read_bytes(file: Path, *, shown_as: str, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Return all bytes of a file.

    Args:
        file: An absolute path without links, as `knapper.vault.lookup` gives it.
        shown_as: What errors call the file: its path in the vault.
        max_bytes: More is an error (code ``too_large``), not a part of the file.

    Raises:
        NotFound: It isn't there, perhaps since a moment ago.
        BadInput: It is a folder, a pipe or a device (code ``not_a_file``), or too large.
        StorageError: It may not be read, or the disk fails.
    """
    try:
        with _opened(file, shown_as) as opened:
            raw = opened.read(max_bytes + 1)
    except OSError as error:
        raise _told(error, shown_as) from error
    if len(raw) > max_bytes:
        msg = f"{shown(shown_as)} is larger than {max_bytes} bytes"
        raise BadInput(msg, code="too_large", hint="split it into several notes")
    return raw


@contextmanager
def open_bytes(file: Path, *, shown_as: str, max_bytes: int = DEFAULT_MAX_BYTES) -> Generator[BinaryIO]:
    """Open a file to read it a stretch at a time; arguments and errors are those of `read_bytes`."""
    try:
        opened = _opened(file, shown_as)
    except OSError as error:
        raise _told(error, shown_as) from error
    with opened:
        if os.fstat(opened.fileno()).st_size > max_bytes:
            msg = f"{shown(shown_as)} is larger than {max_bytes:,} bytes"
            raise BadInput(msg, code="too_large", hint="split it, or save it in a smaller format")
        yield opened


def _opened(file: Path, shown_as: str) -> BinaryIO:
    opened = os.fdopen(os.open(file, _FLAGS), "rb")
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise _not_a_file(shown_as)
    return opened


def _not_a_file(shown_as: str) -> KnapError:
    return BadInput(f"{shown(shown_as)} isn't a file", code="not_a_file", hint="give the path of a file")


def _told(error: OSError, shown_as: str) -> KnapError:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return NotFound(f"no file {shown(shown_as)} in the vault", hint="it may just have been moved; list it again")
    if isinstance(error, IsADirectoryError):
        return _not_a_file(shown_as)
    msg = f"{shown(shown_as)} can't be read: {error.strerror}"
    return StorageError(msg, hint="check the file's permissions and the disk")
