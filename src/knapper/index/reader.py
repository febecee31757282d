"""Read files into records and chunks; many files are read in a second process while this one writes."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from knapper.errors import KnapError
from knapper.index import chunker, documents
from knapper.index.chunker import Chunk
from knapper.index.documents import FileRecord
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
"""A file saved this shortly before it is read may be saved again with the same time."""


def read_file(view: View, stat: FileStat) -> tuple[FileRecord, Sequence[Chunk]]:
    """Read one file; a file that can't be read gets a record with the problem and no chunks.

    Args:
        view: The vault.
        stat: Its status from *before* this reading, so that a later save is noticed.
    """
    if stat.kind == "attachment":
        return documents.describe_attachment(stat), ()
    racy = is_racy(stat)
    try:
        raw = view.read_bytes(stat.path)
    except KnapError as error:
        return documents.describe_attachment(stat, (Problem(code="unreadable", message=error.message),)), ()
    outline = _PARSERS[stat.kind](raw)
    record = documents.describe_note(
        stat, Note(path=stat.path, raw=raw, hash=parser.content_hash(raw), outline=outline), racy=racy
    )
    return record, chunker.split_note(stat.path, raw, outline)


def is_racy(stat: FileStat) -> bool:
    """Return whether a file may be saved again with the same time; false also for a time far in the future."""
    return abs(time.time_ns() - stat.mtime_ns) < _RACY_NS


def has_hash(view: View, stat: FileStat, hash_: str) -> bool:
    """Return whether a file's content has a hash; false where it can't be read or the hash is empty."""
    if not hash_:
        return False
    try:
        return parser.content_hash(view.read_bytes(stat.path)) == hash_
    except KnapError:
        return False


MIN_PARALLEL_FILES = 500
"""Files from which on a second process pays off; starting it takes as long as reading about 150 files."""

ReadBatch = list[tuple[FileRecord, Sequence[Chunk]]]


def read_batches(
    view: View, batches: Sequence[Sequence[FileStat]], *, min_parallel: int = MIN_PARALLEL_FILES
) -> Iterator[ReadBatch]:
    """Yield the records and chunks of each batch, in order.

    Args:
        view: The vault.
        batches: The status of the files, by batch.
        min_parallel: From how many files on a second process is used; the first batch is always read here, while that
            process starts.
    """
    if sum(map(len, batches)) < min_parallel or (os.cpu_count() or 1) < 2:
        batches_done = 0
    else:
        batches_done = yield from _read_in_process(view, batches)
    for stats in batches[batches_done:]:
        yield _read_batch(view, stats)


def _read_batch(view: View, files: Sequence[FileStat]) -> ReadBatch:
    return [read_file(view, stat) for stat in files]


def _read_in_process(view: View, batches: Sequence[Sequence[FileStat]]) -> Generator[ReadBatch, None, int]:
    """Read the first batch here and the others in another process; return how many were read."""
    # In a frozen program the executable isn't Python, so no module can be started with it.
    if not sys.executable or getattr(sys, "frozen", False):
        return 0
    # -P: never import a module from the current folder.
    command = [sys.executable, "-P", "-m", __name__]
    try:
        process = subprocess.Popen(  # noqa: S603 - this Python, constant arguments
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return 0
    batches_done = 0
    with process:
        try:
            first, rest = _read_batch(view, batches[0]), batches[1:]
            is_sent = _send_batches(process, view, rest)
            batches_done += 1
            yield first
            while is_sent and process.stdout and batches_done < len(batches):
                batch = pickle.load(process.stdout)  # noqa: S301 - written by the process that was started above
                batches_done += 1
                yield batch
        except (OSError, EOFError, pickle.UnpicklingError):
            return batches_done
        finally:
            # Also where the caller stops early: the rest of the batches isn't wanted any more.
            process.kill()
    return batches_done


def _send_batches(process: subprocess.Popen[bytes], view: View, batches: Sequence[Sequence[FileStat]]) -> bool:
    """Send the batches to a process; return false where it has already ended."""
    try:
        if process.stdin is not None:
            # Without the view's link to the index, which can't be pickled and isn't needed there.
            pickle.dump((replace(view, alike=None), batches), process.stdin)
            process.stdin.close()
    except OSError:
        return False
    return True


def _run_child_process() -> None:
    """Read the batches given on standard input, and write their records and chunks to standard output."""
    view, batches = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    for stats in batches:
        pickle.dump(_read_batch(view, stats), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _run_child_process()
