"""Compare the ways to find the nearest vectors: all in memory, mapped from a file, by codes, and usearch as a peer."""

import argparse
import json
import random
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import frame, vaults
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places
from knapper.index import database, vectors
from knapper.index.database import Database
from knapper.index.models.static import StaticEmbedder
from knapper.index.vectors import VectorCache

SUMMARY = "vectors: all in memory, mapped, by codes, and usearch on the same ones, in processor time"
_SIZES = {"10,000": 10_000, "100,000": 100_000}
_MILLION = {"a million": 1_000_000}
_QUESTIONS = 300
_LIMIT = 200
"""Candidates that a search takes from the vectors."""
_FIRST = 10
_PASSAGE_CHARS = 500
_CHUNKS_PER_NOTE = 10
_BATCH = 10_000
_SAVES = 20
_MODEL = "bench"
_VAULTS = ("obsidian-hub", "obsidian-help")
_PEER = "usearch>=2.20"
_PERCENTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
_WAYS = ("in memory", "mapped", "by codes")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--million", action="store_true", help="also a million vectors, which takes some minutes")
    parser.add_argument("--no-peer", action="store_true", help="leave usearch out")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    passages = _passages(places)
    if not passages:
        return "there are no real vaults to take passages from"
    rows: list[Row] = []
    peer_version = ""
    for size, count in {**_SIZES, **(_MILLION if options.million else {})}.items():
        with vaults.scratch(places.cache) as folder:
            frame.say(f"storing {count:,} vectors")
            frame.in_child(fill, folder, passages, count)
            found = {"in memory": frame.in_child(measure, folder)}
            built: dict[str, dict[str, float]] = {}
            for way in _WAYS[1:]:
                if way == "by codes" and not vectors.coder():
                    continue
                built[way] = frame.in_child(build, folder, is_coded=way == "by codes")
                found[way] = frame.in_child(measure, folder)
            exact = found["in memory"]["found"]
            for way, one in found.items():
                rows += _rows(f"{size}: {way}", one, exact, built.get(way))
            if not options.no_peer:
                peer_version, peer = _peer(places, folder)
                rows += _rows(f"{size}: usearch", peer, exact, peer)
    about = (
        f"Vectors of passages of real vaults, by the packaged table; where those are too few, mixtures of two. "
        f"{_QUESTIONS} questions of 2 to 10 words of a passage, the best {_LIMIT} chunks of each by meaning alone; "
        "processor time, warm unless said. `in memory` is what a small index does, `mapped` a large one, `by codes` a "
        "large one with `knapper[vectors]`."
    )
    remarks = ["Files are in the system's cache, so what is mapped is read from memory."]
    if peer_version:
        remarks.append(
            f"usearch {peer_version}: a graph over float16 with its own options; it was asked for the best 200."
        )
    return Report(title="Engines for vectors", about=about, rows=rows, remarks=remarks)


def _passages(places: Places) -> list[str]:
    texts: list[str] = []
    vaults_there = [vault for name in _VAULTS if (vault := places.vault(name))]
    for file in sorted(file for vault in vaults_there for file in vault.rglob("*.md")):
        text = " ".join(file.read_text("utf-8", errors="replace").split())
        texts += [text[at : at + _PASSAGE_CHARS] for at in range(0, len(text), _PASSAGE_CHARS)]
    random.Random(1).shuffle(texts)
    return texts


def fill(folder: Path, passages: Sequence[str], count: int) -> None:
    """Store vectors as an index does, and those of the questions beside it."""
    pick, mix = random.Random(2), np.random.default_rng(2)
    embedder = StaticEmbedder()
    real = embedder.passages(passages[:count])
    asked: list[str] = []
    for passage in passages[-_QUESTIONS:]:
        words = passage.split()
        begin = pick.randrange(max(1, len(words) - 10))
        asked.append(" ".join(words[begin : begin + pick.randint(2, 10)]))
    np.save(folder / "questions.npy", np.stack([embedder.query(text) for text in asked]))
    rows = np.empty((count, real.shape[1]), np.float32)
    rows[: len(real)] = real
    for at in range(len(real), count, _BATCH):
        some = min(_BATCH, count - at)
        mixed = real[mix.integers(len(real), size=some)] + real[mix.integers(len(real), size=some)]
        rows[at : at + some] = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-6)
    np.save(folder / "rows.npy", rows)
    index = Database(folder / database.INDEX_FILE)
    for at in range(0, count, _BATCH):
        _store(index, range(at, min(at + _BATCH, count)), rows)
    index.close()


def _store(index: Database, numbers: Sequence[int], rows: NDArray[np.float32]) -> None:
    with index.transaction() as connection:
        generation = database.state_of(connection)[1]
        connection.executemany(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, 0)",
            [(_chunk(n), generation, _MODEL, rows[n].astype(np.float16).tobytes()) for n in numbers],
        )


