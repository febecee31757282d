"""Read files below folders that the owner allows, whatever others do to these folders meanwhile."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from knapper.errors import BadInput, KnapError, NotFound, StorageError
from knapper.vault import files, parser, paths
from knapper.vault.paths import NotePath

_MOST: Final = 8_000_000
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_FILE: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
_CAN_DESCEND: Final = os.open in os.supports_dir_fd


def read(roots: tuple[Path, ...], raw: str) -> str:
    """Read a text file below one of some folders; links out of them aren't followed.

    Args:
        roots: The folders, without links in their paths.
        raw: The path, as the script wrote it.

    Raises:
        KnapError: As the last of the folders says it.
    """
    failure: KnapError = NotFound("no folder may be read by scripts", hint="the owner can allow one")
    for root in roots:
        try:
            place = files.resolve_path(root, paths.parse(raw, root=root))
            content = content_of(root, place.target)
        except KnapError as error:
            failure = error
            continue
        if b"\0" in content:
            raise BadInput(f"{place.path} isn't text", code="not_text")
        return parser.decode_text(content)
    raise failure


def content_of(root: Path, path: NotePath) -> bytes:
    """Read a file by going down from a folder to the next, so that none of them can become a link on the way.

    Args:
        root: A folder.
        path: Of the file, from there on; no part of it was a link when it was looked at.

    Raises:
        NotFound: It isn't there, or the way there leads over a link by now.
        BadInput: It is no file, or too large (codes ``not_a_file``, ``too_large``).
        StorageError: It can't be read.
    """
    if not _CAN_DESCEND:
        return files.read_bytes(root / path, shown_as=path, max_bytes=_MOST)
    *folders, name = path.split("/")
    try:
        with contextlib.ExitStack() as held:
            at = _hold(held, os.open(root, _FOLDER))
            for folder in folders:
                at = _hold(held, os.open(folder, _FOLDER | _NOFOLLOW, dir_fd=at))
            file = _hold(held, os.open(name, _FILE | _NOFOLLOW, dir_fd=at))
            return _content(file, path)
    except OSError as error:
        if isinstance(error, PermissionError):
            raise StorageError(f"{paths.quote_path(path)} can't be read", hint="check its permissions") from error
        raise NotFound(f"no file {paths.quote_path(path)} there", hint="list or search for its name") from error


def _hold(held: contextlib.ExitStack, descriptor: int) -> int:
    _ = held.callback(os.close, descriptor)
    return descriptor


def _content(file: int, path: NotePath) -> bytes:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise BadInput(f"{paths.quote_path(path)} isn't a file", code="not_a_file", hint="give the path of a file")
    with os.fdopen(os.dup(file), "rb") as opened:
        content = opened.read(_MOST + 1)
    if len(content) > _MOST:
        raise BadInput(f"{paths.quote_path(path)} is larger than {_MOST:,} bytes", code="too_large")
    return content
