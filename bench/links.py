"""Ask where all links lead, after changes, in vaults of growing size."""

import argparse
import random
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from bench import frame, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.index.engine import Engine
from knapper.vault.access import Policy
from knapper.vault.view import View

SUMMARY = "where all links lead, after a saved, renamed or new note, in vaults of growing size"
_SIZES = (1_000, 10_000, 100_000)
_PER_FOLDER = 50
"""Notes in a folder, beside its `README`, a name that all of them share."""
_LIMIT_MS = 25.0
"""A copy of some arrays, at 100,000 notes."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, nargs="+", default=_SIZES, help="sizes of the generated vaults")
    parser.add_argument("--runs", type=int, default=15, help="changes of each kind")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    rows: list[Row] = []
    for size in options.notes:
        with vaults.scratch(places.cache) as work:
            frame.say(f"generating and indexing {size:,} notes")
            write(work / "vault", size)
            frame.in_child(index, work / "vault", work / "index")
            measured = frame.in_child(measure, work / "vault", work / "index", options.runs)
        for what, values in measured.items():
            goal = Goal(limit=_LIMIT_MS) if what in {"after a saved note", "after a new note"} else None
            rows.append(Row(what=f"{size:,} notes: {what}", values=values, unit="ms", goal=goal))
    about = (
        f"Notes of eight links each, most of them to a few; every {_PER_FOLDER}th is called README, and a link in "
        "eight leads nowhere. Processor time of the first question for all links, and of the first one after each of "
        f"{options.runs} changes of a kind."
    )
    return Report(title="Links", about=about, rows=rows)


def write(root: Path, notes: int) -> None:
    pick = random.Random(1)
    popular = list(accumulate(1 / (rank + 10) for rank in range(notes)))
    for number in range(notes):
        targets = pick.choices(range(notes), cum_weights=popular, k=6)
        links = [*(f"[[{title(target)}]]" for target in targets), "[[README]]", f"[[nowhere {number % 1000}]]"]
        file = root / path(number)
        if number % _PER_FOLDER == 0:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {title(number)}\n\nSee {', '.join(links)}.\n", encoding="utf-8")


def title(number: int) -> str:
    return "README" if number % _PER_FOLDER == 0 else f"Note {number}"


def path(number: int) -> str:
    folder = number // _PER_FOLDER
    return f"area {folder % 40}/project {folder}/{title(number)}.md"


def index(vault: Path, folder: Path) -> None:
    with _opened(vault, folder) as engine:
        engine.refresh()


def measure(vault: Path, folder: Path, runs: int) -> dict[str, list[float]]:
    """Change notes, and ask after each change; gives milliseconds by kind."""
    with _opened(vault, folder) as engine:
        times = {"read once": [_ask(engine)]}
        for kind, change in _CHANGES.items():
            times[f"after {kind}"] = []
            for number in range(1, runs + 1):
                engine.refresh_paths(change(engine.view.root, number))
                times[f"after {kind}"].append(_ask(engine))
        return times


def _opened(vault: Path, folder: Path) -> Engine:
    return Engine(folder, View.open(vault.resolve(), Policy(client="owner")), open_embedder=lambda: None)


def _ask(engine: Engine) -> float:
    begin = time.process_time()
    engine.graph.link_ends.get()
    return (time.process_time() - begin) * 1000


def _save(root: Path, number: int) -> list[Path]:
    file = root / path(number)
    file.write_text(f"Now of [[{title(number + 1)}]] and [[README]].\n", encoding="utf-8")
    return [file]


def _rename(root: Path, number: int) -> list[Path]:
    file = root / path(number)
    renamed = file.with_name(f"Renamed {number}.md")
    file.rename(renamed)
    return [file, renamed]


def _add(root: Path, number: int) -> list[Path]:
    file = root / f"new {number}" / "Beside.md"
    file.parent.mkdir()
    file.write_text("[[Note 7]]\n", encoding="utf-8")
    return [file]


_CHANGES: dict[str, Callable[[Path, int], list[Path]]] = {
    "a saved note": _save,
    "a new note": _add,
    "a note much linked to was renamed": _rename,
}
