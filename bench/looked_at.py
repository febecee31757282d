"""Run `knap`, and write each minute what holds its memory.

`python -m bench.looked_at FILE [--trace] [--trim] -- ARGS`
"""

import ctypes
import ctypes.util
import re
import sys
import threading
import time
import tracemalloc
from pathlib import Path

from knapper.cli.main import main

_INTERVAL_S = 60.0
_FRAMES = 5
_MOST = 15
_ARENA = 64 << 20
"""Bytes at a multiple of which glibc places an arena."""


class _Malloc(ctypes.Structure):
    """Hold what glibc's `mallinfo2` gives."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "used", "free", "top")
    )


def look(file: Path, *, trims: bool) -> None:
    """Write lines without end."""
    before = tracemalloc.take_snapshot() if tracemalloc.is_tracing() else None
    while True:
        time.sleep(_INTERVAL_S)
        # Objects aren't counted by kind: listing them holds tuples that other threads still make, which then fail.
        blocks = sys.getallocatedblocks()
        lines = [f"{time.strftime('%X')} {_process()} {_malloc()} sqlite={_sqlite_mb()} python_blocks={blocks}"]
        lines[0] += f" {_regions()}{_trimmed() if trims else ''}"
        if before is not None:
            now = tracemalloc.take_snapshot()
            lines += [f"  {difference}" for difference in now.compare_to(before, "lineno")[:_MOST]]
        with file.open("a", encoding="utf-8") as log:
            log.write("\n".join(lines) + "\n")


def _process() -> str:
    found = re.findall(
        r"(?m)^(RssAnon|RssFile|Threads):\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii")
    )
    return " ".join(f"{name}={int(count) // (1 if name == 'Threads' else 1024)}" for name, count in found)


def _regions() -> str:
    """Give the anonymous memory by what holds it: the main heap, glibc's arenas of other threads, and the rest."""
    sizes = {"brk": [0, 0], "arenas": [0, 0], "large": [0, 0], "small": [0, 0]}
    kind = ""
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)\s*(.*)", line)
        if head:
            start, stop = int(head[1], 16), int(head[2], 16)
            kind = "brk" if head[4] == "[heap]" else "arenas" if start % _ARENA == 0 else "small"
            kind = "large" if kind == "small" and stop - start >= _ARENA // 8 else kind
            sizes[kind][0] += head[3] == "0"
        elif line.startswith("Anonymous:"):
            sizes[kind][1] += int(line.split()[1])
    return " ".join(f"{name}={count}:{kb >> 10}" for name, (count, kb) in sizes.items())


def _trimmed() -> str:
    """Have glibc return what is free, and give what is left."""
    ctypes.CDLL(None).malloc_trim(0)
    return f" after_trim: {_process()}"


def _malloc() -> str:
    call = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if call is None:
        return ""
    call.restype = _Malloc
    info = call()
    return f"heap={info.arena >> 20} mapped={info.hblkhd >> 20} used={info.used >> 20} free={info.free >> 20}"


def _sqlite_mb() -> str:
    name = ctypes.util.find_library("sqlite3")
    if name is None:
        return "?"
    used = ctypes.CDLL(name).sqlite3_memory_used
    used.restype = ctypes.c_int64
    return str(used() >> 20)


if __name__ == "__main__":
    own, arguments = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    if "--trace" in own:
        tracemalloc.start(_FRAMES)
    if "serve" in arguments:
        threading.Thread(target=look, args=(Path(own[0]),), kwargs={"trims": "--trim" in own}, daemon=True).start()
    sys.argv[1:] = arguments
    sys.exit(main())
