"""What the peers' scripts share: the chunks they get, and how they are timed; runs in a peer's own environment.

    python with_NAME.py build FOLDER DATABASE     stores all chunks, in large batches
    python with_NAME.py notes FOLDER DATABASE     the same with one call a note, where the peer can
    python with_NAME.py first FOLDER DATABASE     opens what is stored, and asks one question
    python with_NAME.py ask FOLDER DATABASE       asks all questions, and replaces some notes

Each prints a line of JSON. FOLDER holds what `bench.peer.export` wrote: ``chunks.jsonl`` with a chunk's note and its
stems, a title's three times and a heading's twice; ``vectors.npy``, a row of float16 for each chunk; ``questions.json``
with the stems of each question and how often it holds them, and ``questions.npy`` with their vectors.
"""

import json
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

CANDIDATES = 200
"""Best chunks that each question asks for; a search of Knapper takes as many from each ranking."""
HITS = 10
"""First hits of a hybrid search, both rankings joined."""
RRF_K = 60
BATCH = 5_000
_SAVES = 20
_WARM_UP = 20
Question = Sequence[tuple[str, int]]
"""The stems of a question, and how often it holds each."""


class Chunks:
    """The chunks that a peer stores; a chunk's id is its number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.vectors = np.load(folder / "vectors.npy", mmap_mode="r")

    def batches(self, size: int = BATCH) -> Iterator[tuple[list[int], list[str], "np.ndarray"]]:
        """Yield numbers, texts and vectors of so many chunks."""
        numbered = enumerate(text for _, text in self._lines())
        while batch := list(islice(numbered, size)):
            numbers = [number for number, _ in batch]
            yield numbers, [text for _, text in batch], self._rows(numbers)

    def notes(self) -> Iterator[tuple[list[int], list[str], "np.ndarray"]]:
        """Yield the same for each note."""
        for _, group in groupby(enumerate(self._lines()), key=lambda one: one[1][0]):
            lines = list(group)
            numbers = [number for number, _ in lines]
            yield numbers, [text for _, (_, text) in lines], self._rows(numbers)

    def _lines(self) -> Iterator[tuple[int, str]]:
        with (self._folder / "chunks.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                note, text = json.loads(line)
                yield note, text

    def _rows(self, numbers: Sequence[int]) -> "np.ndarray":
        return self.vectors[numbers[0] : numbers[-1] + 1].astype(np.float32)


class Peer:
    """One peer's index, open; each peer's script has a subclass."""

    packages: Sequence[str] = ()
    """Whose versions are told."""
    ranks_words = True

    def __init__(self, database: Path) -> None:
        """Open what is stored."""

    @classmethod
    def build(cls, chunks: Chunks, database: Path) -> None:
        """Store all chunks, and derive what questions need."""
        raise NotImplementedError

    @classmethod
    def build_by_note(cls, chunks: Chunks, database: Path) -> None:
        """Store the chunks of one note at a time."""
        raise NotImplementedError

    def words(self, question: Question) -> list[int]:
        """Return the best chunks by words."""
        raise NotImplementedError

    def meaning(self, vector: "np.ndarray") -> list[int]:
        """Return the nearest chunks."""
        raise NotImplementedError

    def hybrid(self, question: Question, vector: "np.ndarray") -> list[int]:
        """Join both by reciprocal ranks."""
        scores: dict[int, float] = {}
        for ranking in (self.words(question), self.meaning(vector)):
            for rank, number in enumerate(ranking, 1):
                scores[number] = scores.get(number, 0.0) + 1 / (RRF_K + rank)
        return sorted(scores, key=lambda number: -scores[number])[:HITS]

    def replace(self, numbers: Sequence[int], texts: Sequence[str], vectors: "np.ndarray") -> None:
        """Replace a note's chunks, so that the next question finds the new ones."""
        raise NotImplementedError


def main(peer: type[Peer]) -> None:
    """Do what the command line asks."""
    task, folder, database = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    work = {"build": _build, "notes": _build_by_note, "first": _first, "ask": _ask}[task]
    print(json.dumps(work(peer, folder, database)))


def _build(peer: type[Peer], folder: Path, database: Path) -> dict[str, Any]:
    return _timed_build(lambda: peer.build(Chunks(folder), database), database)


def _build_by_note(peer: type[Peer], folder: Path, database: Path) -> dict[str, Any]:
    return _timed_build(lambda: peer.build_by_note(Chunks(folder), database), database)


def _timed_build(work: Callable[[], None], database: Path) -> dict[str, Any]:
    begin, clock = _processor_s(), time.perf_counter()
    work()
    spent, seconds = _processor_s() - begin, time.perf_counter() - clock
    size = sum(file.stat().st_size for file in database.rglob("*") if file.is_file()) / 2**20
    return {"build_s": spent, "build_wall_s": seconds, "disk_mb": size, "build_peak_mb": _memory_mb("VmHWM")}


def _first(peer: type[Peer], folder: Path, database: Path) -> dict[str, Any]:
    questions, vectors = _questions(folder)
    begin, clock = time.process_time(), time.perf_counter()
    opened = peer(database)
    _ = opened.hybrid(questions[0], vectors[0]) if peer.ranks_words else opened.meaning(vectors[0])
    return {"first_ms": (time.process_time() - begin) * 1000, "first_wall_ms": (time.perf_counter() - clock) * 1000}


def _ask(peer: type[Peer], folder: Path, database: Path) -> dict[str, Any]:
    questions, vectors = _questions(folder)
    opened = peer(database)
    ways: dict[str, Callable[[Question, np.ndarray], list[int]]] = {"meaning": lambda _, vector: opened.meaning(vector)}
    if peer.ranks_words:
        ways = {"words": lambda question, _: opened.words(question), **ways, "hybrid": opened.hybrid}
    times: dict[str, list[float]] = {}
    found: dict[str, list[list[int]]] = {}
    for way, ask in ways.items():
        for question, vector in zip(questions[:_WARM_UP], vectors, strict=False):
            ask(question, vector)
        times[way], found[way] = [], []
        for question, vector in zip(questions, vectors, strict=True):
            begin = time.process_time()
            found[way].append(ask(question, vector))
            times[way].append((time.process_time() - begin) * 1000)
    memory = _memory_mb("RssAnon")
    ask = ways.get("hybrid", ways["meaning"])
    saves: list[float] = []
    walls: list[float] = []
    after: list[float] = []
    for (numbers, texts, rows), question, vector in zip(
        islice(Chunks(folder).notes(), _SAVES), questions, vectors, strict=False
    ):
        begin, clock = time.process_time(), time.perf_counter()
        opened.replace(numbers, texts, rows)
        saves.append((time.process_time() - begin) * 1000)
        walls.append((time.perf_counter() - clock) * 1000)
        begin = time.process_time()
        ask(question, vector)
        after.append((time.process_time() - begin) * 1000)
    return {
        "times": times,
        "found": found,
        "memory_mb": memory,
        "save_ms": saves,
        "save_wall_ms": walls,
        "after_ms": after,
    }


def _questions(folder: Path) -> tuple[list[Question], "np.ndarray"]:
    return json.loads((folder / "questions.json").read_text("utf-8")), np.load(folder / "questions.npy")


def _processor_s() -> float:
    """Give the processor time of this process and of those it started, all threads together."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _memory_mb(field: str) -> float:
    """Give the resident memory of its own (RssAnon) or the peak of all (VmHWM); not a number where nobody tells."""
    status = Path("/proc/self/status")
    found = re.search(rf"{field}:\s+(\d+)", status.read_text("ascii")) if status.exists() else None
    return int(found[1]) / 1024 if found else float("nan")
