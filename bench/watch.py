"""Save a note while a watcher runs, and search until it is found."""

import argparse
import threading
import time
from pathlib import Path
from typing import Any

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
    ]
    about = (
        f"In a generated vault of {options.notes:,} notes, {options.rounds} notes are saved with a new sentence, "
        "while the watcher runs in the same process; every 2 ms a search asks for the sentence's word."
    )
    remarks = [
        "The work is measured apart, on as many other notes, without the watcher's wait: "
        "what the watcher calls for one changed file, and embedding what is new."
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
    finally:
        for file, (raw, _) in before.items():
            file.write_bytes(raw)
        vaults.index(vault, folder)
    return {"wall": wall, "work": work, "pending": pending}


def _watched(engine: Engine, files: list[Path]) -> list[float]:
    stop, ready = threading.Event(), threading.Event()

    def heard(_: RefreshOutcome) -> None:
        ready.set()

    thread = threading.Thread(target=watch.follow_vault, args=(engine, stop, heard))
    thread.start()
    try:
        ready.wait(60)
        time.sleep(1)
        return [_save_and_find(engine, file, f"zqsaved{number:04}x") for number, file in enumerate(files)]
    finally:
        stop.set()
        thread.join()


def _save_and_find(engine: Engine, file: Path, word: str) -> float:
    raw = file.read_bytes() + f"\n\nThe meeting about {word} was moved.\n".encode()
    time.sleep(_PAUSE_S)
    begin = time.perf_counter()
    file.write_bytes(raw)
    while True:
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
