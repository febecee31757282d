"""Index, search, save and reopen vaults of growing size: the main figures of each."""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import frame, generate, own_engines, questions, vaults
from bench.frame import Report, Table
from bench.places import Places
from knapper.config import files
from knapper.index.documents import Filter
from knapper.index.search import SearchRequest

SUMMARY = "the main figures in vaults of 1,000 to 200,000 notes: index, search, a saved note, links, restart, memory"
_SIZES = (1_000, 10_000, 50_000, 200_000)
_HITS = 10
_WARM_UP = 20
_CODES_S = 2.0
"""Until the codes of a large index are read, which the second question begins."""
_RESTARTS = 3
Figures = Mapping[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, nargs="+", default=_SIZES, help="sizes of the generated vaults")
    parser.add_argument("--questions", type=int, default=200, help="how many different questions (default: 200)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here, after each size")
    parser.add_argument("--resume", action="store_true", help="with --json: measure only what FILE doesn't hold")
    parser.add_argument("--keep", action="store_true", help="use the indexes of the last run, if there are any")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    files.keep_libraries_to_one_thread()
    found: dict[str, Figures] = {}
    if options.json and options.resume and options.json.exists():
        found = json.loads(options.json.read_text("utf-8"))
    for notes in options.notes:
        if str(notes) in found:
            continue
        vault = generate.vault(places, notes)
        if vault is None:
            return "there are no real vaults to generate one from"
        folder = places.cache / f"scale-{notes}"
        if not (options.keep and (folder / own_engines.BUILT).exists()):
            own_engines.build_index(places, vault, folder, is_derived=False)
        built = json.loads((folder / own_engines.BUILT).read_text("utf-8"))
        restarts = [frame.in_child(reopen, vault, folder) for _ in range(_RESTARTS)]
        measured = frame.in_child(measure, vault, folder, questions.of(vault, options.questions))
        found[str(notes)] = {**built, **measured, "restarts": restarts}
        if options.json:
            options.json.write_text(json.dumps(found), "utf-8")
        frame.say(f"{notes:,} notes: {' · '.join(_column(found[str(notes)]))}")
    columns = [_column(found[str(notes)]) for notes in options.notes]
    rows = [[what, *cells] for what, *cells in zip(_FIGURES, *columns, strict=True)]
    about = (
        f"Generated vaults, {options.questions} questions of 1 to 12 words, hybrid, ten hits each. Times are processor "
        "time, p50 / p95 where there are many, medians else. A note saved is read, stored and embedded; links are "
        "where all links of the vault lead, asked for again after the save. A restart is a new process, imports not "
        "counted: its first question, and comparing the whole vault with the index. Memory is beside mapped files."
    )
    header = ("", *(f"{notes:,} notes" for notes in options.notes))
    return Report(title="Growth", about=about, tables=[Table(title="By notes", header=header, rows=rows)], rows=[])


def reopen(vault: Path, folder: Path) -> dict[str, float]:
    """Open an index in a new process, ask, compare the vault with it, and check it; gives processor milliseconds."""
    begin = time.process_time()
    with vaults.opened(vault, folder) as engine:
        engine.search(SearchRequest(text="how do I link notes", limit=_HITS))
        answered = time.process_time()
        outcome = engine.refresh(check=False)
        compared = time.process_time()
        checked = engine.refresh()
        end = time.process_time()
    assert not outcome.indexed + outcome.removed + checked.indexed + checked.removed
    spent = {"first": answered - begin, "compared": compared - answered, "checked": end - compared}
    return {what: seconds * 1000 for what, seconds in spent.items()}


def measure(vault: Path, folder: Path, asked: Sequence[str]) -> dict[str, Any]:
    """Ask all questions, ask for all links, and save notes; gives milliseconds and megabytes."""
    with vaults.opened(vault, folder) as engine:

        def search(text: str) -> None:
            engine.search(SearchRequest(text=text, limit=_HITS))

        for text in asked[:2]:
            search(text)
        time.sleep(_CODES_S)
        for text in asked[:_WARM_UP]:
            search(text)
        searches = [_timed(lambda text=text: search(text)) for text in asked]
        memory = frame.memory_mb()["own"]
        links_once = _timed(engine.graph.link_ends.get)
        links: list[float] = []

        def take_in(file: Path) -> None:
            engine.refresh_paths([file])
            engine.embed()

        def ask_links(_: str) -> None:
            engine.graph.link_ends.get()

        saves, links = own_engines.save(vault, take_in, ask_links, asked)
        return {
            "search": searches,
            "memory": memory,
            "memory with links": frame.memory_mb()["own"],
            "links once": links_once,
            "save": saves,
            "links": links,
            "notes": engine.status(Filter()).notes,
        }


def _timed(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1000


_FIGURES = (
    "chunks",
    "full index, s",
    "index on disk, MB",
    "peak memory of indexing, MB",
    "search, ms",
    "a note saved, ms",
    "links once, ms",
    "links after a saved note, ms",
    "restart: first question, ms",
    "restart: the vault compared, ms",
    "the same with a check of the whole index, ms",
    "memory, MB",
    "memory with all links, MB",
)


def _column(figures: Figures) -> list[str]:
    restarts: Sequence[Mapping[str, float]] = figures["restarts"]
    return [
        f"{figures['chunks']:,.0f}",
        f"{figures['total_s']:,.1f}",
        f"{figures['disk_mb']:,.0f}",
        f"{figures['peak_mb']:,.0f}",
        " / ".join(_number(frame.percentile(figures["search"], share)) for share in (0.5, 0.95)),
        _number(median(figures["save"])),
        _number(figures["links once"]),
        _number(median(figures["links"])),
        _number(median(one["first"] for one in restarts)),
        _number(median(one["compared"] for one in restarts)),
        _number(median(one["checked"] for one in restarts)),
        f"{figures['memory']:,.0f}",
        f"{figures['memory with links']:,.0f}",
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
