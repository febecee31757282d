"""Compare the engines for words: the file of postings, SQLite's own ``bm25()``, and tantivy as a peer."""

import argparse
import json
import math
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import frame, generate, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places
from knapper.index import database
from knapper.index.store import IndexStore
from knapper.index.tokenizer import Stemmer, parse_query, segment
from knapper.index.words import fts5, fulltext, postings

SUMMARY = "words: postings, SQLite's bm25() and tantivy on the same chunks, in processor time"
_SIZES = {"10,000": 1_900, "100,000": 19_200}
"""Generated notes that make about so many chunks."""
_MILLION = {"a million": 192_000}
_LIMIT = 200
"""Candidates that a search takes from the words."""
_FIRST = 10
_SAVES = 20
_PEER = "tantivy>=0.25"
_PERCENTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--million", action="store_true", help="also a million chunks, which takes half an hour")
    parser.add_argument("--only", help="one size alone, such as 10,000")
    parser.add_argument("--questions", type=int, default=300, help="how many different questions (default: 300)")
    parser.add_argument("--keep", action="store_true", help="use the indexes of the last run, if there are any")
    parser.add_argument("--no-peer", action="store_true", help="leave tantivy out")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    sizes = {**_SIZES, **(_MILLION if options.million else {})}
    if options.only:
        sizes = {name: notes for name, notes in sizes.items() if name == options.only}
    rows: list[Row] = []
    peer_version = ""
    counts: list[str] = []
    for size, notes in sizes.items():
        vault = generate.vault(places, notes)
        if vault is None:
            return "there are no real vaults to generate one from"
        folder = places.cache / f"words-{notes}"
        if not (options.keep and (folder / "index.db").exists()):
            frame.say(f"indexing {notes:,} notes")
            for file in folder.glob("*"):
                file.unlink()
            frame.in_child(index, vault, folder)
        asked = questions.of(vault, options.questions)
        built = frame.in_child(build, folder)
        counts.append(f"{built['chunks']:,.0f}")
        found = {
            "postings": frame.in_child(measure, vault, folder, asked, derived=True),
            "bm25()": frame.in_child(measure, vault, folder, asked, derived=False),
        }
        rows += _rows(size, built, found)
        if not options.no_peer:
            peer_version, peer_rows = _peer(places, folder, asked, size, found["postings"]["found"])
            rows += peer_rows
    about = (
        f"{options.questions} questions of 1 to 12 words, the best {_LIMIT} chunks of each by words alone, over "
        f"generated vaults of {', '.join(counts)} chunks; processor time, warm unless said. `postings` is what a large "
        "index uses, `bm25()` SQLite's own function over the same full-text table, which a small one uses."
    )
    remarks = [
        f"{peer_version}: BM25 over a row's length rounded to a byte, another inverse document frequency, and without "
        "columns; a title's words were given to it three times, a heading's twice. Phrases, prefixes and exclusions "
        "are left out, so is the time to split and stem the notes."
    ]
    return Report(title="Engines for words", about=about, rows=rows, remarks=remarks if peer_version else [])


def index(vault: Path, folder: Path) -> None:
    """Index the words of a vault."""
    with vaults.opened(vault, folder) as engine:
        engine.refresh()


def build(folder: Path) -> dict[str, float]:
    """Derive the file of postings; gives seconds, megabytes and counts."""
    store = IndexStore(folder / "index.db")
    begin = time.process_time()
    postings.build(store.database)
    spent = time.process_time() - begin
    (file,) = folder.glob(f"{database.POSTINGS_PREFIX}*")
    connection = store.database.reader()
    chunks = connection.execute("SELECT COUNT(*) FROM chunks").fetchone()[0]
    sql = "SELECT SUM(pgsize) FROM dbstat WHERE name LIKE 'chunk_words%' OR name LIKE 'title_words%'"
    try:
        words_mb = connection.execute(sql).fetchone()[0] / 2**20
    except Exception:  # noqa: BLE001 - this SQLite has no dbstat
        words_mb = float("nan")
    store.close()
    size = file.stat().st_size / 2**20
    peak = frame.memory_mb()["peak"]
    return {"seconds": spent, "size": size, "chunks": chunks, "words_mb": words_mb, "peak": peak}


