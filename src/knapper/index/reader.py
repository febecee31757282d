"""Read many files in a second process, while the first one writes them into the index.

Reading and parsing take about as long as writing, so that a full index takes little more than half the time.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

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
        many: From how many files on a second process reads; what that doesn't manage is read here, and so is the first
            batch, for starting takes as long.
    """
    if sum(map(len, batches)) < many or (os.cpu_count() or 1) < 2:
        done = 0
    else:
        done = yield from _read_apart(view, batches)
    for stats in batches[done:]:
        yield _read_here(view, stats)


def _read_here(view: View, stats: Sequence[FileStat]) -> Batch:
    return [reading.read(view, stat) for stat in stats]


def _read_apart(view: View, batches: Sequence[Sequence[FileStat]]) -> Generator[Batch, None, int]:
    """Read the first batch here while another process starts, and the others there; tell how many were read.

    Those that it doesn't manage are left out, whatever the cause.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # then it isn't Python that would be started
        return 0
    command = [sys.executable, "-P", "-m", __name__]  # -P: never import what lies in the current folder
    try:
        process = subprocess.Popen(  # noqa: S603 - this Python, constant arguments
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return 0
    done = 0
    with process:
        try:
            first, rest = _read_here(view, batches[0]), batches[1:]
            asked = _ask(process, view, rest)
            done += 1
            yield first
            while asked and process.stdout and done < len(batches):
                batch = pickle.load(process.stdout)  # noqa: S301 - written by the process that was started above
                done += 1
                yield batch
        except (OSError, EOFError, pickle.UnpicklingError):
            return done
        finally:
            process.kill()
    return done


def _ask(process: subprocess.Popen[bytes], view: View, batches: Sequence[Sequence[FileStat]]) -> bool:
    """Tell a process what to read; false where it has ended already."""
    try:
        if process.stdin is not None:
            pickle.dump((replace(view, alike=None), batches), process.stdin)  # the index stays here
            process.stdin.close()
    except OSError:
        return False
    return True


def _answer() -> None:
    """Read the batches that the standard input names, and write what they hold to the standard output."""
    view, batches = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    for stats in batches:
        pickle.dump(_read_here(view, stats), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _answer()
