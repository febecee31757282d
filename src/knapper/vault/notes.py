"""Read notes: their bytes, what these say, and their text for people."""

import codecs
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from knapper.vault import disk, lookup, parse
from knapper.vault.outline import Outline
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Hold one note as it was at one moment."""

    path: NotePath
    raw: bytes
    hash: str
    """Of ``raw``; what a change names as its base."""
    outline: Outline


def read(root: Path, path: NotePath, *, max_bytes: int = disk.DEFAULT_MAX_BYTES) -> Note:
    """Read a note in one go, and parse it.

    Args:
        root: The vault's folder.
        path: From `knapper.vault.paths.parse`; another spelling of the name on disk will do.
        max_bytes: A larger note is an error (code ``too_large``).

    Raises:
        NotFound: There is no such file, or it vanished meanwhile.
        BadInput: It is a folder, a pipe or a device (code ``not_a_file``), or too large.
        RefusedError: A symbolic link leads out of the vault (code ``outside_vault``).
        StorageError: It may not be read, or the disk fails.
    """
    found = lookup.resolve(root, path)
    raw = disk.read_bytes(found.file, shown_as=found.path, max_bytes=max_bytes)
    return of(found.path, raw)


def of(path: NotePath, raw: bytes, *, read: Callable[[bytes], Outline] = parse.parse) -> Note:
    """Make a note of bytes at hand; *read* may be `parse.head` where only properties matter."""
    return Note(path=path, raw=raw, hash=hash_of(raw), outline=read(raw))


def hash_of(raw: bytes) -> str:
    """Return what identifies a file's content: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def text(raw: bytes) -> str:
    """Decode a note for people and the index, whatever its bytes; changes are made to the bytes instead.

    UTF-8, or UTF-16 where a byte-order mark says so; the mark is dropped. Lines that aren't UTF-8 are read as
    Windows-1252, and where that has gaps as Latin-1, so that a note of mixed origin stays readable.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    body = raw.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "".join(_line(line) for line in body.splitlines(keepends=True))


def _line(line: bytes) -> str:
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")
