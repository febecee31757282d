"""Read a file from the vault into what the index stores."""

import time
from collections.abc import Callable, Mapping, Sequence

from knapper.errors import KnapError
from knapper.index import chunks, records
from knapper.index.chunks import Chunk
from knapper.index.records import Record
from knapper.vault import canvas, parser
from knapper.vault.outline import Outline, Problem
from knapper.vault.parser import Note
from knapper.vault.view import View
from knapper.vault.walk import FileStat

_PARSERS: Mapping[str, Callable[[bytes], Outline]] = {
    "note": parser.parse_note,
    "canvas": canvas.parse_canvas,
    "base": canvas.parse_base,
}
_RACY_NS = 100_000_000
"""A file saved this shortly before it is read may be saved again without its time changing."""


def read(view: View, stat: FileStat) -> tuple[Record, Sequence[Chunk]]:
    """Read one file; what can't be read is listed with its problem and has no chunks.

    Args:
        view: The vault.
        stat: As the walk saw it *before* this reading, so that a later save is seen as one.
    """
    if stat.kind == "attachment":
        return records.of_attachment(stat), ()
    racy = is_racy(stat)
    try:
        raw = view.read_bytes(stat.path)
    except KnapError as error:
        return records.of_attachment(stat, (Problem(code="unreadable", message=error.message),)), ()
    outline = _PARSERS[stat.kind](raw)
    record = records.of_note(
        stat, Note(path=stat.path, raw=raw, hash=parser.content_hash(raw), outline=outline), racy=racy
    )
    return record, chunks.split(stat.path, raw, outline)


def is_racy(stat: FileStat) -> bool:
    """Tell whether a file may be saved again without its time changing; a time far ahead tells the next save, too."""
    return abs(time.time_ns() - stat.mtime_ns) < _RACY_NS


def says(view: View, stat: FileStat, hash_: str) -> bool:
    """Tell whether a file's bytes are those of a hash; what can't be read, or has none, isn't."""
    if not hash_:
        return False
    try:
        return parser.content_hash(view.read_bytes(stat.path)) == hash_
    except KnapError:
        return False