def _chunk(number: int) -> int:
    note, place = divmod(number, _CHUNKS_PER_NOTE)
    return (note + 1) << database.CHUNK_BITS | place


def build(folder: Path, *, is_coded: bool) -> dict[str, float]:
    """Derive the file of vectors; gives seconds and megabytes."""
    vectors.MIN_CODED_ROWS = 1 if is_coded else sys.maxsize
    index = Database(folder / database.INDEX_FILE)
    begin = time.process_time()
    vectors.build(index, _MODEL)
    spent = time.process_time() - begin
    index.close()
    (file,) = folder.glob(f"{database.VECTORS_PREFIX}*")
    return {"build_s": spent, "size_mb": file.stat().st_size / 2**20, "peak_mb": frame.memory_mb()["peak"]}


def measure(folder: Path) -> dict[str, Any]:
    """Ask all questions, then save notes; gives milliseconds, what was found, and megabytes."""
    asked = np.load(folder / "questions.npy")
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    index = Database(folder / database.INDEX_FILE)
    cache = VectorCache(_MODEL, folder)
    before = frame.memory_mb()["own"]
    begin = time.process_time()
    with index.snapshot() as connection:
        cache.sync(connection)
    cache.rank(asked[0], limit=_LIMIT, allowed=None)
    cold = (time.process_time() - begin) * 1000
    for question in asked[:20]:
        cache.rank(question, limit=_LIMIT, allowed=None)
    time.sleep(2)  # until the codes are read, which the second question begins
    times: list[float] = []
    walls: list[float] = []
    found: list[list[int]] = []
    for question in asked:
        begin, clock = time.process_time(), time.perf_counter()
        found.append(list(cache.rank(question, limit=_LIMIT, allowed=None)))
        times.append((time.process_time() - begin) * 1000)
        walls.append((time.perf_counter() - clock) * 1000)
    memory = frame.memory_mb()["own"] - before
    after: list[float] = []
    for note, question in zip(range(_SAVES), asked, strict=False):
        _store(index, range(note * _CHUNKS_PER_NOTE, (note + 1) * _CHUNKS_PER_NOTE), rows)
        begin = time.process_time()
        with index.snapshot() as connection:
            cache.sync(connection)
        cache.rank(question, limit=_LIMIT, allowed=None)
        after.append((time.process_time() - begin) * 1000)
    index.close()
    return {"cold": cold, "times": times, "walls": walls, "memory_mb": memory, "after": after, "found": found}


def _rows(name: str, one: dict[str, Any], exact: list[list[int]], built: dict[str, Any] | None) -> list[Row]:
    rows: list[Row] = []
    if built:
        rows += [
            Row(what=f"{name}, derived in", values=[built["build_s"]], unit="s"),
            Row(what=f"{name}, on disk", values=[built["size_mb"]], unit="MB", digits=0),
        ]
    rows += [
        Row(what=f"{name}, {label}", values=[frame.percentile(one["times"], share)], unit="ms")
        for label, share in _PERCENTILES
    ]
    rows += [
        Row(what=f"{name}, p50 by the clock", values=[frame.percentile(one["walls"], 0.5)], unit="ms"),
        Row(what=f"{name}, opened, and the first question", values=[one["cold"]], unit="ms"),
        Row(what=f"{name}, memory beside mapped files", values=[one["memory_mb"]], unit="MB", digits=0),
    ]
    if one.get("after"):
        rows.append(Row(what=f"{name}, the question after a saved note", values=one["after"], unit="ms"))
    for first, least in ((_FIRST, 0.98), (_LIMIT, 0.98)):
        shares = [
            len({*own[:first]} & {*best[:first]}) / len(best[:first])
            for own, best in zip(one["found"], exact, strict=True)
            if best
        ]
        share = sum(shares) / len(shares)
        goal = Goal(limit=least, sense="at least") if "usearch" not in name else None
        rows.append(Row(what=f"{name}, share of the nearest {first}", values=[share], goal=goal))
    return rows


def _peer(places: Places, folder: Path) -> tuple[str, dict[str, Any]]:
    """Measure usearch on the same vectors."""
    frame.say("indexing the same with usearch")
    command = [_peer_python(places.cache), ROOT / "bench" / "usearch_peer.py", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: usearch failed:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    answer["found"] = [[_chunk(number) for number in one] for one in answer["found"]]
    return str(answer["version"]), answer


def _peer_python(cache: Path) -> Path:
    folder = cache / "peer-usearch"
    found = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / ".ready").exists():
        frame.say("installing usearch")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([found, "-m", "pip", "install", "-q", "--disable-pip-version-check", _PEER], check=True)
        (folder / ".ready").touch()
    return found