def measure(vault: Path, folder: Path, asked: Sequence[str], *, derived: bool) -> dict[str, Any]:
    """Ask all questions of one engine, then save notes; gives milliseconds, what was found, and megabytes."""
    parsed = [parse_query(text) for text in asked]
    _ = np.zeros(1)  # loaded before, as a search by meaning needs it anyway
    begin = time.process_time()
    store = IndexStore(folder / "index.db")
    ranker = fulltext.KeywordRanker(folder if derived else None)
    with store.database.snapshot() as connection:
        ranker.chunks(connection, parsed[0], limit=_LIMIT, allowed=None)
        cold = (time.process_time() - begin) * 1000
        for query in parsed[:20]:
            ranker.chunks(connection, query, limit=_LIMIT, allowed=None)
        times: dict[str, list[float]] = {"chunks": [], "names": []}
        found: list[dict[int, float]] = []
        for query in parsed:
            begin = time.process_time()
            found.append(ranker.chunks(connection, query, limit=_LIMIT, allowed=None))
            times["chunks"].append((time.process_time() - begin) * 1000)
            begin = time.process_time()
            ranker.names(connection, query, allowed=None)
            times["names"].append((time.process_time() - begin) * 1000)
        memory = frame.memory_mb()
        plain = fulltext.KeywordRanker(None)
        exact = [plain.chunks(connection, query, limit=_LIMIT, allowed=None) for query in parsed] if derived else found
        plain.close()
    if not derived:
        with store.database.transaction() as connection:
            fts5.stop_recording(connection)
    store.close()
    saves, after = _saves(vault, folder, asked, ranker)
    ranker.close()
    answer = {"cold": cold, "times": times, "memory": memory["own"], "save": saves, "after": after}
    return {**answer, "different": count_different(found, exact), "found": [[*one][:_FIRST] for one in found]}


def _saves(
    vault: Path, folder: Path, asked: Sequence[str], ranker: fulltext.KeywordRanker
) -> tuple[list[float], list[float]]:
    """Save notes with one more line, and put them back; gives milliseconds of a save and of the question after it."""
    saves: list[float] = []
    after: list[float] = []
    with vaults.opened(vault, folder) as engine:
        for file, text in zip(sorted(vault.rglob("*.md"))[:_SAVES], asked, strict=False):
            before = file.read_bytes()
            file.write_bytes(before + b"\n\nOne more line with a word or two.\n")
            begin = time.process_time()
            engine.refresh_paths([file])
            saves.append((time.process_time() - begin) * 1000)
            with engine.store.database.snapshot() as connection:
                begin = time.process_time()
                ranker.chunks(connection, parse_query(text), limit=_LIMIT, allowed=None)
                after.append((time.process_time() - begin) * 1000)
            file.write_bytes(before)
            engine.refresh_paths([file])
    return saves, after


def _rows(size: str, built: dict[str, float], found: dict[str, Any]) -> list[Row]:
    rows = [
        Row(what=f"{size}: postings, derived in", values=[built["seconds"]], unit="s"),
        Row(what=f"{size}: postings, on disk", values=[built["size"]], unit="MB", digits=0),
        Row(what=f"{size}: full-text tables, on disk", values=[built["words_mb"]], unit="MB", digits=0),
        Row(what=f"{size}: postings, peak memory while deriving", values=[built["peak"]], unit="MB", digits=0),
    ]
    for name, one in found.items():
        for what, times in one["times"].items():
            rows += [
                Row(what=f"{size}: {name}, {what}, {label}", values=[frame.percentile(times, share)], unit="ms")
                for label, share in _PERCENTILES
            ]
        rows += [
            Row(what=f"{size}: {name}, opened, and the first question", values=[one["cold"]], unit="ms"),
            Row(what=f"{size}: {name}, one note saved", values=one["save"], unit="ms"),
            Row(what=f"{size}: {name}, the question after it", values=one["after"], unit="ms"),
            Row(what=f"{size}: {name}, memory beside mapped files", values=[one["memory"]], unit="MB", digits=0),
        ]
    rows.append(
        Row(
            what=f"{size}: questions of which the first {_FIRST} aren't those of exact BM25",
            values=[found["postings"]["different"]],
            goal=Goal(limit=1),
        )
    )
    return rows


