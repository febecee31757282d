"""Time the tools that read, in process, on a generated vault that somebody watches."""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from bench import frame, generate, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.config import files
from knapper.index.engine import Engine
from knapper.index.feed import ChangeFeed
from knapper.tools import links, notes, reading, search
from knapper.tools.context import Context
from knapper.vault.access import Policy

SUMMARY = "Time the tools that read, in process."
_GOAL = Goal(limit=10)
_WARM_UP = 3
_NOTES = 200
"""Notes that tools about one note are asked about, in turn."""

_SORTS = ("status", "rating", "aliases", "-status", "-rating", "-aliases")
"""More than are remembered."""

Call = Callable[[Context, str], object]
_CALLS: dict[str, Call] = {
    "search_vault": lambda context, note: search.search_vault(context, _words(note)),
    "search_keyword": lambda context, note: search.search_keyword(context, _words(note)),
    "search_semantic": lambda context, note: search.search_semantic(context, _words(note)),
    "search_task_relevant": lambda context, note: search.search_task_relevant(context, _words(note), note),
    "find_notes, all": lambda context, _: notes.find_notes(context),
    "find_notes, by tests": lambda context, _: notes.find_notes(
        context, folder="en", properties=["status=open"], exclude_tags=["none"], sort="-modified"
    ),
    "find_notes, all by a property": lambda context, _: notes.find_notes(context, sort="status", fields=["status"]),
    "list_files_by_frontmatter": lambda context, _: search.list_files_by_frontmatter(context, "status", "open"),
    "search_by_date_range": lambda context, _: search.search_by_date_range(context, "2020-01-01", "2030-01-01"),
    "search_by_folder": lambda context, _: search.search_by_folder(context, "en", recursive=True),
    "read_file": lambda context, note: reading.read_file(context, note),
    "read_file, with embeds": lambda context, note: reading.read_file(context, note, expand_embeds=True),
    "fetch_note": lambda context, note: reading.fetch_note(context, note),
    "note_info": lambda context, note: notes.note_info(context, note),
    "find_backlinks": lambda context, note: links.find_backlinks(context, note.removesuffix(".md")),
    "find_outlinks": lambda context, note: links.find_outlinks(context, note),
    "get_links": lambda context, note: links.get_links(context, note),
    "get_links_recursive, depth 2": lambda context, note: links.get_links_recursive(context, note),
    "broken_links": lambda context, _: links.broken_links(context),
    "orphans": lambda context, _: links.orphans(context),
    "list_notes": lambda context, _: notes.list_notes(context),
    "view_all_notes": lambda context, _: notes.view_all_notes(context),
    "explore_vault": lambda context, _: notes.explore_vault(context),
    "list_tags": lambda context, _: notes.list_tags(context),
    "vault_status": lambda context, _: notes.vault_status(context),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=200, help="calls of each tool, each about another note")
    parser.add_argument("--hidden", default="", help="a folder that the client may not see, such as de/")


def run(where: Places, options: argparse.Namespace) -> Report | str:
    vault = generate.vault(where, options.notes)
    if vault is None:
        return "no real vaults to generate from"
    folder = where.cache / f"tools-{options.notes}"
    files.keep_libraries_to_one_thread()  # as the servers that offer these tools do
    frame.in_child(vaults.index, vault, folder)
    found = frame.in_child(measure, vault, folder, options.runs, options.hidden)
    rows = [
        Row(
            what=f"{name}, {part}",
            values=[frame.percentile(times, share)],
            unit="ms",
            goal=_GOAL if share == 0.5 else None,
        )
        for name, times in found["times"].items()
        for part, share in (("p50", 0.5), ("p95", 0.95))
    ]
    rows.append(Row(what="where all links lead, once after each change", values=[found["connections"]], unit="ms"))
    rows.append(Row(what="freshen, where nobody watches", values=[found["unwatched"]], unit="ms"))
    rows.append(Row(what="freshen beside a watcher, where nothing has changed", values=[found["watched"]], unit="ms"))
    anew = frame.percentile(found["sorted"], 0.5)
    rows.append(Row(what="find_notes by a property that nobody has just sorted by, p50", values=[anew], unit="ms"))
    seen = f"; the client doesn't see {options.hidden}" if options.hidden else ""
    about = (
        f"{options.runs} calls of each tool, in process, over a generated vault of {options.notes:,} notes that a "
        f"watcher keeps fresh, so that no call looks through the files{seen}."
    )
    return Report(title="Tools", about=about, rows=rows)


def measure(vault: Path, folder: Path, runs: int, hidden: str) -> dict[str, Any]:
    """Call all tools; gives milliseconds by tool."""
    with vaults.opened(vault, folder) as engine:
        unwatched = timed(lambda: engine.freshen(meaning=False))
        with ChangeFeed(engine.view.root, folder) as feed, engine.followed_by(feed):
            watched = timed(lambda: engine.freshen(meaning=False))
            connections = timed(engine.graph.link_ends.get)
            context = reading_context(engine, hidden)
            some = list(_some(context))
            times: dict[str, list[float]] = {}
            for name, call in _CALLS.items():
                for note in some[:_WARM_UP]:
                    call(context, note)
                times[name] = [timed(lambda: call(context, some[number % len(some)])) for number in range(runs)]  # noqa: B023
            anew = [timed(lambda: notes.find_notes(context, sort=sort)) for sort in 5 * _SORTS]  # noqa: B023
        return {"times": times, "connections": connections, "unwatched": unwatched, "watched": watched, "sorted": anew}


def reading_context(engine: Engine, hidden: str = "") -> Context:
    """Give what a client has who reads, and doesn't see the folder *hidden*."""
    policy = Policy(client="bench", hidden=(hidden,) if hidden else ())

    def no_writer() -> NoReturn:
        raise AssertionError("reading opens nothing to write with")

    view = engine.view.with_policy(policy)
    return Context(vault="bench", view=view, index=engine, open_writer=no_writer, close=lambda: None)


def _some(context: Context) -> Iterator[str]:
    """Give notes from all over the vault."""
    total = int(str(notes.find_notes(context, limit=1)["total"]))
    for number in range(_NOTES):
        found: Any = notes.find_notes(context, limit=1, offset=number * total // _NOTES)["results"]
        yield found[0]["path"]


def _words(note: str) -> str:
    return Path(note).stem


def timed(call: Callable[[], object]) -> float:
    """Give the milliseconds that a call takes."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000
