"""Read files into records and chunks, many of them in a second process while the first one writes."""

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
"""A file saved this shortly before it is read may be saved again without its time changing."""


def read_file(view: View, stat: FileStat) -> tuple[FileRecord, Sequence[Chunk]]:
    """Read one file; what can't be read is listed with its problem and has no chunks.

    Args:
        view: The vault.
        stat: As the walk saw it *before* this reading, so that a later save is seen as one.
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
    """Return whether a file may be saved again without its time changing; a time far ahead tells the next save, too."""
    return abs(time.time_ns() - stat.mtime_ns) < _RACY_NS


def has_hash(view: View, stat: FileStat, hash_: str) -> bool:
    """Return whether a file's bytes are those of a hash; what can't be read, or has none, isn't."""
    if not hash_:
        return False
    try:
        return parser.content_hash(view.read_bytes(stat.path)) == hash_
    except KnapError:
        return False


MIN_PARALLEL_FILES = 500
"""Files that are worth starting a process for, which takes as long as reading about 150."""

ReadBatch = list[tuple[FileRecord, Sequence[Chunk]]]


def read_batches(
    view: View, batches: Sequence[Sequence[FileStat]], *, min_parallel: int = MIN_PARALLEL_FILES
) -> Iterator[ReadBatch]:
    """Yield what the files of each batch hold, in order.

    Args:
        view: The vault.
        batches: As the walk saw the files.
        min_parallel: From how many files on a second process reads, too; the first batch is always read here, since
            starting the process takes as long.
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
    """Read the first batch here while another process starts, and the others there; tell how many were read.

    Those that it doesn't manage are left out, whatever the cause.
    """
    # Then it isn't Python that would be started
    if not sys.executable or getattr(sys, "frozen", False):
        return 0
    # -P: never import what lies in the current folder
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
            process.kill()
    return batches_done


def _send_batches(process: subprocess.Popen[bytes], view: View, batches: Sequence[Sequence[FileStat]]) -> bool:
    """Return a process what to read; false where it has ended already."""
    try:
        if process.stdin is not None:
            # The index stays here
            pickle.dump((replace(view, alike=None), batches), process.stdin)
            process.stdin.close()
    except OSError:
        return False
    return True


def _run_child_process() -> None:
    """Read the batches that the standard input names, and write what they hold to the standard output."""
    view, batches = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    for stats in batches:
        pickle.dump(_read_batch(view, stats), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _run_child_process()