def count_different(found: Sequence[Mapping[int, float]], expected: Sequence[Mapping[int, float]]) -> int:
    """Count the questions whose first rows are others, or have a score that differs in the first nine digits."""

    def differs(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
        first, exact = [*one.items()][:_FIRST], [*other.items()][:_FIRST]
        return len(first) != len(exact) or any(
            row != exact_row or not math.isclose(score, exact_score, rel_tol=1e-9)
            for (row, score), (exact_row, exact_score) in zip(first, exact, strict=True)
        )

    return sum(differs(one, other) for one, other in zip(found, expected, strict=True))


def _peer(
    places: Places, folder: Path, asked: Sequence[str], size: str, expected: list[list[int]]
) -> tuple[str, list[Row]]:
    """Measure tantivy on the same words."""
    python = _peer_python(places.cache)
    with vaults.scratch(places.cache) as work:
        frame.say("indexing the same with tantivy")
        ids = frame.in_child(export, folder, work, list(asked))
        command = [python, ROOT / "bench" / "tantivy_peer.py", work]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"bench: tantivy failed:\n{done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    rankings: list[list[int]] = found["found"]
    shared = [
        len({ids[place] for place in own[:_FIRST]} & set(exact)) / len(exact)
        for own, exact in zip(rankings, expected, strict=True)
        if exact
    ]
    rows = [
        Row(what=f"{size}: tantivy, built in, without splitting and stemming", values=[found["build_s"]], unit="s"),
        Row(what=f"{size}: tantivy, on disk", values=[found["size_mb"]], unit="MB", digits=0),
        *(
            Row(what=f"{size}: tantivy, chunks, {label}", values=[frame.percentile(found["times"], share)], unit="ms")
            for label, share in _PERCENTILES
        ),
        Row(what=f"{size}: tantivy, opened, and the first question", values=[found["cold"]], unit="ms"),
        Row(what=f"{size}: tantivy, one chunk saved, and the question after it", values=found["save"], unit="ms"),
        Row(what=f"{size}: tantivy, the same by the clock", values=found["save_wall"], unit="ms"),
        Row(what=f"{size}: tantivy, memory beside mapped files", values=[found["memory_mb"]], unit="MB", digits=0),
        Row(what=f"{size}: tantivy, share of exact BM25's first {_FIRST}", values=[sum(shared) / len(shared)]),
    ]
    return str(found["version"]).split(",")[0], rows


def export(folder: Path, work: Path, asked: Sequence[str]) -> list[int]:
    """Write the words of all chunks and questions for the peer; gives the chunks' ids in order."""
    store, stemmer = IndexStore(folder / "index.db"), Stemmer()
    sql = "SELECT c.id, f.title, c.path, c.text FROM chunks c JOIN files f ON f.id = c.id >> 20 ORDER BY c.id"
    rows = store.database.reader().execute(sql).fetchall()
    store.close()
    texts: list[str] = []
    for start in range(0, len(rows), 1_000):
        columns = [segment(text) for _, *texts_of_row in rows[start : start + 1_000] for text in texts_of_row]
        stems = [" ".join(words) for words in stemmer.stems(columns)]
        texts += [
            " ".join((title, title, title, heading, heading, body))
            for title, heading, body in zip(stems[::3], stems[1::3], stems[2::3], strict=True)
        ]
    (work / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    tokens = [
        [(word.token, word.times) for word in fulltext.query_words(parse_query(text), stemmer) if word.token]
        for text in asked
    ]
    (work / "questions.json").write_text(json.dumps(tokens), encoding="utf-8")
    stemmer.close()
    return [row[0] for row in rows]


def _peer_python(cache: Path) -> Path:
    folder = cache / "peer-tantivy"
    found = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / ".ready").exists():
        frame.say("installing tantivy")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([found, "-m", "pip", "install", "-q", "--disable-pip-version-check", _PEER], check=True)
        (folder / ".ready").touch()
    return found
