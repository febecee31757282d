"""Index the 6,277 real notes, and the same chunks with chromadb."""

import argparse
import time
from pathlib import Path

from bench import frame, peer, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.cli import start
from knapper.index.documents import Filter

SUMMARY = "full index of the real notes, against chromadb"
_PEER = peer.CHROMADB


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=3, help="how often Knapper indexes, each time anew (default: 3)")
    parser.add_argument("--no-peer", action="store_true", help="leave chromadb out")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    vault = places.vault("obsidian-help")
    if vault is None:
        return f"there is no obsidian-help.tar.xz below {places.data.name}/vaults"
    with vaults.scratch(places.cache) as work:
        rounds = [frame.in_child(measure, vault, work / f"index-{n}") for n in range(options.rounds)]
        rows = _rows(rounds)
        if not options.no_peer:
            rows += _peer_rows(places, work, [one["total"] for one in rounds])
    first = rounds[0]
    about = (
        f"A vault of {first['notes']:,.0f} notes is indexed from nothing, {options.rounds} times, "
        f"each in a new process: {first['chunks']:,.0f} chunks."
    )
    return Report(title="Full index", about=about, rows=rows, remarks=[] if options.no_peer else _remarks(places))


def measure(vault: Path, folder: Path) -> dict[str, float]:
    """Index once; gives seconds, counts and megabytes."""
    # As ``knap index`` does.
    start.collect_little_garbage()
    begin, cpu = time.perf_counter(), frame.processor_s()
    with vaults.opened(vault, folder) as engine:
        engine.refresh()
        lexical, lexical_cpu = time.perf_counter() - begin, frame.processor_s() - cpu
        engine.embed()
        total, total_cpu = time.perf_counter() - begin, frame.processor_s() - cpu
        status = engine.status(Filter())
    return {
        "lexical": lexical,
        "lexical_cpu": lexical_cpu,
        "embed": total - lexical,
        "total": total,
        "total_cpu": total_cpu,
        "notes": status.notes,
        "chunks": status.chunks,
        "pending": status.pending,
        "size": status.size_bytes / 2**20,
        "peak": frame.memory_mb()["peak"],
    }


def _rows(rounds: list[dict[str, float]]) -> list[Row]:
    def all_of(name: str) -> list[float]:
        return [one[name] for one in rounds]

    return [
        Row(what="words (search answers from here on)", values=all_of("lexical"), unit="s", goal=Goal(limit=15)),
        Row(what="words, processor time", values=all_of("lexical_cpu"), unit="s"),
        Row(what="embeddings", values=all_of("embed"), unit="s"),
        Row(what="total", values=all_of("total"), unit="s"),
        Row(what="total, processor time", values=all_of("total_cpu"), unit="s"),
        Row(what="notes a second, words", values=[one["notes"] / one["lexical"] for one in rounds], digits=0),
        Row(what="chunks a second, embeddings", values=[one["chunks"] / one["embed"] for one in rounds], digits=0),
        Row(what="not embedded at the end", values=all_of("pending"), goal=Goal(limit=1)),
        Row(what="index on disk", values=all_of("size"), unit="MB", digits=0),
        Row(what="peak memory", values=all_of("peak"), unit="MB", digits=0),
    ]


def _peer_rows(places: Places, work: Path, totals: list[float]) -> list[Row]:
    peer.export(work / "index-0", work)
    frame.say(f"indexing the same with {_PEER.name}, in large batches")
    batches = peer.run(places.cache, _PEER, "build", work, work / "peer-batches")
    frame.say("indexing the same, note by note")
    notes = peer.run(places.cache, _PEER, "notes", work, work / "peer-notes")

    def ratio(seconds: float) -> list[float]:
        return [seconds / total for total in totals]

    return [
        Row(what=f"{_PEER.name}: largest batches", values=[batches["build_wall_s"]], unit="s"),
        Row(what=f"{_PEER.name}: largest batches, processor time", values=[batches["build_s"]], unit="s"),
        Row(what=f"{_PEER.name}: note by note", values=[notes["build_wall_s"]], unit="s"),
        Row(what=f"{_PEER.name}: note by note, processor time", values=[notes["build_s"]], unit="s"),
        Row(what=f"{_PEER.name}: on disk", values=[batches["disk_mb"]], unit="MB", digits=0),
        Row(what=f"{_PEER.name}: peak memory", values=[batches["build_peak_mb"]], unit="MB", digits=0),
        Row(what="total, times faster than note by note", values=ratio(notes["build_wall_s"]), unit="x"),
        Row(
            what="total, times faster than largest batches",
            values=ratio(batches["build_wall_s"]),
            unit="x",
            goal=Goal(limit=10, sense="at least"),
        ),
    ]


def _remarks(places: Places) -> list[str]:
    return [
        f"{peer.version(places.cache, _PEER)} gets the finished chunks as documents, and their vectors: "
        "it neither reads, splits nor embeds. Knapper's total holds all of that.",
        "Note by note is how a vault's index is fed: what is stored of a note is replaced as a whole, or not at all. "
        "Knapper keeps that promise for each note, too.",
    ]
