"""Search a vault of 100,000 chunks that is already open."""

import argparse
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench import frame, generate, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.index.documents import Filter, PropertyTest
from knapper.index.search import SearchRequest

SUMMARY = "warm search in process over 100,000 chunks"
NOTES = 19_200
"""Generated notes that make just above 100,000 chunks."""
_WARM_UP = 20
_GOALS = {("hybrid", 0.5): Goal(limit=35), ("hybrid", 0.95): Goal(limit=75)}
_MEMORY = Goal(limit=450)
_FILTERS = (
    Filter(folders=("en",)),
    Filter(folders=("hub/area 03",)),
    Filter(properties=(PropertyTest(name="status", op="equals", value="open"),)),
    Filter(exclude_folders=("hub",), created_from="2020-01-01"),
    Filter(properties=(PropertyTest(name="rating", op="equals", value="5"),), folders=("en", "hub")),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=NOTES, help="size of the generated vault")
    parser.add_argument("--questions", type=int, default=300, help="how many different questions (default: 300)")
    parser.add_argument("--keep", action="store_true", help="use the index of the last run, if there is one")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(places, options.notes)
    if vault is None:
        return "there are no real vaults to generate one from"
    folder = places.cache / f"index-{options.notes}"
    prepare(vault, folder, keep=options.keep)
    asked = questions.of(vault, options.questions)
    found = frame.in_child(measure, vault, folder, asked)
    rows = list_rows(found, goals=_GOALS)
    about = (
        f"{len(asked)} questions of 1 to 12 words (titles, parts of sentences, keywords), 10 results each, "
        f"over a generated vault of {options.notes:,} notes and {found['chunks']:,} chunks, "
        f"in a process that has answered {_WARM_UP} before."
    )
    return Report(title="Search", about=about, rows=rows)


def prepare(vault: Path, folder: Path, *, keep: bool) -> None:
    """Make the index, or use the one that is there."""
    if keep and (folder / "index.db").exists():
        return
    frame.say("indexing")
    shutil.rmtree(folder, ignore_errors=True)
    frame.in_child(vaults.index, vault, folder)


def measure(vault: Path, folder: Path, asked: list[str]) -> dict[str, Any]:
    """Ask all questions in each way; gives milliseconds by way, and megabytes."""
    with vaults.opened(vault, folder) as engine:
        for text in asked[:_WARM_UP]:
            engine.search(SearchRequest(text=text, limit=10))
        times: dict[str, list[float]] = {}
        for way, question in _ways(asked):
            begin = time.perf_counter()
            engine.search(question)
            times.setdefault(way, []).append((time.perf_counter() - begin) * 1000)
        return {"times": times, "chunks": engine.status(Filter()).chunks, "memory": frame.memory_mb()}


def _ways(asked: list[str]) -> Iterator[tuple[str, SearchRequest]]:
    for text in asked:
        yield "hybrid", SearchRequest(text=text, limit=10)
    for text in asked:
        yield "keyword", SearchRequest(text=text, limit=10, mode="keyword")
    for text in asked:
        yield "semantic", SearchRequest(text=text, limit=10, mode="semantic")
    for number, text in enumerate(asked):
        yield "hybrid, filtered", SearchRequest(text=text, limit=10, where=_FILTERS[number % len(_FILTERS)])


def list_rows(found: dict[str, Any], *, goals: Mapping[tuple[str, float], Goal]) -> list[Row]:
    """Lay out what ``measure`` found; *goals* by way and share."""
    rows = [
        Row(what=f"{way}, {name}", values=[frame.percentile(times, share)], unit="ms", goal=goals.get((way, share)))
        for way, times in found["times"].items()
        for name, share in (("p50", 0.5), ("p95", 0.95), ("slowest", 1.0))
    ]
    memory = found["memory"]
    rows.append(
        Row(what="resident memory", values=[memory["resident"]], unit="MB", digits=0, goal=_MEMORY if goals else None)
    )
    rows.append(Row(what="of that, not the mapped index file", values=[memory["own"]], unit="MB", digits=0))
    return rows
