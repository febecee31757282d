"""Save a note while a watcher runs, and search until it is found."""

import argparse
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import frame, generate, search, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.index import watch
from knapper.index.engine import Engine
from knapper.index.refresh import RefreshOutcome
from knapper.index.search import SearchRequest

SUMMARY = "one changed note, from saved to findable, with a watcher"
_PAUSE_S = 0.35
_TIMEOUT_S = 10.0
_PASSAGE_S = 0.05
"""What a passage takes the slow model, as multilingual-e5-small on one processor."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000, help="size of the generated vault")
    parser.add_argument("--rounds", type=int, default=30, help="how many notes are saved (default: 30)")
    parser.add_argument("--keep", action="store_true", help="use the index of the last run, if there is one")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(places, options.notes)
    if vault is None:
        return "there are no real vaults to generate one from"
    folder = places.cache / f"index-{options.notes}"
    search.prepare(vault, folder, keep=options.keep)
    found = frame.in_child(measure, vault, folder, options.rounds)
    rows = [
        Row(what="from saved to found by search", values=found["wall"], unit="ms", goal=Goal(limit=300)),
        Row(what="work: read, store, embed", values=found["work"], unit="ms", goal=Goal(limit=50)),
        Row(what="passages without their vector at the end", values=[found["pending"]], goal=Goal(limit=1)),
        Row(
            what="while a slow model computes all vectors: from saved to found",
            values=found["beside"],
            unit="ms",
            goal=Goal(limit=300),
        ),
        Row(what="the same: taking an edit into the index", values=found["edits"], unit="ms", goal=Goal(limit=50)),
    ]
    about = (
        f"In a generated vault of {options.notes:,} notes, {options.rounds} notes are saved with a new sentence, "
        "while the watcher runs in the same process; every 2 ms a search asks for the sentence's word."
    )
    remarks = [
        "The work is measured apart, on as many other notes, without the watcher's wait: "
        "what the watcher calls for one changed file, and embedding what is new.",
        f"The slow model takes {1000 * _PASSAGE_S:.0f} ms for a passage, so most of an hour for all, which the watcher "
        "asks it for meanwhile. Searches look for changes first, as those of users do.",
    ]
    return Report(title="A note is saved", about=about, rows=rows, remarks=remarks)


def measure(vault: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """Save notes, and put them back at the end; gives milliseconds of each round."""
    files = sorted(vault.rglob("*.md"))[:: max(1, 10_000 // (2 * rounds))][: 2 * rounds]
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
    try:
        with vaults.opened(vault, folder) as engine:
            engine.search(SearchRequest(text="warm up"))
            wall = _watched(engine, files[:rounds])
            work = [_work(engine, file, number) for number, file in enumerate(files[rounds:])]
            pending = engine.store.count_pending(engine.model)
        with vaults.opened(vault, folder, _SlowModel()) as engine:
            beside, edits = _beside_a_slow_model(engine, files[:rounds])
    finally:
        for file, (raw, _) in before.items():
            file.write_bytes(raw)
        vaults.index(vault, folder)
    return {"wall": wall, "work": work, "pending": pending, "beside": beside, "edits": edits}


class _SlowModel:
    """An embedder that takes its time, and gives vectors without a meaning."""

    model_id = "slow"
    dimensions = 32
    instant = False

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        """Wait, and give equal vectors."""
        for _ in texts:
            if not (stop and stop.is_set()):
                time.sleep(_PASSAGE_S)
        return np.full((len(texts), self.dimensions), self.dimensions**-0.5, np.float32)

    def query(self, text: str) -> NDArray[np.float32]:
        """Give the same vector."""
        return self.passages([text])[0]

    def unknown_words(self, words: Sequence[str]) -> Sequence[str]:
        """Know all words."""
        del words
        return ()

    def close(self) -> None:
        """Hold nothing."""


@contextmanager
def _watching(engine: Engine) -> Generator[None]:
    """Follow the vault in a thread for the block, which begins once the watcher follows it."""
    stop, ready = threading.Event(), threading.Event()

    def heard(_: RefreshOutcome) -> None:
        ready.set()

    thread = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
    thread.start()
    try:
        if not ready.wait(60):
            raise SystemExit("bench: the watcher didn't start within a minute")
        yield
    finally:
        stop.set()
        thread.join()


def _beside_a_slow_model(engine: Engine, files: list[Path]) -> tuple[list[float], list[float]]:
    """Save notes while all vectors are computed; then change them as an edit does. Gives milliseconds of each."""
    edits: list[float] = []
    with _watching(engine):
        saved = [_save_and_find(engine, file, f"zqbeside{n:04}x", fresh=True) for n, file in enumerate(files)]
        for number, file in enumerate(files):
            file.write_bytes(file.read_bytes() + f"\n\nThe meeting about zqedit{number:04}x was moved.\n".encode())
            begin = time.perf_counter()
            engine.refresh_paths({file})
            edits.append((time.perf_counter() - begin) * 1000)
        if engine.store.count_pending(engine.model) == 0:
            raise SystemExit("bench: the slow model was too quick")
    return saved, edits


def _watched(engine: Engine, files: list[Path]) -> list[float]:
    with _watching(engine):
        time.sleep(1)
        return [_save_and_find(engine, file, f"zqsaved{number:04}x") for number, file in enumerate(files)]


def _save_and_find(engine: Engine, file: Path, word: str, *, fresh: bool = False) -> float:
    """Save a note, and search until it is found; with *fresh* each search looks for changes first."""
    raw = file.read_bytes() + f"\n\nThe meeting about {word} was moved.\n".encode()
    time.sleep(_PAUSE_S)
    begin = time.perf_counter()
    file.write_bytes(raw)
    while True:
        if fresh:
            engine.freshen()
        hits = engine.search(SearchRequest(text=word, mode="keyword", limit=1)).hits
        now = time.perf_counter()
        if hits and word in hits[0].row.text:
            return (now - begin) * 1000
        if now - begin > _TIMEOUT_S:
            raise SystemExit(f"bench: {file.name} wasn't found within {_TIMEOUT_S} s")
        time.sleep(0.002)


def _work(engine: Engine, file: Path, number: int) -> float:
    file.write_bytes(file.read_bytes() + f"\n\nThe meeting about zqwork{number:04}x was moved.\n".encode())
    begin = time.perf_counter()
    engine.refresh_paths({file})
    engine.embed()
    return (time.perf_counter() - begin) * 1000
