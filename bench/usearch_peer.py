"""Index and query the same vectors with usearch; runs in a virtual environment of its own.

    python usearch_peer.py FOLDER     prints {"version", "build_s", "size_mb", "times", "walls", "found", "cold", …}

FOLDER holds rows.npy and questions.npy, vectors of length 1. Times are processor time, but for `walls`.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import usearch
from usearch.index import Index

_LIMIT = 200


def main(folder: Path) -> None:
    rows, questions = np.load(folder / "rows.npy"), np.load(folder / "questions.npy")
    begin = time.process_time()
    index = Index(ndim=rows.shape[1], metric="ip", dtype="f16")
    index.add(np.arange(len(rows)), rows)
    index.save(str(folder / "peer.usearch"))
    built = time.process_time() - begin
    size = (folder / "peer.usearch").stat().st_size / 2**20
    del index
    before = _own_mb()
    begin = time.process_time()
    index = Index.restore(str(folder / "peer.usearch"), view=True)
    index.search(questions[0], _LIMIT)
    cold = (time.process_time() - begin) * 1000
    for question in questions[:20]:
        index.search(question, _LIMIT)
    times: list[float] = []
    walls: list[float] = []
    found: list[list[int]] = []
    for question in questions:
        begin, clock = time.process_time(), time.perf_counter()
        found.append(index.search(question, _LIMIT).keys.tolist())
        times.append((time.process_time() - begin) * 1000)
        walls.append((time.perf_counter() - clock) * 1000)
    answer = {"version": usearch.__version__, "build_s": built, "size_mb": size, "cold": cold, "times": times}
    print(json.dumps({**answer, "walls": walls, "found": found, "memory_mb": _own_mb() - before}))


def _own_mb() -> float:
    """Return the resident memory beside mapped files; 0 where the system doesn't tell."""
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


main(Path(sys.argv[1]))
