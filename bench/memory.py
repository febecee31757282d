"""Follow a server's memory under load, minute by minute, and say what holds it."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import frame, generate, load, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places

SUMMARY = "memory of a server under load, minute by minute"
_MINUTE_S = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=10_000, help="size of the generated vault")
    parser.add_argument("--minutes", type=int, default=40, help="how long they ask (default: 40)")
    parser.add_argument(
        "--warm-minutes", type=int, default=10, help="of these, until memory has to be flat (default: 10)"
    )
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--writers", type=int, default=5)
    parser.add_argument(
        "--rate", type=float, default=0.4, help="requests of one client in a second (default: 0.4), in waves"
    )
    parser.add_argument("--look", type=Path, metavar="FILE", help="write here each minute what holds the memory")
    parser.add_argument("--trace", action="store_true", help="with --look: also where Python took it; slow")
    parser.add_argument("--trim", action="store_true", help="with --look: let glibc return what is free each minute")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    generated = generate.vault(places, options.notes)
    if generated is None:
        return "there are no real vaults to generate one from"
    options.seconds = options.minutes * _MINUTE_S
    with vaults.scratch(places.cache) as folder:
        vault = folder / "vault"
        shutil.copytree(generated, vault)
        load.plant_own_notes(vault, options.writers)
        asked = questions.of(vault, 300)
        with load.serving(vault, folder, command=_command(options)) as server:
            found = asyncio.run(
                load.load(server, vault, asked, options, load.Pace(rate=options.rate, wave_s=0.5, grows=False))
            )
        added = len(load.notes_of(vault)) - len(load.notes_of(generated)) - options.writers
    minutes, mapped = by_minute(found.memory), by_minute(found.mapped)
    warm = minutes[min(int(options.warm_minutes), len(minutes) - 1)]
    flat = minutes[int(options.warm_minutes) :] or minutes[-1:]
    rows = [
        Row(what="errors", values=[sum(found.errors.values())], goal=Goal(limit=1)),
        Row(what="answers", values=[len(found.reads) + len(found.writes)]),
        Row(what="memory of its own, first minute", values=minutes[:1], unit="MB"),
        Row(what=f"after {options.warm_minutes} minutes", values=[warm], unit="MB"),
        Row(what="at the end", values=minutes[-1:], unit="MB"),
        Row(what="growth after the warm-up", values=[(max(flat) / warm - 1) * 100], unit="%", goal=Goal(limit=5)),
        Row(
            what=f"mapped files, after {options.warm_minutes} minutes",
            values=[mapped[len(minutes) - len(flat)]],
            unit="MB",
        ),
        Row(what="mapped files, at the end", values=mapped[-1:], unit="MB"),
        Row(what="notes more than at the start", values=[added]),
        Row(what="readers, 95th percentile", values=[frame.percentile(found.reads, 0.95)], unit="ms"),
        Row(what="writers, 95th percentile", values=[frame.percentile(found.writes, 0.95)], unit="ms"),
    ]
    about = (
        f"{options.readers} clients that read and {options.writers} that write for {options.minutes} minutes, each "
        f"{options.rate:g} times a second and all within half a second, at one `knap serve` over a generated vault of "
        f"{options.notes:,} notes. Writers take out again what they add, so that the vault doesn't grow. A minute's "
        f"memory is the mean of its seconds; the largest has to be flat after {options.warm_minutes}. Mapped files, "
        "the index above all, are told apart: the system takes their pages back when it needs them."
    )
    return Report(
        title="Memory", about=about, rows=rows, remarks=["By minute, MB: " + ", ".join(f"{mb:.0f}" for mb in minutes)]
    )


def by_minute(memory: Sequence[float]) -> list[float]:
    """Give the mean of each whole minute; of all where there is none."""
    starts = range(0, max(len(memory) - _MINUTE_S + 1, 1), _MINUTE_S)
    return [sum(part) / len(part) for part in (memory[start : start + _MINUTE_S] for start in starts)]


def _command(options: argparse.Namespace) -> tuple[str, ...]:
    if options.look is None:
        return load.KNAP
    frame.say(f"what holds the memory: {options.look}")
    trace = ("--trace",) if options.trace else ()
    trim = ("--trim",) if options.trim else ()
    return (sys.executable, "-m", "bench.looked_at", str(options.look.resolve()), *trace, *trim, "--")
