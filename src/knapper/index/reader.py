"""Read many files in a second process, while the first one writes them into the index.

Reading and parsing take about as long as writing, so that a full index takes little more than half the time.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence

from knapper.index import reading
from knapper.index.chunks import Chunk
from knapper.index.records import Record
from knapper.vault.view import View
from knapper.vault.walk import FileStat

MANY = 500
"""Files that are worth starting a process for, which takes as long as reading about 150."""

Batch = list[tuple[Record, Sequence[Chunk]]]


def read(view: View, batches: Sequence[Sequence[FileStat]], *, many: int = MANY) -> Iterator[Batch]:
    """Yield what the files of each batch hold, in order.

    Args:
        view: The vault.
        batches: As the walk saw the files.
        many: From how many files on a second process reads; what that doesn't manage is read here.
    """
    done = 0
    if sum(map(len, batches)) >= many and (os.cpu_count() or 1) > 1:
        for batch in _read_apart(view, batches):
            done += 1
            yield batch
    for stats in batches[done:]:
        yield _read_here(view, stats)


def _read_here(view: View, stats: Sequence[FileStat]) -> Batch:
    return [reading.read(view, stat) for stat in stats]


def _read_apart(view: View, batches: Sequence[Sequence[FileStat]]) -> Iterator[Batch]:
    """Yield batches until all are read or the other process fails, whatever the cause."""
    if not sys.executable or getattr(sys, "frozen", False):  # then it isn't Python that would be started
        return
    command = [sys.executable, "-P", "-m", __name__]  # -P: never import what lies in the current folder
    try:
        process = subprocess.Popen(  # noqa: S603 - this Python, constant arguments
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return
    with process:
        try:
            if process.stdin is None or process.stdout is None:
                return
            pickle.dump((view, batches), process.stdin)
            process.stdin.close()
            for _ in batches:
                yield pickle.load(process.stdout)  # noqa: S301 - written by the process that was started above
        except (OSError, EOFError, pickle.UnpicklingError):
            return
        finally:
            process.kill()


def _answer() -> None:
    """Read the batches that the standard input names, and write what they hold to the standard output."""
    view, batches = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    for stats in batches:
        pickle.dump(_read_here(view, stats), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _answer()
