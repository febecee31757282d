"""Open an index again whose vault hasn't changed."""

import argparse
import time
from pathlib import Path

from bench import frame, generate, search, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.index.search import SearchRequest

SUMMARY = "restart on an unchanged vault of 10,000 notes"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000, help="size of the generated vault")
    parser.add_argument("--rounds", type=int, default=10, help="how often a new process starts (default: 10)")
    parser.add_argument("--keep", action="store_true", help="use the index of the last run, if there is one")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(places, options.notes)
    if vault is None:
        return "there are no real vaults to generate one from"
    folder = places.cache / f"index-{options.notes}"
    search.prepare(vault, folder, keep=options.keep)
    frame.in_child(measure, vault, folder)
    rounds = [frame.in_child(measure, vault, folder) for _ in range(options.rounds)]
    return Report(title="Restart", about=_about(options, rounds), rows=list_rows(rounds, limit_s=1.0))


def measure(vault: Path, folder: Path) -> dict[str, float]:
    """Open, compare the whole vault with the index, embed what waits, and answer one question."""
    begin = time.perf_counter()
    with vaults.opened(vault, folder) as engine:
        opened = time.perf_counter()
        outcome = engine.refresh()
        refreshed = time.perf_counter()
        embedded = engine.embed()
        pending = time.perf_counter()
        hits = engine.search(SearchRequest(text="how do I link notes")).hits
        end = time.perf_counter()
    return {
        "ready": end - begin,
        "open": opened - begin,
        "refresh": refreshed - opened,
        "embed": pending - refreshed,
        "search": end - pending,
        "indexed": outcome.indexed + outcome.removed,
        "embedded": embedded,
        "hits": len(hits),
    }


def list_rows(rounds: list[dict[str, float]], *, limit_s: float | None) -> list[Row]:
    def all_of(name: str) -> list[float]:
        return [one[name] for one in rounds]

    goal = Goal(limit=limit_s) if limit_s else None
    return [
        Row(what="ready, and the first question answered", values=all_of("ready"), unit="s", goal=goal),
        Row(what="of that, opening the index", values=all_of("open"), unit="s"),
        Row(what="of that, comparing the vault with it", values=all_of("refresh"), unit="s"),
        Row(what="of that, looking for what waits for its vector", values=all_of("embed"), unit="s"),
        Row(what="of that, the first question, vectors loaded", values=all_of("search"), unit="s"),
        Row(what="notes read again", values=all_of("indexed"), goal=Goal(limit=1)),
        Row(what="chunks embedded again", values=all_of("embedded"), goal=Goal(limit=1)),
    ]


def _about(options: argparse.Namespace, rounds: list[dict[str, float]]) -> str:
    return (
        f"A generated vault of {options.notes:,} notes, indexed before; {len(rounds)} new processes open it, "
        "compare it with the disk and answer a question by words and meaning. "
        "Starting Python and importing aren't counted; `cold` counts them."
    )
